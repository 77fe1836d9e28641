"""Split conformal prediction and its twin on noisy labels."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tacit.conformal import Guarantee, noisy, split
from tacit.conformal.results import EVERY_CLASS
from tacit.conformal.split import LABELS_TAKEN_AS_TRUE
from tacit.scores import HPS, RAPS
from tests.support import brute
from tests.support.tables import Sample, alphas, samples


@given(samples(), alphas)
def test_the_threshold_is_the_score_of_the_conformal_rank(sample: Sample, alpha: float) -> None:
    result = split(*sample.records, **sample.aim(alpha))
    rank = brute.conformal_rank(sample.n, Fraction(str(alpha)))
    if rank <= sample.n:
        assert result.threshold == sorted(sample.noisy)[rank - 1]
    else:
        assert result.threshold == sample.score.range(sample.k).high
    every_class = result.threshold == sample.score.range(sample.k).high
    assert result.notes == ((EVERY_CLASS,) if every_class else ())
    assert result.coverage == float(brute.share_within(sample.noisy, result.threshold))


def rows_with_scores(scores: list[float]) -> NDArray[np.float64]:
    return np.array([[1 - score, score] for score in scores])


@pytest.mark.parametrize(
    ("alpha", "n", "rank"),
    [
        (0.1, 9, 9),
        (0.1, 99, 90),
        (0.1, 19, 18),
        (0.7, 9, 3),
        (0.7, 99, 30),
        (0.05, 39, 38),
        (0.3, 9, 7),
        (0.01, 99, 99),
        (0.9, 9, 1),
    ],
)
def test_the_rank_is_exact_where_floating_point_is_not(alpha: float, n: int, rank: int) -> None:
    """(n+1)(1-α) is an integer in each case, and in floats often a bit more: 10·(1-0.7) > 3."""
    scores = [index / 1024 for index in range(1, n + 1)]
    result = split(rows_with_scores(scores), np.zeros(n, dtype=int), score=HPS(), alpha=alpha)
    assert result.threshold == rank / 1024


def test_a_rank_computed_in_floats_would_be_one_too_high() -> None:
    """Shows that the cases above can catch the slip."""
    assert np.ceil(10 * (1 - 0.7)) == 4
    assert brute.conformal_rank(9, Fraction(7, 10)) == 3


@given(st.integers(1, 400), st.integers(1, 999))
def test_a_full_set_is_given_exactly_if_the_rank_exceeds_n(n: int, thousandths: int) -> None:
    alpha = thousandths / 1000
    rows = np.full((n, 2), 0.5)
    result = split(rows, np.zeros(n, dtype=int), score=HPS(), alpha=alpha)
    exceeds = (n + 1) * (1000 - thousandths) > 1000 * n
    assert (result.notes == (EVERY_CLASS,)) is exceeds
    assert result.threshold == (1.0 if exceeds else 0.5)


def test_the_full_set_uses_the_range_of_the_score() -> None:
    """RAPS exceeds 1: a threshold of 1 would leave classes out."""
    rows = np.array([[0.7, 0.2, 0.1]])
    result = split(rows, [0], score=RAPS(0.5, 0), alpha=0.1)
    assert result.threshold == 2.5
    assert result.sets(rows).all()


def test_a_class_whose_score_is_the_threshold_is_in_the_set() -> None:
    rows = rows_with_scores([0.25, 0.5, 0.75])
    result = split(rows, [0, 0, 0], score=HPS(), alpha=0.5)
    assert result.threshold == 0.5
    assert result.sets(rows).tolist() == [[True, False], [True, True], [False, True]]


@given(samples(min_size=10), alphas)
def test_noisy_cp_is_split_cp_that_says_what_its_labels_are(sample: Sample, alpha: float) -> None:
    clean = split(*sample.records, **sample.aim(alpha))
    taken = noisy(*sample.records, **sample.aim(alpha))
    assert taken.threshold == clean.threshold
    assert clean.guarantee is Guarantee.MARGINAL
    assert taken.guarantee is Guarantee.NOMINAL
    assert LABELS_TAKEN_AS_TRUE in taken.assumptions
