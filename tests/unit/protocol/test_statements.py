"""What a score threshold states follows from its rounds: whom it speaks for, and every number."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from tacit.conformal import Answers, Calibration, Question
from tacit.errors import InvalidDocument
from tacit.protocol import (
    RoundResult,
    ScoreCampaign,
    ScoreThreshold,
    deciding_round,
)
from tests.unit.protocol.examples import OPENS, score_campaign, score_threshold

DELTA = 1e-8
SEARCHES = 30
PER_SITE = 8000
SLOW_FROM = 4
"""The slow site answers from this round on, after the search has narrowed on the other."""
CHANGING = score_campaign(delta=DELTA, planned_n=20 * PER_SITE, shares=(1,) * 10)


def low_scores(t: float) -> float:
    """F of the site that is there from the beginning."""
    return 1 - (1 - t) ** 8


def high_scores(t: float) -> float:
    """F of the slow one."""
    return t**8


def mixture(t: float, slow_share: float) -> float:
    return (1 - slow_share) * low_scores(t) + slow_share * high_scores(t)


def slow_share(number: int) -> float:
    return 0.5 if number >= SLOW_FROM else 0.0


def searched(terms: ScoreCampaign, generator: np.random.Generator) -> ScoreThreshold:
    """A search in which the mixture of sites changes between rounds."""
    search, flip = terms.state_machine(terms.planned_n), float(terms.channel.flip)
    step: Any = search.start()
    rounds: list[RoundResult] = []
    while isinstance(step, Question):
        sites = 2 if step.round >= SLOW_FROM else 1
        answers = sites * PER_SITE
        covered = mixture(step.threshold, slow_share(step.round))
        ones = int(generator.binomial(answers, flip + (1 - 2 * flip) * covered))
        rounds.append(
            RoundResult(threshold=step.threshold, ones=ones, answers=answers, sites=sites)
        )
        step = search.advance(step, Answers(ones, answers))
    return ScoreThreshold.of(terms, terms.planned_n, tuple(rounds), sites=2, as_of=OPENS)


@pytest.fixture(scope="module")
def changing() -> list[ScoreThreshold]:
    generator = np.random.default_rng(4)
    return [searched(CHANGING, generator) for _ in range(SEARCHES)]


def thresholds(found: list[ScoreThreshold]) -> Iterator[tuple[ScoreThreshold, float, int]]:
    """With each document its threshold and the round that decided."""
    for document in found:
        outcome, number = document.outcome(), deciding_round(CHANGING, document.rounds)
        assert isinstance(outcome, Calibration)
        assert number is not None
        yield document, outcome.threshold, number


def test_a_certificate_covers_the_mixture_that_it_names(changing: list[ScoreThreshold]) -> None:
    """False alarms: at most δ for each search, 3e-7 in all."""
    for _, found, number in thresholds(changing):
        assert mixture(found, slow_share(number)) >= 0.9


def test_a_certificate_does_not_speak_for_sites_that_missed_the_round_that_decided(
    changing: list[ScoreThreshold],
) -> None:
    for document, found, number in thresholds(changing):
        answers = [one.answers for one in document.rounds]
        late = sum(answers[SLOW_FROM:]) / 2 / sum(answers)
        assert mixture(found, late) < 0.8  # all who answered are not covered: it must not say so
        assert document.certificate is not None
        named = f"answered round {number + 1} of 10, which decided: 8000 answers, from 1 of the 2"
        assert number < SLOW_FROM
        assert named in document.certificate.statement
        said = " ".join((document.certificate.statement, *document.result["assumptions"]))
        assert "every site in each" not in said
        assert "the contributing sites" not in said


def test_the_round_that_decided_is_the_last_that_was_proved_though_another_asked_the_same() -> None:
    """With so many rounds the bracket gets as small as two doubles, and questions come again."""
    terms = score_campaign(delta=0.05, shares=(1,) * 64, planned_n=10**6)

    def answer(question: Question) -> Answers:
        return Answers(15_000, 15_000) if question.round == 0 else Answers(0, 15_001)

    document = score_threshold(terms, answer)
    asked = [one.threshold for one in document.rounds]
    assert asked.count(0.5) > 1
    assert document.result["threshold"] == 0.5
    assert deciding_round(terms, document.rounds) == 0
    shift = float(1 / ((1 - 2 * terms.channel.flip) * 15_000))
    assert document.hostile.shift_per_record == shift


def test_a_search_that_proved_nothing_speaks_for_everybody() -> None:
    terms = score_campaign(delta=0.05)
    document = score_threshold(terms, lambda _: Answers(0, 5000))
    assert deciding_round(terms, document.rounds) is None
    assert document.certificate is not None
    assert "largest score" in document.certificate.statement


NOMINAL = score_campaign()
PROVED = score_campaign(delta=0.05)
ANSWERS = {"count": 4000, "ones": 3700}


def honest(terms: ScoreCampaign) -> ScoreThreshold:
    return score_threshold(terms, lambda _: Answers(ANSWERS["ones"], ANSWERS["count"]))


def rounds_with(document: ScoreThreshold, **changes: object) -> tuple[RoundResult, ...]:
    return tuple(one.model_copy(update=changes) for one in document.rounds)


Lie = Callable[[ScoreThreshold], dict[str, object]]
LIES: dict[str, tuple[Lie, str]] = {
    "fewer asked than answered": (lambda _: {"asked_n": 15_999}, "more answers"),
    "another unit of privacy": (
        lambda found: {"privacy": found.privacy.model_copy(update={"unit": "a whole person"})},
        "privacy",
    ),
    "privacy without conditions": (
        lambda found: {"privacy": found.privacy.model_copy(update={"conditions": ()})},
        "privacy",
    ),
    "less harm": (
        lambda found: {"hostile": found.hostile.model_copy(update={"shift_per_record": 1e-9})},
        "hostile",
    ),
    "older than its campaign": (lambda _: {"as_of": OPENS - timedelta(hours=1)}, "older"),
}
IMPOSSIBLE_SITES: dict[str, int] = {"answers from no site": 0, "more sites than answers": 4001}


@pytest.mark.parametrize("terms", [NOMINAL, PROVED], ids=["nominal", "certified"])
@pytest.mark.parametrize(("lie", "says"), LIES.values(), ids=LIES.keys())
def test_a_statement_that_does_not_follow_from_the_rounds_is_refused(
    terms: ScoreCampaign, lie: Lie, says: str
) -> None:
    document = honest(terms)
    document.check_replay(terms)
    with pytest.raises(InvalidDocument, match=says):
        document.model_copy(update=lie(document)).check_replay(terms)


@pytest.mark.parametrize("terms", [NOMINAL, PROVED], ids=["nominal", "certified"])
@pytest.mark.parametrize("sites", [0, 1, 9, 10**9])
def test_sites_that_are_not_those_of_the_rounds_are_refused_whatever_the_certificate_says(
    terms: ScoreCampaign, sites: int
) -> None:
    rounds = honest(terms).rounds
    lying = ScoreThreshold.of(terms, terms.planned_n, rounds, sites=sites, as_of=OPENS)
    with pytest.raises(InvalidDocument, match="sites are not"):
        lying.check_replay(terms)


@pytest.mark.parametrize("sites", IMPOSSIBLE_SITES.values(), ids=IMPOSSIBLE_SITES.keys())
def test_a_round_of_sites_that_cannot_have_answered_is_refused(sites: int) -> None:
    document = honest(NOMINAL)
    lying = {"rounds": rounds_with(document, sites=sites), "sites": sites}
    with pytest.raises(InvalidDocument, match="at least one from each"):
        document.model_copy(update=lying).check_replay(NOMINAL)


def test_a_site_without_an_answer_is_refused() -> None:
    document = score_threshold(NOMINAL, lambda question: Answers(0, 50 * (question.round > 0)))
    first = document.rounds[0].model_copy(update={"sites": 1})
    lying = document.model_copy(update={"rounds": (first, *document.rounds[1:])})
    document.check_replay(NOMINAL)
    with pytest.raises(InvalidDocument, match="at least one from each"):
        lying.check_replay(NOMINAL)


def test_a_certificate_that_says_something_else_is_refused() -> None:
    document = honest(PROVED)
    assert document.certificate is not None
    true = document.certificate.statement
    for other in ("With certainty.", true.replace("2 of the 2", "3 of the 3"), true + " "):
        lying = document.certificate.model_copy(update={"statement": other})
        with pytest.raises(InvalidDocument, match="certificate"):
            document.model_copy(update={"certificate": lying}).check_replay(PROVED)


def test_a_threshold_that_nobody_answered_for_is_refused() -> None:
    for document in (
        score_threshold(NOMINAL, lambda _: Answers(0, 0)),
        ScoreThreshold.of(NOMINAL, 20_000, (), sites=0, as_of=OPENS),
    ):
        with pytest.raises(InvalidDocument, match="Nobody answered"):
            document.check_replay(NOMINAL)


def test_a_clock_that_is_a_little_behind_is_no_lie() -> None:
    document = honest(NOMINAL)
    early = document.model_copy(update={"as_of": OPENS - timedelta(minutes=4)})
    early.check_replay(NOMINAL)
