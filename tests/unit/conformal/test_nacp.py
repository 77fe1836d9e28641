"""NACP for uniform noise against brute force in fractions, over every breakpoint."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tacit.conformal import Guarantee, nacp
from tacit.scores import APS, HPS, RAPS, Margin, Score, TopK
from tests.support import brute
from tests.support.tables import Sample, alphas, noise_levels, samples


def decimal(number: float) -> Fraction:
    return Fraction(str(number))


@given(samples(), alphas, st.data())
def test_the_threshold_is_the_largest_crossing_over_every_breakpoint(
    sample: Sample, alpha: float, data: st.DataObject
) -> None:
    beta = data.draw(noise_levels(sample.k))
    result = nacp(*sample.records, beta=beta, **sample.aim(alpha))
    target = 1 - decimal(alpha)
    assert result.threshold == brute.largest_crossing(sample.noisy, sample.every, beta, target)


@given(samples(), alphas, st.data())
def test_the_coverage_stated_is_the_estimate_at_the_threshold(
    sample: Sample, alpha: float, data: st.DataObject
) -> None:
    beta = data.draw(st.sampled_from([Fraction(0), Fraction(1, 3), Fraction(9, 10)]))
    result = nacp(*sample.records, beta=beta, **sample.aim(alpha))
    exact = brute.clean_coverage(sample.noisy, sample.every, beta, result.threshold)
    assert abs(result.coverage - exact) < 1e-12
    assert result.guarantee is Guarantee.NOMINAL
    assert (result.n, result.k, result.alpha) == (sample.n, sample.k, alpha)


@given(samples(), alphas)
def test_without_noise_it_is_the_inverted_cdf_quantile(sample: Sample, alpha: float) -> None:
    result = nacp(*sample.records, beta=0, **sample.aim(alpha))
    assert result.threshold == brute.inverted_cdf_quantile(sample.noisy, 1 - decimal(alpha))


@given(samples(), alphas, st.data())
def test_the_crossing_lies_between_the_two_quantiles_of_noisy_scores(
    sample: Sample, alpha: float, data: st.DataObject
) -> None:
    beta = data.draw(noise_levels(sample.k))
    target = 1 - decimal(alpha)
    crossing = nacp(*sample.records, beta=beta, **sample.aim(alpha)).threshold
    low = target * (1 - beta) / (1 - beta / sample.k)
    high = target + (1 - target) * beta
    assert brute.inverted_cdf_quantile(sample.noisy, low) <= crossing
    assert crossing <= brute.inverted_cdf_quantile(sample.noisy, high)


def test_the_bracket_is_needed_at_both_ends() -> None:
    """Both bounds are attained, so neither can be tightened."""
    rows = np.array([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.9, 0.1]])
    noisy = HPS().of_labels(rows, [0, 0, 0, 1]).tolist()
    beta = Fraction(1, 2)
    at_top = nacp(rows, [0, 0, 0, 1], beta=beta, score=HPS(), alpha=0.1).threshold
    assert at_top == brute.inverted_cdf_quantile(noisy, Fraction(95, 100))
    noisy = HPS().of_labels(rows, [0, 0, 0, 0]).tolist()
    at_bottom = nacp(rows, [0, 0, 0, 0], beta=beta, score=HPS(), alpha=0.5).threshold
    assert at_bottom == brute.inverted_cdf_quantile(noisy, Fraction(1, 3))


def test_a_curve_that_crosses_three_times_is_followed_to_the_last_crossing() -> None:
    """By hand, with β = 1/2, k = 2: F̂^c = 2F̂^n - F̂^r.

    Scores of class 0 are .1, .2, .3, .1 and of class 1 .9, .8, .7, .9; the noisy labels score .1,
    .2, .3 and .9. So F̂^c is 2/8, 5/8, 1 at .1, .2, .3, falls to 7/8 at .7 and 6/8 at .8, and is 1
    at .9. It first reaches 9/10 at .3, where a bisection stops, but for good only at .9.
    """
    rows = np.array([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.9, 0.1]])
    labels = [0, 0, 0, 1]
    scores = HPS().of_all(rows)
    beta = Fraction(1, 2)
    result = nacp(rows, labels, beta=beta, score=HPS(), alpha=0.1)
    assert result.threshold == scores[0, 1] == 0.9
    bisected = brute.bisected_crossing(
        HPS().of_labels(rows, labels).tolist(), scores.tolist(), beta, Fraction(9, 10)
    )
    assert bisected == scores[2, 0] < 0.31


def test_a_curve_that_touches_the_target_exactly_has_reached_it() -> None:
    """β = 1/3, k = 2: F̂^c = (3F̂^n - F̂^r)/2 is exactly 7/10 from the 8th of 10 scores on.

    In floating point (0.8 - 0.3333·0.6)/0.6667 may come out on either side of the target.
    """
    scores = np.arange(1, 11) / 32
    rows = np.column_stack([1 - scores, scores])
    labels = np.array([0] * 8 + [1] * 2)
    every = HPS().of_all(rows).tolist()
    noisy = HPS().of_labels(rows, labels).tolist()
    touched = brute.clean_coverage(noisy, every, Fraction(1, 3), 10 / 32)
    result = nacp(rows, labels, beta=Fraction(1, 3), score=HPS(), alpha=float(1 - touched))
    assert touched == Fraction(19, 20)
    assert result.threshold == brute.largest_crossing(noisy, every, Fraction(1, 3), touched)
    assert result.threshold < 0.5


def test_next_to_no_information_the_crossing_is_still_exact() -> None:
    """With 1-β = 2^-53 a difference of 1e-16 between F̂^n and βF̂^r is one of 0.9 in F̂^c."""
    weights = np.array([[0, 2, 1], [0, 1, 2], [2, 1, 2]])
    rows = weights / weights.sum(axis=1, keepdims=True)
    beta = 1 - Fraction(1, 2**53)
    result = nacp(rows, [0, 1, 0], beta=beta, score=TopK(), alpha=0.3)
    every = TopK().of_all(rows).tolist()
    noisy = TopK().of_labels(rows, [0, 1, 0]).tolist()
    assert brute.clean_coverage(noisy, every, beta, 2.0) == Fraction(2, 3)
    assert result.threshold == 3.0


def test_next_to_no_noise_the_crossing_is_still_exact() -> None:
    """β = 2e-13: at .5, where F̂^n = 1/2 and F̂^r = 9/16, F̂^c is below 1/2 by 1e-14."""
    rows = np.array([[0, 1]] * 4 + [[1, 0]] * 3 + [[0.5, 0.5]])
    beta = Fraction(3452354, 2**64)
    result = nacp(rows, np.zeros(8, dtype=int), beta=beta, score=HPS(), alpha=0.5)
    assert result.threshold == 1.0
    assert nacp(rows, np.zeros(8, dtype=int), beta=0, score=HPS(), alpha=0.5).threshold == 0.5


def test_thresholds_of_hps_may_lie_below_one_half() -> None:
    """The research code starts its search at 0.5; a confident model has its threshold below."""
    rows = np.full((50, 3), 0.02)
    rows[:, 0] = 0.96
    result = nacp(rows, np.zeros(50, dtype=int), beta=0.1, score=HPS(), alpha=0.1)
    assert result.threshold == 1 - 0.96


def test_a_float_beta_means_the_decimal_it_is_written_as() -> None:
    """0.1 is 1/10 in both: otherwise a curve that touches the target is decided by a last bit."""
    generator = np.random.default_rng(5)
    rows = generator.dirichlet(np.ones(4), 40)
    labels = generator.integers(0, 4, 40)

    def threshold(beta: float | Fraction, score: Score) -> float:
        return nacp(rows, labels, beta=beta, score=score, alpha=0.1).threshold

    assert threshold(0.1, HPS()) == threshold(Fraction(1, 10), HPS())


def test_the_class_count_is_that_of_the_table() -> None:
    """The research code fixes the number of classes; here 2, 7 and 1000 all come out right."""
    generator = np.random.default_rng(6)
    for k in (2, 7, 1000):
        rows = generator.dirichlet(np.ones(k), 30)
        labels = generator.integers(0, k, 30)
        beta = Fraction(1, 2)
        result = nacp(rows, labels, beta=beta, score=HPS(), alpha=0.2)
        every = HPS().of_all(rows).tolist()
        noisy = HPS().of_labels(rows, labels).tolist()
        breakpoints = sorted(noisy)
        assert result.k == k
        assert result.threshold in breakpoints
        assert brute.clean_coverage(noisy, every, beta, result.threshold) >= Fraction(4, 5)


NEARLY_1 = 1 - Fraction(1, 2**60)


def spread(n: int, k: int, generator: np.random.Generator) -> NDArray[np.float64]:
    return generator.dirichlet(np.full(k, 10 ** generator.uniform(-2, 1)), n)


def crowded_at_the_ends(n: int, k: int, generator: np.random.Generator) -> NDArray[np.float64]:
    """Scores from 1e-17 to 1e-3 away from both ends of the range."""
    rest = 10 ** generator.uniform(-17, -3, (n, 1))
    rows: NDArray[np.float64] = (1 - rest) * np.eye(k)[generator.integers(0, k, n)] + rest / k
    return rows


def crowded_in_one_place(n: int, k: int, generator: np.random.Generator) -> NDArray[np.float64]:
    """All scores of HPS within 1e-8 of each other: no grid tells them apart."""
    rows = 1 / k + 1e-9 * generator.normal(size=(n, k))
    return normalized(rows)


def tied(n: int, k: int, generator: np.random.Generator) -> NDArray[np.float64]:
    return normalized(generator.integers(0, 4, (n, k)) + np.eye(k)[0])


def normalized(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    rows: NDArray[np.float64] = weights / weights.sum(axis=1, keepdims=True)
    return rows


@pytest.mark.parametrize("law", [spread, crowded_at_the_ends, crowded_in_one_place, tied])
@pytest.mark.parametrize("score", [HPS(), APS(), RAPS(0.01, 1), Margin(), TopK()])
@pytest.mark.parametrize(
    "beta", [Fraction(0), Fraction(3, 20), Fraction(9, 10), 1 - Fraction(1, 2**40), NEARLY_1]
)
def test_the_threshold_of_many_records_is_exact_wherever_scores_crowd(
    law: Callable[[int, int, np.random.Generator], NDArray[np.float64]],
    score: Score,
    beta: Fraction,
) -> None:
    generator = np.random.default_rng(8)
    for n, k in ((40, 3), (300, 20), (1500, 4)):
        rows = law(n, k, generator)
        truth = rows.argmax(axis=1)
        labels = np.where(generator.random(n) < 0.6, truth, generator.integers(0, k, n))
        every, noisy = score.of_all(rows).tolist(), score.of_labels(rows, labels).tolist()
        for alpha in (0.1, 0.5):
            result = nacp(rows, labels, beta=beta, score=score, alpha=alpha)
            target = 1 - decimal(alpha)
            expected = brute.largest_crossing_of_many(noisy, every, beta, target)
            assert result.threshold == expected


def test_more_records_than_fit_one_chunk_give_the_same_threshold_as_counting_them_all() -> None:
    generator = np.random.default_rng(7)
    n, k = 3000, 500
    rows = generator.dirichlet(np.full(k, 0.02), n)
    labels = generator.integers(0, k, n)
    result = nacp(rows, labels, beta=0.5, score=HPS(), alpha=0.1)
    every = np.sort(HPS().of_all(rows).ravel())
    noisy = np.sort(HPS().of_labels(rows, labels))
    points = np.unique(noisy)
    noisy_before = np.searchsorted(noisy, points, side="left") / n
    every_before = np.searchsorted(every, points, side="left") / (n * k)
    before = (noisy_before - 0.5 * every_before) / 0.5
    assert n * k > 1 << 20
    assert result.threshold == points[np.flatnonzero(before < 0.9)[-1]]
