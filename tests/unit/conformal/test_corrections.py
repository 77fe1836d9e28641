import math
import runpy
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import integrate, special

from tacit.conformal import noise
from tacit.conformal.corrections import (
    delta_acnl,
    delta_acnl_uniform,
    delta_crcp,
    delta_crcp_uniform,
    delta_labels,
    delta_matrix,
    delta_scores,
    expected_excess,
    n_for_labels,
    n_for_scores,
    rounds_for,
)
from tacit.errors import InvalidClassCount, InvalidNoise, InvalidParameter

levels = st.floats(1e-6, 0.999)

EXAMPLE = runpy.run_path(str(Path(__file__).parents[3] / "examples" / "thesis_corrections.py"))
TABLE = EXAMPLE["TABLE"]
"""The thesis's table of corrections, at δ = 0.001."""


@pytest.mark.parametrize("row", TABLE, ids=str)
def test_delta_of_nacp_is_the_one_the_thesis_prints(row: Any) -> None:
    slip = (row.dataset, row.beta) == ("CIFAR-100", 0.2)
    expected = 0.031 if slip else row.nacp
    assert round(delta_labels(row.n, row.beta, 0.001), 3) == expected


@pytest.mark.parametrize("row", TABLE, ids=str)
def test_delta_of_crcp_is_the_one_the_thesis_prints(row: Any) -> None:
    assert round(delta_crcp_uniform(row.n, row.k, row.beta), 3) == row.crcp


@pytest.mark.parametrize("row", TABLE, ids=str)
def test_delta_of_acnl_is_the_printed_one_once_the_smallest_class_is_that_of_a_random_half(
    row: Any,
) -> None:
    smallest = EXAMPLE["least_common_class"](row.n, row.k, row.beta)
    found = delta_acnl_uniform(row.n, row.k, row.beta, smallest)
    assert found == pytest.approx(row.acnl, rel=0.05)
    if row.k >= 100:
        assert delta_acnl_uniform(row.n, row.k, row.beta) < 0.9 * row.acnl


@given(st.integers(1, 10**9), st.floats(0, 0.999), levels)
def test_delta_labels_is_its_formula(n: int, beta: float, delta: float) -> None:
    h = (1 - beta) / (1 + beta)
    expected = math.sqrt(math.log(4 / delta) / (2 * n * h**2))
    assert delta_labels(n, beta, delta) == pytest.approx(expected, rel=1e-9)


def test_delta_matrix_takes_the_largest_row_of_the_inverse() -> None:
    matrix = np.array([[0.9, 0.1, 0.0], [0.0, 1.0, 0.0], [0.3, 0.3, 0.4]])
    rows = np.abs(np.linalg.inv(matrix)).sum(axis=1)
    expected = max(rows) * 3 * math.sqrt(math.log(2 * 9 / 0.05) / (2 * 500))
    assert delta_matrix(500, matrix, 0.05) == pytest.approx(expected)
    assert rows.max() != pytest.approx(np.abs(np.linalg.inv(matrix)).sum(axis=0).max())


@given(st.integers(1, 10**6), st.integers(1, 30), st.floats(0.05, 8), levels)
def test_delta_scores_of_whole_batches_is_the_specifications(
    batch: int, rounds: int, epsilon: float, delta: float
) -> None:
    n = batch * rounds
    debias = (math.exp(epsilon) + 1) / (math.exp(epsilon) - 1)
    expected = debias * math.sqrt(rounds * math.log(2 * rounds / delta) / (2 * n))
    found = delta_scores(batch, 1 / (math.exp(epsilon) + 1), rounds, delta)
    assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("width", "tau", "rounds"),
    [
        (1, 0.001, 10),
        (1, Fraction(1, 1024), 10),
        (1, Fraction(1, 1025), 11),
        (1, Fraction(2, 2047), 10),
        (0.8, 0.1, 3),
        (0.3, 0.1, 2),
        (3, 1, 2),
        (1, 1, 1),
        (1, 5, 1),
        (1e-320, 5e-324, 11),
    ],
)
def test_rounds_are_the_halvings_until_the_interval_is_no_wider_than_tau(
    width: float, tau: float | Fraction, rounds: int
) -> None:
    assert rounds_for(width, tau) == rounds


@given(st.integers(0, 200), st.integers(1, 10**6))
def test_rounds_are_exact_at_powers_of_two(power: int, part: int) -> None:
    tau = Fraction(1, part)
    assert rounds_for(2**power * tau, tau) == max(1, power)
    assert rounds_for(2**power * tau + Fraction(1, 10**100), tau) == power + 1


@given(st.floats(0.001, 2), st.floats(0, 0.9999), levels)
def test_n_for_labels_is_enough_and_one_record_less_is_not(
    wanted: float, beta: float, delta: float
) -> None:
    n = n_for_labels(wanted, beta, delta)
    assert delta_labels(n, beta, delta) < wanted
    assert n == 1 or delta_labels(n - 1, beta, delta) >= wanted


@given(st.floats(0.001, 2), st.floats(0, 0.4999), st.integers(1, 30), levels)
def test_n_for_scores_is_enough_and_one_record_less_is_not(
    wanted: float, flip: float, rounds: int, delta: float
) -> None:
    n = n_for_scores(wanted, flip, rounds, delta)
    assert delta_scores(n // rounds, flip, rounds, delta) < wanted
    fewer = (n - 1) // rounds
    assert fewer == 0 or delta_scores(fewer, flip, rounds, delta) >= wanted


def test_the_n_to_certify_asks_for_a_delta_strictly_below_alpha() -> None:
    n = 1000
    reached = delta_labels(n, 0.2, 0.05)
    assert n_for_labels(reached, 0.2, 0.05) == n + 1
    assert n_for_labels(math.nextafter(reached, 1), 0.2, 0.05) == n


def test_a_hopeless_wish_is_refused_and_a_huge_n_is_not() -> None:
    assert n_for_labels(1e-30, 0.2, 0.05) > 10**59
    with pytest.raises(InvalidParameter, match="No number of records"):
        n_for_labels(5e-324, 0.2, 0.05)


@pytest.mark.parametrize("n", [1, 2, 3, 10, 100, 5000])
def test_the_expected_excess_is_the_mean_of_smirnovs_statistic(n: int) -> None:
    mean, _ = integrate.quad(
        lambda x: special.smirnov(n, x), 0, 1, points=np.linspace(0, 1, min(n, 40) + 1), limit=500
    )
    assert expected_excess(n) == pytest.approx(mean, rel=1e-6)


def within_simulation(candidate: float, n: int) -> bool:
    """Whether a simulated mean is within 6 standard errors: false alarm below 1e-8."""
    uniforms = np.sort(np.random.default_rng(7).random((40_000, n)), axis=1)
    excess: NDArray[np.float64] = (np.arange(1, n + 1) / n - uniforms).max(axis=1)
    return bool(abs(candidate - excess.mean()) < 6 * excess.std() / math.sqrt(len(excess)))


def test_the_expected_excess_is_what_a_simulation_gives_and_its_neighbours_are_not() -> None:
    assert within_simulation(expected_excess(20), 20)
    assert not within_simulation(expected_excess(21), 20)
    assert not within_simulation(expected_excess(20) * 0.98, 20)


def test_the_expected_excess_of_very_many_draws_is_that_of_a_brownian_bridge() -> None:
    n = 10**10
    assert expected_excess(n) == pytest.approx(math.sqrt(math.pi / (8 * n)), rel=1e-4)


CONDITIONAL = np.array([[0.8, 0.15, 0.05], [0.1, 0.7, 0.2], [0.0, 0.25, 0.75]])
NOISY = np.array([0.5, 0.3, 0.2])


def test_delta_of_acnl_is_its_formula_term_by_term() -> None:
    n, smallest, k = 900, 150, 3
    inverted = np.linalg.inv(CONDITIONAL)
    clean = [sum(NOISY[i] * CONDITIONAL[i, label] for i in range(k)) for label in range(k)]
    rows = [sum(abs(inverted[i, label]) for label in range(k) if label != i) for i in range(k)]
    spread = 2 * max(rows) + sum(abs(clean[i] - NOISY[i]) for i in range(k))
    growth = 1 / math.sqrt(smallest) + math.sqrt((math.log(2 * k**2) + math.log(smallest)) / 2)
    factor = min(k**2 * math.sqrt(math.pi / 2), growth)
    expected = expected_excess(n) + spread / math.sqrt(smallest) * factor
    assert delta_acnl(n, CONDITIONAL, NOISY, smallest) == pytest.approx(expected)


def test_the_smallest_class_of_acnl_is_by_default_its_share_of_n() -> None:
    assert delta_acnl(900, CONDITIONAL, NOISY) == delta_acnl(900, CONDITIONAL, NOISY, 180)


def test_delta_of_crcp_is_its_formula_term_by_term() -> None:
    n, k = 900, 3
    inverted = np.linalg.inv(CONDITIONAL)
    clean = NOISY @ CONDITIONAL
    b = [(1 - share) ** n + math.sqrt(math.pi / (n * share)) for share in NOISY]
    expected = 0.0
    for i in range(k):
        expected += abs(inverted[i, i] * clean[i] - NOISY[i]) * b[i]
        expected += sum(abs(clean[i] * inverted[i, j]) * b[j] for j in range(k) if j != i)
    assert delta_crcp(n, CONDITIONAL, NOISY) == pytest.approx(expected)


def test_without_noise_acnl_pays_for_sampling_only_and_crcp_nothing() -> None:
    assert delta_acnl_uniform(1000, 10, 0) == pytest.approx(expected_excess(1000))
    assert delta_crcp_uniform(1000, 10, 0) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("n", [0, -1, 2.0, True, "many", None])
def test_a_number_of_records_must_be_a_positive_integer(n: int) -> None:
    with pytest.raises(InvalidParameter):
        delta_labels(n, 0.2, 0.05)
    with pytest.raises(InvalidParameter):
        delta_scores(n, 0.2, 10, 0.05)
    with pytest.raises(InvalidParameter):
        delta_scores(10, 0.2, n, 0.05)
    with pytest.raises(InvalidParameter):
        delta_matrix(n, noise.uniform(3, 0.2), 0.05)
    with pytest.raises(InvalidParameter):
        delta_acnl_uniform(n, 3, 0.2)
    with pytest.raises(InvalidParameter):
        delta_crcp_uniform(n, 3, 0.2)


def test_integers_of_numpy_are_integers() -> None:
    assert delta_labels(np.int64(100), 0.2, 0.05) == delta_labels(100, 0.2, 0.05)  # type: ignore[arg-type]


@pytest.mark.parametrize("delta", [0, 1, -0.1, math.nan, math.inf])
def test_a_failure_probability_lies_strictly_between_zero_and_one(delta: float) -> None:
    with pytest.raises(InvalidParameter):
        delta_labels(100, 0.2, delta)
    with pytest.raises(InvalidParameter):
        delta_scores(100, 0.2, 10, delta)


def test_the_smallest_failure_probability_of_a_float_is_not_too_small() -> None:
    assert delta_labels(100, 0.2, 5e-324) == pytest.approx(2.89, abs=0.01)


@pytest.mark.parametrize("beta", [-0.1, 1, 1.5])
def test_noise_that_cannot_be_undone_has_no_correction(beta: float) -> None:
    with pytest.raises(InvalidNoise):
        delta_labels(100, beta, 0.05)


@pytest.mark.parametrize("flip", [-0.1, 0.5, 0.7])
def test_a_bit_flipped_half_the_time_has_no_correction(flip: float) -> None:
    with pytest.raises(InvalidNoise):
        delta_scores(100, flip, 10, 0.05)


@pytest.mark.parametrize("number", [0, -1, math.nan, math.inf])
def test_widths_tolerances_and_wishes_are_positive_finite_numbers(number: float) -> None:
    with pytest.raises(InvalidParameter):
        rounds_for(number, 0.1)
    with pytest.raises(InvalidParameter):
        rounds_for(1, number)
    with pytest.raises(InvalidParameter):
        n_for_labels(number, 0.2, 0.05)
    with pytest.raises(InvalidParameter):
        n_for_scores(number, 0.2, 10, 0.05)
    with pytest.raises(InvalidParameter):
        delta_acnl_uniform(100, 3, 0.2, number)


@pytest.mark.parametrize("noisy", [[0.5, 0.5], [0.5, 0.5, 0.0], [0.5, 0.4, 0.2], [[1.0], [0], [0]]])
def test_frequencies_are_one_positive_number_per_class_with_sum_one(noisy: list[float]) -> None:
    with pytest.raises(InvalidParameter):
        delta_crcp(100, CONDITIONAL, noisy)


def test_one_class_is_not_enough_for_a_comparison() -> None:
    with pytest.raises(InvalidClassCount):
        delta_acnl_uniform(100, 1, 0.2)
