"""Channels: the realized ε, checked with rational arithmetic that shares nothing with the code."""

import math
import random
from decimal import localcontext
from fractions import Fraction

import numpy as np
import pytest

from tacit.errors import InvalidClassCount, InvalidEpsilon, InvalidParameter, NoInformation
from tacit.mechanisms import BinaryChannel, UniformChannel

UNIT = 2**320  # fixed point: integers that count units of 2^-320


def exp_bounds(epsilon: Fraction) -> tuple[Fraction, Fraction]:
    """Rationals around e^ε from its power series, every term rounded down and then up."""
    terms = max(120, 8 * math.ceil(epsilon))
    low = high = low_term = high_term = UNIT
    for index in range(1, terms):
        low_term = low_term * epsilon.numerator // (epsilon.denominator * index)
        high_term = high_term * epsilon.numerator // (epsilon.denominator * index) + 1
        low, high = low + low_term, high + high_term
    # The terms shrink at least twofold from here on, so the rest is less than twice the last.
    return Fraction(low, UNIT), Fraction(high + 2 * high_term, UNIT)


def asked(epsilon: float) -> Fraction:
    return min(Fraction(epsilon), Fraction(repr(epsilon)))


def random_requests(count: int, seed: int) -> list[tuple[int, float]]:
    """Many (k, ε), both spread evenly in the logarithm."""
    generator = random.Random(seed)  # noqa: S311 cases, not coins
    return [
        (round(2 ** generator.uniform(1, 31)), math.exp(generator.uniform(-20, math.log(60))))
        for _ in range(count)
    ]


ROUND_REQUESTS = [(k, e) for k in (2, 3, 10, 1000, 2**31) for e in (0.01, 0.1, 0.5, 1.0, 2.0, 4.0)]


def test_the_realized_ratio_is_at_most_that_of_the_epsilon_asked_for_and_hardly_less() -> None:
    for k, epsilon in ROUND_REQUESTS + random_requests(3000, seed=1):
        channel = UniformChannel.for_epsilon(k, epsilon)
        low, high = exp_bounds(asked(epsilon))
        assert channel.ratio <= low, (k, epsilon)
        if channel.threshold > 1:
            less_noise = UniformChannel(k, channel.threshold - 1)
            assert less_noise.ratio > high * (1 - Fraction(1, 10**38)), (k, epsilon)


def test_the_realized_binary_ratio_is_at_most_that_of_the_epsilon_asked_for_and_hardly_less() -> (
    None
):
    for _, epsilon in ROUND_REQUESTS + random_requests(2000, seed=2):
        channel = BinaryChannel.for_epsilon(epsilon)
        low, high = exp_bounds(asked(epsilon))
        assert channel.ratio <= low, epsilon
        if channel.threshold > 1:
            less_noise = BinaryChannel(channel.threshold - 1)
            assert less_noise.ratio > high * (1 - Fraction(1, 10**38)), epsilon


def test_the_stated_epsilon_is_the_logarithm_rounded_up_and_never_above_the_one_asked_for() -> None:
    for k, epsilon in ROUND_REQUESTS + random_requests(1000, seed=3):
        for channel in (UniformChannel.for_epsilon(k, epsilon), BinaryChannel.for_epsilon(epsilon)):
            stated = channel.epsilon
            assert stated <= epsilon
            assert exp_bounds(Fraction(stated))[0] >= channel.ratio
            assert exp_bounds(Fraction(math.nextafter(stated, 0)))[1] < channel.ratio


def test_a_round_epsilon_is_stated_as_asked() -> None:
    assert UniformChannel.for_epsilon(10, 1.0).epsilon == 1.0
    assert BinaryChannel.for_epsilon(0.1).epsilon == 0.1


def test_the_threshold_is_the_exact_formula_rounded_up() -> None:
    e = Fraction("2.71828182845904523536028747135266249775724709369995957496697")
    assert UniformChannel.for_epsilon(10, 1.0).threshold == math.ceil(2**64 * 10 / (9 + e))
    assert BinaryChannel.for_epsilon(1.0).threshold == math.ceil(2**64 / (1 + e))


def test_with_two_classes_the_uniform_channel_flips_as_often_as_the_binary_one() -> None:
    uniform, binary = UniformChannel.for_epsilon(2, 1.5), BinaryChannel.for_epsilon(1.5)
    assert abs(uniform.beta / 2 - binary.flip) <= Fraction(1, 2**64)


@pytest.mark.parametrize("epsilon", [67.0, 1e4, 1e308, 10**400])
def test_an_epsilon_beyond_64_bits_gives_the_channel_with_the_least_noise(epsilon: float) -> None:
    assert UniformChannel.for_epsilon(2**31, epsilon).threshold == 1
    assert BinaryChannel.for_epsilon(epsilon).threshold == 1
    assert UniformChannel.for_epsilon(10, epsilon).epsilon < 67


@pytest.mark.parametrize("epsilon", [1e-300, 5e-324, 1e-25])
def test_an_epsilon_too_small_to_carry_information_is_refused(epsilon: float) -> None:
    with pytest.raises(NoInformation):
        UniformChannel.for_epsilon(10, epsilon)
    with pytest.raises(NoInformation):
        BinaryChannel.for_epsilon(epsilon)


def test_the_smallest_epsilons_are_realized_or_refused_but_never_exceeded() -> None:
    outcomes = set()
    for exponent in range(-70, -50):
        epsilon = 1.7 * 2.0**exponent
        try:
            assert UniformChannel.for_epsilon(10, epsilon).ratio <= exp_bounds(asked(epsilon))[0]
            outcomes.add("realized")
        except NoInformation:
            assert 2**64 * (1 - 10 / (9 + exp_bounds(asked(epsilon))[1])) < 1
            outcomes.add("refused")
    assert outcomes == {"realized", "refused"}


@pytest.mark.parametrize(
    "epsilon", [0, 0.0, -1.0, math.nan, math.inf, -math.inf, "1", None, True, 1j, [1.0]]
)
def test_an_epsilon_that_is_not_a_positive_finite_number_is_refused(epsilon: float) -> None:
    with pytest.raises(InvalidEpsilon):
        UniformChannel.for_epsilon(10, epsilon)
    with pytest.raises(InvalidEpsilon):
        BinaryChannel.for_epsilon(epsilon)


@pytest.mark.parametrize("k", [1, 0, -3, 2**31 + 1, 2.0, True, "10", None])
def test_a_number_of_classes_that_is_not_an_integer_from_2_to_2_31_is_refused(k: int) -> None:
    with pytest.raises(InvalidClassCount):
        UniformChannel.for_epsilon(k, 1.0)
    with pytest.raises(InvalidClassCount):
        UniformChannel(k, 2**63)


def test_numbers_of_numpy_are_numbers() -> None:
    expected = UniformChannel.for_epsilon(10, 1.0)
    assert UniformChannel.for_epsilon(np.int64(10), np.float64(1.0)) == expected
    for one in (1, np.float32(1.0), np.int32(1)):
        assert UniformChannel.for_epsilon(np.uint8(10), one) == expected  # type: ignore[arg-type]
    assert type(UniformChannel.for_epsilon(np.int64(10), 1.0).k) is int


@pytest.mark.parametrize("threshold", [0, -1, 2**64 + 1, True, 1.0, "5", None])
def test_a_threshold_that_is_no_count_of_coins_is_refused(threshold: int) -> None:
    with pytest.raises(InvalidParameter):
        UniformChannel(10, threshold)
    with pytest.raises(InvalidParameter):
        BinaryChannel(threshold)


def test_a_threshold_without_information_is_refused() -> None:
    with pytest.raises(NoInformation):
        UniformChannel(10, 2**64)
    with pytest.raises(NoInformation):
        BinaryChannel(2**63)
    with pytest.raises(InvalidParameter):
        BinaryChannel(2**63 + 1)


def test_the_extreme_thresholds_are_channels() -> None:
    assert UniformChannel(2, 2**64 - 1).epsilon > 0
    assert UniformChannel(2, 1).beta == Fraction(1, 2**64)
    assert BinaryChannel(2**63 - 1).epsilon > 0
    assert BinaryChannel(1).ratio == 2**64 - 1


@pytest.mark.parametrize(
    "channel", [UniformChannel.for_epsilon(7, 0.3), BinaryChannel.for_epsilon(2.0)]
)
def test_the_matrix_has_the_channels_ratio_and_rows_that_sum_to_one(
    channel: UniformChannel | BinaryChannel,
) -> None:
    matrix = channel.matrix()
    np.testing.assert_allclose(matrix.sum(axis=1), 1, rtol=1e-15)
    np.testing.assert_allclose(matrix.max(axis=0) / matrix.min(axis=0), float(channel.ratio))


def test_the_callers_decimal_context_does_not_matter() -> None:
    expected = UniformChannel.for_epsilon(10, 1.0)
    with localcontext() as context:
        context.prec = 3
        assert UniformChannel.for_epsilon(10, 1.0) == expected
        assert expected.epsilon == 1.0
