"""LDP-CP-L and L*: NACP with the realized channel, and the raised target."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tacit.conformal import Calibration, CoverageSketch, Guarantee, NotCertifiable, ldp_cp_l, nacp
from tacit.conformal.labels import PROTECTED, UNPROVED
from tacit.errors import InvalidLabels
from tacit.mechanisms import UniformChannel
from tacit.scores import HPS
from tests.support import brute
from tests.support.tables import Sample, alphas, channels, samples


@given(samples(), alphas, st.data())
def test_l_is_nacp_with_the_realized_noise_level(
    sample: Sample, alpha: float, data: st.DataObject
) -> None:
    channel = data.draw(channels(sample.k))
    result = ldp_cp_l(*sample.records, channel=channel, **sample.aim(alpha))
    expected = nacp(*sample.records, beta=channel.beta, **sample.aim(alpha))
    assert isinstance(result, Calibration)
    assert (result.threshold, result.coverage) == (expected.threshold, expected.coverage)
    assert (result.method, result.guarantee) == ("ldp-cp-l", Guarantee.NOMINAL)
    assert result.epsilon == channel.epsilon
    assert PROTECTED in result.assumptions
    assert (result.delta, result.correction, result.resolution) == (None, None, None)


def calibration_set(n: int, k: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    generator = np.random.default_rng(n + k)
    return generator.dirichlet(np.full(k, 0.3), n), generator.integers(0, k, n)


def delta_l(n: int, beta: float, delta: float) -> float:
    h = (1 - beta) / (1 + beta)
    return math.sqrt(math.log(4 / delta) / (2 * n * h**2))


def test_l_star_aims_at_the_target_raised_by_delta() -> None:
    n, k, alpha, delta = 3000, 5, 0.1, 0.05
    rows, reports = calibration_set(n, k)
    channel = UniformChannel.for_epsilon(k, 4.0)
    result = ldp_cp_l(rows, reports, channel=channel, score=HPS(), alpha=alpha, delta=delta)
    assert isinstance(result, Calibration)
    correction = delta_l(n, float(channel.beta), delta)
    assert result.correction == pytest.approx(correction, rel=1e-12)
    assert (result.method, result.guarantee) == ("ldp-cp-l*", Guarantee.COMPARISON)
    assert (result.alpha, result.delta) == (alpha, delta)
    assert UNPROVED in result.assumptions
    target = float(1 - Fraction(1, 10) + Fraction(correction))
    raised = nacp(rows, reports, beta=channel.beta, score=HPS(), alpha=1 - target)
    assert result.threshold == raised.threshold
    plain = nacp(rows, reports, beta=channel.beta, score=HPS(), alpha=alpha)
    assert result.threshold > plain.threshold


@pytest.mark.parametrize(
    ("k", "epsilon", "alpha", "delta"), [(5, 2.0, 0.1, 0.05), (2, 4.0, 0.3, 0.001)]
)
def test_l_star_is_not_certifiable_exactly_below_the_n_that_would_do(
    k: int, epsilon: float, alpha: float, delta: float
) -> None:
    channel = UniformChannel.for_epsilon(k, epsilon)

    def outcome(n: int) -> Calibration | NotCertifiable:
        rows, reports = calibration_set(n, k)
        return ldp_cp_l(rows, reports, channel=channel, score=HPS(), alpha=alpha, delta=delta)

    few = outcome(20)
    assert isinstance(few, NotCertifiable)
    assert (few.method, few.n, few.alpha, few.delta) == ("ldp-cp-l*", 20, alpha, delta)
    assert few.epsilon == channel.epsilon
    assert few.correction == pytest.approx(delta_l(20, float(channel.beta), delta), rel=1e-12)
    assert delta_l(few.needed, float(channel.beta), delta) < alpha
    assert delta_l(few.needed - 1, float(channel.beta), delta) >= alpha
    assert isinstance(outcome(few.needed - 1), NotCertifiable)
    assert isinstance(outcome(few.needed), Calibration)


def test_not_certifiable_says_how_many_records_would_do() -> None:
    rows, reports = calibration_set(10, 3)
    channel = UniformChannel.for_epsilon(3, 1.0)
    result = ldp_cp_l(rows, reports, channel=channel, score=HPS(), alpha=0.1, delta=0.05)
    assert isinstance(result, NotCertifiable)
    assert "10 records" in str(result)
    assert f"{result.needed} records would do" in str(result)


def test_a_channel_for_another_number_of_classes_is_refused() -> None:
    rows, reports = calibration_set(10, 3)
    channel = UniformChannel.for_epsilon(4, 1.0)
    with pytest.raises(InvalidLabels, match="4 classes"):
        ldp_cp_l(rows, reports, channel=channel, score=HPS(), alpha=0.1)
    with pytest.raises(InvalidLabels, match="4 classes"):
        CoverageSketch.empty(HPS(), 3).add(rows, reports).calibrate(channel, 0.1)


def test_the_threshold_is_that_of_the_realized_channel_and_not_of_the_asked_one() -> None:
    """A channel rounded toward more noise has a larger β; de-biasing must use that one."""
    rows = np.array([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.9, 0.1]])
    coarse = UniformChannel(2, 2**63)
    result = ldp_cp_l(rows, [0, 0, 0, 1], channel=coarse, score=HPS(), alpha=0.1)
    assert isinstance(result, Calibration)
    assert result.threshold == brute.largest_crossing(
        HPS().of_labels(rows, [0, 0, 0, 1]).tolist(),
        HPS().of_all(rows).tolist(),
        Fraction(1, 2),
        Fraction(9, 10),
    )
