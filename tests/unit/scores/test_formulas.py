"""Every score against its formula, written plainly and computed by brute force."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from numpy.typing import NDArray

from tacit.scores import APS, HPS, RAPS, SAPS, Margin, RandomizedAPS, Score, TopK
from tests.unit.scores.reference import clipped_score, descending_sum, exact_sum, plain_score
from tests.unit.scores.strategies import Records, dyadic_records, float_records, scores

TIED = np.array([[0.4, 0.2, 0.2, 0.2]])


@given(records=dyadic_records(), score=scores())
def test_scores_of_dyadic_rows_equal_the_formulas_in_rational_arithmetic(
    records: Records, score: Score
) -> None:
    computed = score.of_all(records.probabilities, records.uniforms_for(score))
    for i, floats in enumerate(records.probabilities):
        row = [Fraction(p) for p in floats.tolist()]
        u = Fraction(float(records.uniforms[i]))
        for y in range(records.k):
            expected = plain_score(score, row, y, u, exact_sum)
            assert Fraction(float(computed[i, y])) == expected


@given(records=float_records(), score=scores())
def test_scores_of_any_row_equal_the_formulas_summed_in_descending_order_bit_for_bit(
    records: Records, score: Score
) -> None:
    computed = score.of_all(records.probabilities, records.uniforms_for(score))
    for i, row in enumerate(records.probabilities.tolist()):
        for y in range(records.k):
            expected = clipped_score(score, row, y, float(records.uniforms[i]), descending_sum)
            assert computed[i, y] == expected


@given(records=float_records(), score=scores())
def test_scores_of_any_row_are_close_to_the_formulas_summed_without_rounding(
    records: Records, score: Score
) -> None:
    computed = score.of_all(records.probabilities, records.uniforms_for(score))
    for i, row in enumerate(records.probabilities.tolist()):
        for y in range(records.k):
            expected = clipped_score(score, row, y, float(records.uniforms[i]), math.fsum)
            assert computed[i, y] == pytest.approx(expected, abs=1e-12)


def aps_without_merging_ties(probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    """The usual mistake: classes of equal probability get the sums at their places in a sort."""
    order = np.argsort(-probabilities, axis=1, kind="stable")
    sums = np.cumsum(np.take_along_axis(probabilities, order, axis=1), axis=1)
    result = np.empty_like(probabilities)
    np.put_along_axis(result, order, sums, axis=1)
    return result


def test_tied_classes_share_one_aps_which_a_plain_argsort_gets_wrong() -> None:
    expected = [[0.4, 1.0, 1.0, 1.0]]
    assert APS().of_all(TIED).tolist() == expected
    assert sorted(APS().multiset(TIED)[0].tolist()) == expected[0]
    assert [APS().of_labels(TIED, [y])[0] for y in range(4)] == expected[0]
    assert aps_without_merging_ties(TIED).tolist() != expected


def test_randomized_aps_counts_only_the_classes_that_are_more_probable() -> None:
    table = [[0.5, 0.25, 0.25]]
    assert RandomizedAPS().of_all(table, [0.5]).tolist() == [[0.25, 0.625, 0.625]]
    assert RandomizedAPS().of_all(table, [0.0]).tolist() == [[0.0, 0.5, 0.5]]


def test_raps_penalizes_ranks_beyond_b_and_exceeds_one() -> None:
    assert RAPS(a=0.5, b=1).of_all(TIED).tolist() == [[0.4, 2.5, 2.5, 2.5]]
    assert RAPS(a=0.5, b=10**30).of_all(TIED).tolist() == APS().of_all(TIED).tolist()


def test_raps_adds_its_penalty_to_an_aps_of_at_most_one() -> None:
    rough = np.array([[0.5, 0.3, 0.200008, 0.0]])
    penalties = 0.5 * np.arange(4)
    assert (RAPS(a=0.5, b=1).of_all(rough) == APS().of_all(rough) + penalties).all()


def test_impossible_classes_are_tied_at_the_last_rank_where_the_penalty_is_largest() -> None:
    # Ranks 2 and 3 have the same penalty of 0 and the same sum of 1, rank 4 does not.
    assert RAPS(a=0.5, b=3).multiset([[1.0, 0.0, 0.0, 0.0]]).tolist() == [[1.0, 1.5, 1.5, 1.5]]


def test_top_k_gives_tied_classes_their_last_rank() -> None:
    assert TopK().of_all(TIED).tolist() == [[1, 4, 4, 4]]
    assert TopK().of_all([[0.25, 0.25, 0.5, 0.0]]).tolist() == [[3, 3, 1, 4]]


def test_saps_weighs_ranks_and_has_no_rank_one_when_the_top_is_tied() -> None:
    score = SAPS(weight=0.25)
    assert score.of_all([[0.5, 0.375, 0.125]], [0.5]).tolist() == [[0.25, 0.625, 0.875]]
    assert score.of_all([[0.375, 0.375, 0.25]], [0.5]).tolist() == [[0.5, 0.5, 0.75]]


def test_margin_is_zero_for_tied_best_classes_and_negative_for_a_sole_one() -> None:
    assert Margin().of_all([[0.5, 0.25, 0.25]]).tolist() == [[-0.25, 0.25, 0.25]]
    assert Margin().of_all([[0.5, 0.5, 0.0]]).tolist() == [[0.0, 0.0, 0.5]]


def test_hps_separates_classes_at_thresholds_below_one_half() -> None:
    of_all = HPS().of_all([[0.75, 0.25]])
    assert (of_all <= 0.25).tolist() == [[True, False]]
    assert (of_all <= 0.2).tolist() == [[False, False]]


@pytest.mark.parametrize(
    ("score", "expected"),
    [
        (HPS(), (0, 1)),
        (APS(), (0, 1)),
        (RandomizedAPS(), (0, 1)),
        (RAPS(a=0.5, b=2), (0, 5)),
        (RAPS(a=0.5, b=11), (0, 1)),
        (TopK(), (1, 10)),
        (SAPS(weight=0.5), (0, 5.5)),
        (Margin(), (-1, 1)),
    ],
)
def test_each_score_states_its_range(score: Score, expected: tuple[float, float]) -> None:
    assert score.range(10) == expected
