"""The threshold document of a score campaign: the replayed result, and how far a liar moves it."""

import time

import pytest

from tacit.conformal import NotCertifiable
from tacit.errors import InvalidDocument
from tacit.protocol import RoundResult, ScoreCampaign, ScoreThreshold
from tacit_aggregator.results.score_statement import score_threshold_of
from tests.support.score_campaigns import CERTIFIABLE, library, score_document


def found(document: ScoreCampaign, *given: tuple[float, int, int]) -> ScoreThreshold:
    """The document of rounds with these questions, ones and answers."""
    rounds = tuple(
        RoundResult(threshold=asked, ones=ones, answers=answers, sites=1 if answers else 0)
        for asked, ones, answers in given
    )
    return score_threshold_of(document, document.planned_n, rounds, 1, time.time())


def shift(document: ScoreCampaign, n: int) -> float:
    return float(1 / ((1 - 2 * document.channel.flip) * n))


def test_the_result_is_the_replayed_one() -> None:
    document = score_document(round_count=2)
    threshold = found(document, (0.5, 9, 9), (0.25, 1, 7))
    assert threshold.result == library(document, 40, [(9, 9), (1, 7)])
    threshold.check_replay(document)


def test_the_last_round_at_the_threshold_decides() -> None:
    document = score_document(round_count=2)
    assert found(document, (0.5, 9, 9), (0.25, 1, 7)).hostile.shift_per_record == shift(document, 7)


def test_a_round_that_nobody_answered_decides_nothing() -> None:
    document = score_document(round_count=2)
    threshold = found(document, (0.5, 9, 9), (0.25, 0, 0))
    assert threshold.result["threshold"] == 0.5
    assert threshold.hostile.shift_per_record == shift(document, 9)


def test_where_no_question_is_the_threshold_the_smallest_round_is_stated() -> None:
    document = score_document(**CERTIFIABLE)
    threshold = found(document, (0.5, 0, 70), (0.75, 0, 60))
    assert threshold.result["threshold"] == 1.0
    assert threshold.hostile.shift_per_record == shift(document, 60)
    assert threshold.certificate is not None


def test_what_is_not_certifiable_has_no_certificate() -> None:
    document = score_document(**CERTIFIABLE)
    threshold = found(document, (0.5, 0, 3))
    assert isinstance(threshold.outcome(), NotCertifiable)
    assert threshold.certificate is None


def test_questions_that_the_search_would_not_ask_are_refused() -> None:
    with pytest.raises(InvalidDocument):
        found(score_document(round_count=2), (0.4, 1, 2))
