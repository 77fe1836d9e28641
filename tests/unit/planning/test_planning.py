import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.conformal.corrections import delta_labels, delta_scores
from tacit.errors import InvalidClassCount, InvalidEpsilon, InvalidParameter
from tacit.mechanisms import BinaryChannel, UniformChannel
from tacit.planning import Method, plan_labels, plan_scores, recommend

records = st.integers(1, 10**7)
classes = st.integers(2, 1000)
epsilons = st.floats(0.05, 10)
alphas = st.floats(0.01, 0.5)


@given(records, classes, epsilons, alphas)
def test_a_label_plan_is_certifiable_exactly_from_the_needed_n_on(
    n: int, k: int, epsilon: float, alpha: float
) -> None:
    plan = plan_labels(n, k, epsilon, alpha, 0.05)
    assert plan.certifiable == (n >= plan.needed)


@given(records, epsilons, alphas, st.floats(1e-6, 1))
def test_a_score_plan_is_certifiable_exactly_from_the_needed_n_on(
    n: int, epsilon: float, alpha: float, tau: float
) -> None:
    plan = plan_scores(n, epsilon, alpha, 0.05, tau=tau)
    assert plan.certifiable == (n >= plan.needed)


def test_plans_use_the_realized_channels() -> None:
    labels, scores = plan_labels(5000, 11, 1.3, 0.1, 0.05), plan_scores(5000, 1.3, 0.1, 0.05)
    replaced, flipped = UniformChannel.for_epsilon(11, 1.3), BinaryChannel.for_epsilon(1.3)
    assert labels.correction == delta_labels(5000, replaced.beta, 0.05)
    assert labels.epsilon == replaced.epsilon <= 1.3
    assert (labels.k, labels.beta) == (11, float(replaced.beta))
    assert scores.correction == delta_scores(500, flipped.flip, 10, 0.05)
    assert scores.epsilon == flipped.epsilon <= 1.3
    assert (scores.rounds, scores.batch, scores.flip) == (10, 500, float(flipped.flip))


def test_records_that_fill_no_whole_batch_do_not_count() -> None:
    assert plan_scores(5009, 1, 0.1, 0.05).correction == plan_scores(5000, 1, 0.1, 0.05).correction
    assert plan_scores(5010, 1, 0.1, 0.05).correction < plan_scores(5009, 1, 0.1, 0.05).correction


def test_fewer_records_than_rounds_are_a_plan_with_an_infinite_delta() -> None:
    plan = plan_scores(9, 1, 0.1, 0.05)
    assert (plan.batch, plan.correction, plan.certifiable) == (0, math.inf, False)
    assert plan.shuffled_epsilon == math.inf


def test_a_wider_score_takes_more_rounds() -> None:
    assert plan_scores(5000, 1, 0.1, 0.05, tau=0.25).rounds == 2
    assert plan_scores(5000, 1, 0.1, 0.05, tau=0.25, width=4).rounds == 4


def test_the_rule_of_thumb_for_the_shuffler_counts_the_answers_of_one_round() -> None:
    plan = plan_scores(4000, 2, 0.1, 0.05)
    assert plan.shuffled_epsilon == pytest.approx(2 / math.sqrt(400))
    assert "rule of thumb without a δ" in plan.shuffling


def test_plans_say_what_is_protected_and_that_labels_gain_nothing_from_shuffling() -> None:
    labels, scores = plan_labels(5000, 10, 1, 0.1, 0.05), plan_scores(5000, 1, 0.1, 0.05)
    assert "features or probabilities, which are disclosed" in labels.protects
    assert "does not amplify" in labels.shuffling
    assert "whole record" in scores.protects
    assert not hasattr(labels, "shuffled_epsilon")


def test_labels_are_recommended_where_only_their_delta_is_below_alpha() -> None:
    choice = recommend(2000, 10, 4, 0.1, 0.05)
    assert (choice.method, choice.reason) == (Method.LABELS, "the only Δ below α")
    assert choice.plan is choice.labels


def test_scores_are_recommended_where_only_their_delta_is_below_alpha() -> None:
    choice = recommend(20_000, 100, 2, 0.1, 0.05)
    assert (choice.method, choice.reason) == (Method.SCORES, "the only Δ below α")
    assert choice.plan is choice.scores


def test_the_smaller_delta_decides_where_both_are_below_alpha() -> None:
    few, many = recommend(100_000, 10, 3, 0.1, 0.05), recommend(100_000, 100, 3, 0.1, 0.05)
    assert (few.method, few.reason) == (Method.LABELS, "the smaller Δ")
    assert (many.method, many.reason) == (Method.SCORES, "the smaller Δ")


def test_the_smaller_need_decides_where_neither_delta_is_below_alpha() -> None:
    choice = recommend(3, 10, 1, 0.1, 0.05)
    assert choice.labels.correction < choice.scores.correction
    assert choice.scores.needed < choice.labels.needed
    assert (choice.method, choice.reason) == (Method.SCORES, "n too small for both; needs fewer")


@given(records, classes, epsilons, alphas)
def test_features_that_stay_leave_only_scores(n: int, k: int, epsilon: float, alpha: float) -> None:
    choice = recommend(n, k, epsilon, alpha, 0.05, features_may_leave=False)
    assert choice.method is Method.SCORES
    assert choice.reason.startswith("features stay")
    assert ("too small" in choice.reason) == (not choice.scores.certifiable)


@given(records, classes, epsilons, alphas)
def test_a_recommended_method_is_certifiable_whenever_one_of_them_is(
    n: int, k: int, epsilon: float, alpha: float
) -> None:
    choice = recommend(n, k, epsilon, alpha, 0.05)
    possible = choice.labels.certifiable or choice.scores.certifiable
    assert choice.plan.certifiable == possible


def test_levels_may_be_fractions() -> None:
    exact = plan_labels(5000, 10, 1, Fraction(1, 10), 0.05)  # type: ignore[arg-type]  # any terms
    assert exact == plan_labels(5000, 10, 1, 0.1, 0.05)


def test_terms_out_of_range_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="n must be"):
        recommend(0, 10, 1, 0.1, 0.05)
    with pytest.raises(InvalidClassCount):
        recommend(100, 1, 1, 0.1, 0.05)
    with pytest.raises(InvalidEpsilon):
        recommend(100, 10, -1, 0.1, 0.05)
    with pytest.raises(InvalidParameter, match="α"):
        recommend(100, 10, 1, 0, 0.05)
    with pytest.raises(InvalidParameter, match="δ"):
        recommend(100, 10, 1, 0.1, 1)
    with pytest.raises(InvalidParameter, match="τ"):
        recommend(100, 10, 1, 0.1, 0.05, tau=0)
    with pytest.raises(InvalidParameter, match="width"):
        plan_scores(100, 1, 0.1, 0.05, width=-1)
