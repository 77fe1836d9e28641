import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from tacit.conformal import noise
from tacit.errors import InvalidClassCount, InvalidLabels, InvalidNoise, InvalidParameter

classes = st.integers(2, 30)
kept = st.floats(0.05, 1)
FALSE_ALARM = 1e-6


def is_stochastic(matrix: NDArray[np.float64], k: int) -> bool:
    return (
        matrix.shape == (k, k)
        and matrix.dtype == np.float64
        and bool((matrix >= 0).all())
        and np.allclose(matrix.sum(axis=1), 1, rtol=0, atol=1e-12)
    )


@given(classes, kept, st.floats(0.01, 0.99), st.integers(0, 2**32))
def test_every_kind_of_noise_is_a_row_stochastic_matrix_that_keeps_what_it_should(
    k: int, keep: float, decay: float, seed: int
) -> None:
    for matrix in (
        noise.neighbourhood(k, keep),
        noise.decreasing(k, keep, decay),
        noise.random(k, keep, np.random.default_rng(seed)),
    ):
        assert is_stochastic(matrix, k)
        assert (matrix.diagonal() == keep).all()


@given(classes, st.floats(0, 0.999))
def test_the_two_conventions_of_uniform_noise_are_one_matrix(k: int, beta: float) -> None:
    replaced = noise.uniform(k, beta)
    flipped = noise.uniform_flip(k, beta * (k - 1) / k * (1 - 1e-15))
    assert is_stochastic(replaced, k)
    assert np.allclose(replaced, flipped, rtol=1e-9, atol=1e-12)


def test_uniform_noise_puts_beta_over_k_everywhere_and_the_rest_on_the_diagonal() -> None:
    expected = [[0.8 + 0.05, 0.05, 0.05, 0.05], [0.05, 0.85, 0.05, 0.05]]
    assert noise.uniform(4, 0.2)[:2] == pytest.approx(np.array(expected))
    assert (noise.uniform(4, Fraction(1, 5)) == noise.uniform(4, 0.2)).all()


def test_flip_noise_puts_the_rate_over_k_minus_one_off_the_diagonal() -> None:
    assert noise.uniform_flip(4, 0.3)[1] == pytest.approx([0.1, 0.7, 0.1, 0.1])


def test_neighbourhood_noise_gives_an_end_class_its_only_neighbour() -> None:
    expected = [[0.6, 0.4, 0, 0], [0.2, 0.6, 0.2, 0], [0, 0.2, 0.6, 0.2], [0, 0, 0.4, 0.6]]
    assert noise.neighbourhood(4, 0.6) == pytest.approx(np.array(expected))
    assert noise.neighbourhood(2, 0.6) == pytest.approx(np.array([[0.6, 0.4], [0.4, 0.6]]))


def test_decreasing_noise_halves_with_every_step_from_the_label() -> None:
    row = noise.decreasing(4, 0.3)[0]
    assert row == pytest.approx([0.3, 0.4, 0.2, 0.1])


def test_a_strong_decay_over_many_classes_still_gives_a_matrix() -> None:
    assert is_stochastic(noise.decreasing(1000, 0.5, 1e-300), 1000)


def test_random_noise_is_that_of_its_generator() -> None:
    first, again, other = (noise.random(5, 0.4, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).any()


@given(classes, st.floats(0, 0.99))
def test_the_inverse_of_uniform_noise_is_the_one_of_sherman_and_morrison(
    k: int, beta: float
) -> None:
    expected = (np.eye(k) - beta / k) / (1 - beta)
    assert noise.inverse(noise.uniform(k, beta)) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    "matrix",
    [
        [[0.5, 0.5]],
        [[1.0]],
        [0.5, 0.5],
        [[0.9, 0.2], [0.1, 0.8]],
        [[1.1, -0.1], [0.0, 1.0]],
        [[math.nan, 1.0], [0.0, 1.0]],
        [["a", "b"], ["c", "d"]],
        [[0.9, 0.1], [1.0]],
        noise.neighbourhood(3, 0.5),
        np.full((3, 3), 1 / 3),
        noise.uniform(3, 1 - 1e-12),
    ],
)
def test_what_is_no_invertible_noise_matrix_is_refused(matrix: object) -> None:
    with pytest.raises(InvalidNoise):
        noise.check_noise_matrix(matrix)  # type: ignore[arg-type]


def test_integers_that_form_a_noise_matrix_become_floats() -> None:
    checked = noise.check_noise_matrix([[1, 0], [0, 1]])
    assert checked.dtype == np.float64


@pytest.mark.parametrize("beta", [-0.1, 1, 2])
def test_a_beta_outside_zero_to_one_is_refused(beta: float) -> None:
    with pytest.raises(InvalidNoise):
        noise.uniform(3, beta)


@pytest.mark.parametrize("rate", [-0.1, 2 / 3 + 1e-15, 1])
def test_a_flip_rate_without_information_is_refused(rate: float) -> None:
    with pytest.raises(InvalidNoise):
        noise.uniform_flip(3, rate)


@pytest.mark.parametrize("keep", [0, -0.5, 1.01])
def test_a_probability_to_keep_outside_zero_to_one_is_refused(keep: float) -> None:
    with pytest.raises(InvalidNoise):
        noise.neighbourhood(3, keep)


@pytest.mark.parametrize("decay", [0, 1, math.nan])
def test_a_decay_outside_zero_to_one_is_refused(decay: float) -> None:
    with pytest.raises(InvalidParameter):
        noise.decreasing(3, 0.5, decay)


@pytest.mark.parametrize("number", [math.nan, math.inf, "many"])
def test_a_noise_level_that_is_no_number_is_refused(number: object) -> None:
    with pytest.raises(InvalidParameter):
        noise.uniform(3, number)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter):
        noise.decreasing(3, number)  # type: ignore[arg-type]


@pytest.mark.parametrize("k", [1, 0, -3, 2.5])
def test_fewer_than_two_classes_are_refused(k: int) -> None:
    for make in (noise.uniform, noise.uniform_flip, noise.neighbourhood, noise.decreasing):
        with pytest.raises(InvalidClassCount):
            make(k, 0.5)


def channel_is_followed(
    clean: NDArray[np.int64], noisy: NDArray[np.int64], matrix: NDArray[np.float64]
) -> bool:
    """Chi-square test of all transitions; a false alarm has probability 1e-6."""
    k = len(matrix)
    seen = np.bincount(clean * k + noisy, minlength=k * k).reshape(k, k)
    expected = seen.sum(axis=1, keepdims=True) * matrix
    possible = matrix > 0
    if seen[~possible].any():
        return False
    statistic = ((seen - expected)[possible] ** 2 / expected[possible]).sum()
    freedom = int(possible.sum()) - k
    return bool(stats.chi2.sf(statistic, freedom) > FALSE_ALARM)


def test_corrupted_labels_follow_the_matrix_and_a_slightly_wrong_one_is_caught() -> None:
    matrix = noise.neighbourhood(5, 0.7)
    clean = np.random.default_rng(1).integers(0, 5, 200_000)
    noisy = noise.corrupt(clean, matrix, np.random.default_rng(2))
    assert channel_is_followed(clean, noisy, matrix)
    shifted = noise.corrupt(clean, noise.neighbourhood(5, 0.69), np.random.default_rng(2))
    transposed = matrix.T / matrix.T.sum(axis=1, keepdims=True)
    assert not channel_is_followed(clean, shifted, matrix)
    assert not channel_is_followed(clean, noisy, transposed)


def test_corruption_accepts_a_matrix_that_cannot_be_undone_and_no_labels() -> None:
    generator = np.random.default_rng(3)
    assert noise.corrupt([], np.full((2, 2), 0.5), generator).shape == (0,)
    assert set(noise.corrupt([0] * 200, np.full((2, 2), 0.5), generator)) == {0, 1}


@pytest.mark.parametrize("labels", [[0, 3], [-1], [0.5], [[0, 1]]])
def test_labels_that_are_no_classes_are_refused(labels: list[int]) -> None:
    with pytest.raises(InvalidLabels):
        noise.corrupt(labels, np.eye(3), np.random.default_rng(0))
