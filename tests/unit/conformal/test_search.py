"""LDP-CP-S and S* as state machines, against plain ones on the same answers and coins."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.conformal import (
    Answers,
    BinarySearch,
    Calibration,
    CertifiedSearch,
    Guarantee,
    NotCertifiable,
    Question,
    run,
)
from tacit.conformal.corrections import delta_scores
from tacit.conformal.results import EVERY_CLASS
from tacit.conformal.search import DISJOINT, INDEPENDENT, POPULATION_THERE, WHOEVER
from tacit.errors import InvalidClassCount, InvalidParameter
from tacit.mechanisms import BinaryChannel
from tacit.scores import APS, HPS, RAPS, Margin, Score, TopK
from tests.support import searches

SCORES: list[Score] = [HPS(), RAPS(0.1, 1), Margin(), TopK()]
channels = st.sampled_from([BinaryChannel.for_epsilon(e) for e in (0.5, 1.0, 4.0)]) | st.just(
    BinaryChannel(2**62)
)
alphas = st.sampled_from([0.05, 0.1, 0.25, 0.5])


@st.composite
def rounds_of_answers(draw: st.DrawFn) -> list[list[bool]]:
    """A few rounds of bits, some of them empty, many near nine in ten."""
    size = st.integers(0, 20)
    often = st.integers(0, 9).map(bool)
    answers = size.flatmap(lambda n: st.lists(often | st.booleans(), min_size=n, max_size=n))
    return draw(st.lists(answers, min_size=1, max_size=9))


def replay(
    search: BinarySearch | CertifiedSearch, rounds: Sequence[Sequence[bool]]
) -> tuple[Calibration | NotCertifiable, list[float]]:
    asked: list[float] = []
    step: Question | Calibration | NotCertifiable = search._first()
    while isinstance(step, Question):
        asked.append(step.threshold)
        step = search.advance(step, Answers.of(np.array(rounds[step.round], dtype=bool)))
    return step, asked


@given(rounds_of_answers(), channels, alphas, st.sampled_from(SCORES), st.integers(0, 4))
def test_the_thesis_search_asks_and_returns_what_a_plain_one_does(
    rounds: list[list[bool]], channel: BinaryChannel, alpha: float, score: Score, twentieths: int
) -> None:
    search = BinarySearch(score, 3, channel, alpha, 1000, len(rounds), twentieths / 20)
    result, asked = replay(search, rounds)
    plain = searches.thesis_search(
        lambda number, _: rounds[number],
        limits=score.range(3),
        rounds=len(rounds),
        ratio=channel.ratio,
        alpha=Fraction(str(alpha)),
        tolerance=Fraction(twentieths, 20),
    )
    assert isinstance(result, Calibration)
    assert asked == plain.asked
    assert (result.threshold, result.n) == (plain.threshold, plain.answered)
    assert (result.method, result.guarantee) == ("ldp-cp-s", Guarantee.NOMINAL)
    assert (result.epsilon, result.k, result.alpha) == (channel.epsilon, 3, alpha)


@given(rounds_of_answers(), channels, alphas, st.sampled_from(SCORES))
def test_the_certified_search_asks_and_returns_what_a_plain_one_does(
    rounds: list[list[bool]], channel: BinaryChannel, alpha: float, score: Score
) -> None:
    search = CertifiedSearch(score, 3, channel, alpha, 1000, len(rounds), 0.5)
    result, asked = replay(search, rounds)
    plain = searches.certified_search(
        lambda number, _: rounds[number],
        limits=score.range(3),
        rounds=len(rounds),
        ratio=channel.ratio,
        alpha=alpha,
        delta=0.5,
    )
    assert asked == plain.asked
    assert (result.method, result.n) == ("ldp-cp-s*", plain.answered)
    if isinstance(result, NotCertifiable):
        assert plain.threshold == score.range(3).high
        return
    assert (result.threshold, result.guarantee) == (plain.threshold, Guarantee.CERTIFIED)
    assert (result.notes == (EVERY_CLASS,)) is (result.threshold == score.range(3).high)


def certified(rounds: int = 4, n: int = 40_000) -> CertifiedSearch:
    return CertifiedSearch(HPS(), 10, BinaryChannel.for_epsilon(4.0), 0.1, n, rounds, 0.05)


def thesis(rounds: int = 4, tolerance: float = 0.0) -> BinarySearch:
    channel = BinaryChannel.for_epsilon(4.0)
    return BinarySearch(HPS(), 10, channel, 0.1, 4000, rounds, tolerance)


YES, NO, NOBODY = Answers(10_000, 10_000), Answers(0, 10_000), Answers(0, 0)


@pytest.mark.parametrize("search", [thesis(), certified()])
def test_the_same_answers_give_the_same_questions(search: BinarySearch | CertifiedSearch) -> None:
    first = search.start()
    assert isinstance(first, Question)
    assert search.start() == first
    assert search.advance(first, YES) == search.advance(first, YES)
    assert search.start() == first


def test_an_upper_end_that_moved_is_returned_and_not_the_last_midpoint() -> None:
    """Yes at .5, then no, no, no: asked .5, .25, .375, .4375; only .5 was ever certified."""
    answers = iter([YES, NO, NO, NO])
    result = run(certified(), lambda _: next(answers))
    assert isinstance(result, Calibration)
    assert result.threshold == 0.5
    assert result.notes == ()
    assert result.coverage > 1  # every bit said yes: the de-biased estimate lies above 1
    answers = iter([YES, NO, NO, NO])
    nominal = run(thesis(), lambda _: next(answers))
    assert isinstance(nominal, Calibration)
    assert nominal.threshold == 0.4375


def test_an_upper_end_that_never_moved_is_the_largest_score_and_says_so() -> None:
    result = run(certified(), lambda _: NO)
    assert isinstance(result, Calibration)
    assert result.threshold == 1.0
    assert result.coverage == 1.0
    assert result.notes == (EVERY_CLASS,)


def test_a_round_that_nobody_answered_decides_nothing() -> None:
    for search in (thesis(), certified()):
        first = search.start()
        assert isinstance(first, Question)
        again = search.advance(first, NOBODY)
        assert isinstance(again, Question)
        assert (again.threshold, again.low, again.high) == (first.threshold, first.low, first.high)
        assert (again.round, again.answered) == (1, 0)


@pytest.mark.parametrize("answers", [NOBODY, Answers(9, 10), Answers(0, 90)])
def test_a_certified_search_with_too_few_answers_says_how_many_would_do(answers: Answers) -> None:
    search = certified()
    result = run(search, lambda _: answers)
    assert isinstance(result, NotCertifiable)
    assert result.n == 4 * answers.count
    assert isinstance(certified(n=result.needed).start(), Question)
    assert isinstance(certified(n=result.needed - 1).start(), NotCertifiable)


def test_a_certified_result_states_the_failure_probability_and_the_margin_it_was_proved_by() -> (
    None
):
    """A round of 5,000 answers proves less than the 10,000 that were planned."""
    search = certified()
    answers = iter([Answers(5000, 5000), NO, NO, NO])
    result = run(search, lambda _: next(answers))
    assert isinstance(result, Calibration)
    assert (result.threshold, result.delta) == (0.5, 0.05)
    assert result.correction == delta_scores(5000, search.channel.flip, 4, 0.05)
    never = run(search, lambda _: NO)
    assert isinstance(never, Calibration)
    assert (never.delta, never.correction) == (
        0.05,
        delta_scores(10_000, search.channel.flip, 4, 0.05),
    )


def test_a_certified_result_states_all_that_its_proof_assumes() -> None:
    result = run(certified(), lambda _: YES)
    assert isinstance(result, Calibration)
    assert {POPULATION_THERE, DISJOINT, WHOEVER, INDEPENDENT} <= set(result.assumptions)


@given(rounds_of_answers(), channels, alphas)
def test_the_last_round_that_decides_is_where_the_result_comes_from(
    rounds: list[list[bool]], channel: BinaryChannel, alpha: float
) -> None:
    plan = (HPS(), 3, channel, alpha, 1000, len(rounds))
    for search in (BinarySearch(*plan), CertifiedSearch(*plan, 0.9)):
        result, asked = replay(search, rounds)
        given = [Answers.of(np.array(bits, dtype=bool)) for bits in rounds]
        deciding = [number for number in range(len(asked)) if search.decides(given[number])]
        if not deciding:
            assert isinstance(result, NotCertifiable) or result.threshold == 1.0
            continue
        assert isinstance(result, Calibration)
        assert result.threshold == asked[deciding[-1]]
        assert result.coverage == float(search.estimate(given[deciding[-1]]))


def test_a_question_of_a_round_that_a_search_does_not_have_is_refused() -> None:
    search = thesis(rounds=4)
    beyond = replace(search.start(), round=4)
    with pytest.raises(InvalidParameter):
        search.advance(beyond, YES)


def test_a_search_goes_on_from_a_saved_question(tmp_path: Path) -> None:
    search = certified()
    first = search.start()
    assert isinstance(first, Question)
    second = search.advance(first, YES)
    assert isinstance(second, Question)
    second.save(tmp_path / "question.json")
    loaded = Question.load(tmp_path / "question.json")
    assert loaded == second
    assert search.advance(loaded, NO) == search.advance(second, NO)


def test_fewer_records_than_rounds_are_not_certifiable() -> None:
    result = certified(rounds=10, n=5).start()
    assert isinstance(result, NotCertifiable)
    assert result.correction is None
    assert str(result.needed) in str(result)
    assert NotCertifiable.from_json(result.to_json()) == result


def test_a_search_planned_with_numbers_of_numpy_can_be_saved() -> None:
    plan: Any = (
        HPS(),
        np.int64(3),
        BinaryChannel.for_epsilon(4.0),
        np.float64(0.1),
        np.int64(5000),
    )
    for kind in (BinarySearch, CertifiedSearch):
        search: Any = kind(*plan)
        result = run(search, lambda _: Answers(np.int64(500), np.int64(500)))  # type: ignore[arg-type]
        assert isinstance(result, Calibration)
        assert Calibration.from_json(result.to_json()) == result


def test_a_search_stops_at_an_estimate_within_half_of_the_tolerance() -> None:
    """The flip probability is 1/4, so 7 yeses of 10 estimate exactly 9/10 = 1-α."""
    search = BinarySearch(HPS(), 2, BinaryChannel(2**62), 0.1, 100, 5, 0.0)
    result = search.advance(search.start(), Answers(7, 10))
    assert isinstance(result, Calibration)
    assert (result.threshold, result.coverage, result.n) == (0.5, 0.9, 10)
    assert isinstance(search.advance(search.start(), Answers(6, 10)), Question)
    tolerant = BinarySearch(HPS(), 2, BinaryChannel(2**62), 0.1, 100, 5, 0.4)
    assert isinstance(tolerant.advance(tolerant.start(), Answers(6, 10)), Calibration)
    assert isinstance(tolerant.advance(tolerant.start(), Answers(5, 10)), Question)


def test_few_answers_in_a_round_need_a_larger_margin() -> None:
    """Δ_S is that of the answers that came, not of the batch that was planned."""
    search = certified()
    first = search.start()
    assert isinstance(first, Question)
    share = 97
    many = search.advance(first, Answers(share * 100, 10_000))
    few = search.advance(first, Answers(share, 100))
    assert isinstance(many, Question)
    assert isinstance(few, Question)
    assert (many.high, few.high) == (0.5, 1.0)


@pytest.mark.parametrize(
    ("epsilon", "rounds", "alpha", "delta"),
    [(4, 10, 0.1, 0.05), (1, 3, 0.2, 0.001), (8, 1, 0.5, 0.5)],
)
def test_s_star_is_not_certifiable_exactly_below_the_n_that_would_do(
    epsilon: float, rounds: int, alpha: float, delta: float
) -> None:
    channel = BinaryChannel.for_epsilon(epsilon)

    def start(n: int) -> Question | NotCertifiable:
        return CertifiedSearch(APS(), 5, channel, alpha, n, rounds, delta).start()

    few = start(rounds)
    assert isinstance(few, NotCertifiable)
    assert (few.method, few.n, few.alpha, few.delta) == ("ldp-cp-s*", rounds, alpha, delta)
    assert few.epsilon == channel.epsilon
    assert isinstance(start(few.needed), Question)
    assert isinstance(start(few.needed - 1), NotCertifiable)
    for batch in range(1, few.needed // rounds + 3):
        too_few = searches.hoeffding(batch, channel.ratio, rounds, delta) >= alpha
        assert isinstance(start(batch * rounds), NotCertifiable) is too_few


def test_a_search_that_cannot_certify_asks_nothing() -> None:
    def unasked(_: Question) -> Answers:
        raise AssertionError("a question was put")

    assert isinstance(run(certified(n=40), unasked), NotCertifiable)


def test_the_thesis_search_needs_a_record_per_round() -> None:
    with pytest.raises(InvalidParameter):
        BinarySearch(HPS(), 3, BinaryChannel.for_epsilon(1.0), 0.1, 9, 10)


def test_a_thesis_search_that_nobody_answers_ends_with_every_class() -> None:
    result = run(thesis(), lambda _: NOBODY)
    assert isinstance(result, Calibration)
    assert (result.threshold, result.coverage, result.n) == (1.0, 1.0, 0)
    assert EVERY_CLASS in result.notes


def test_the_coverage_stated_is_of_the_last_question_that_was_answered() -> None:
    search = BinarySearch(HPS(), 2, BinaryChannel.for_epsilon(4.0), 0.1, 1000, 2)
    second = search.advance(search.start(), Answers(450, 500))
    assert isinstance(second, Question)
    result = search.advance(second, Answers(0, 0))
    assert isinstance(result, Calibration)
    assert result.threshold == 0.5
    assert result.coverage == float(search.estimate(Answers(450, 500)))


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"alpha": 0.0}, InvalidParameter),
        ({"alpha": 1.0}, InvalidParameter),
        ({"alpha": float("nan")}, InvalidParameter),
        ({"k": 1}, InvalidClassCount),
        ({"k": 2.5}, InvalidClassCount),
        ({"rounds": 0}, InvalidParameter),
        ({"rounds": -2}, InvalidParameter),
        ({"rounds": 2.0}, InvalidParameter),
        ({"n": 0}, InvalidParameter),
        ({"alpha": "0.1"}, InvalidParameter),
        ({"n": 100.0}, InvalidParameter),
    ],
)
def test_plans_that_make_no_sense_are_refused(
    change: dict[str, object], error: type[Exception]
) -> None:
    channel = BinaryChannel.for_epsilon(1.0)
    plan = {"score": HPS(), "k": 3, "channel": channel, "alpha": 0.1, "n": 100, "rounds": 10}
    for kind in (BinarySearch, CertifiedSearch):
        with pytest.raises(error):
            kind(**{**plan, **change})  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [-0.1, float("nan"), float("inf")])
def test_a_tolerance_that_is_no_distance_is_refused(value: float) -> None:
    with pytest.raises(InvalidParameter):
        thesis(tolerance=value)


@pytest.mark.parametrize("delta", [0.0, 1.0, -1.0, float("nan")])
def test_a_failure_probability_outside_0_and_1_is_refused(delta: float) -> None:
    with pytest.raises(InvalidParameter):
        CertifiedSearch(HPS(), 3, BinaryChannel.for_epsilon(1.0), 0.1, 100, 10, delta)
