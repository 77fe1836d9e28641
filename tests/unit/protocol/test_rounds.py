"""Questions, answers, and where a search stands."""

import json
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from tacit.errors import InvalidColumn, InvalidDocument, WrongSignature
from tacit.protocol import (
    AnswerUpload,
    Column,
    CurrentRound,
    RoundQuestion,
    RoundState,
    RoundStatus,
    SearchState,
    SigningKey,
)
from tacit.scores import Margin
from tests.unit.protocol.examples import DIGEST, answer_upload, respelled, score_campaign

KEY = SigningKey.generate()
CAMPAIGN = score_campaign(score=Margin())


def question(**fields: Any) -> RoundQuestion:
    asked: dict[str, Any] = {"campaign": CAMPAIGN.digest, "round": 3, "threshold": -0.25}
    return RoundQuestion(**(asked | fields))


def test_a_question_survives_the_way_over_the_wire_and_is_signed() -> None:
    sent = question()
    assert RoundQuestion.from_bytes(sent.to_bytes()) == sent
    opened = KEY.sign(sent).open(RoundQuestion, key=KEY.fingerprint)
    assert (opened.document, opened.digest) == (sent, sent.digest)
    opened.document.check(CAMPAIGN, CAMPAIGN.digest)


def test_a_signature_of_a_question_stands_under_nothing_else() -> None:
    signed = KEY.sign(question())
    with pytest.raises(WrongSignature):
        signed.open(type(CAMPAIGN), key=KEY.fingerprint)
    with pytest.raises(WrongSignature):
        KEY.sign(CAMPAIGN).open(RoundQuestion, key=KEY.fingerprint)


@pytest.mark.parametrize("threshold", [-1.0, -0.999, 0.0, 1.0])
@pytest.mark.parametrize("number", range(4))
def test_every_round_of_the_plan_may_ask_anywhere_in_the_scores_range(
    threshold: float, number: int
) -> None:
    question(threshold=threshold, round=number).check(CAMPAIGN, CAMPAIGN.digest)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"campaign": DIGEST}, "of another campaign"),
        ({"round": 4}, "a round that the campaign does not have"),
        ({"round": 63}, "a round that the campaign does not have"),
        ({"threshold": float(np.nextafter(1, 2))}, "outside the range of the score"),
        ({"threshold": float(np.nextafter(-1, -2))}, "outside the range of the score"),
        ({"threshold": 1e15}, "outside the range of the score"),
    ],
    ids=str,
)
def test_a_question_that_the_campaign_does_not_have_is_refused(
    fields: dict[str, Any], sentence: str
) -> None:
    asked = RoundQuestion.from_bytes(question(**fields).to_bytes())
    with pytest.raises(InvalidDocument, match=sentence):
        asked.check(CAMPAIGN, CAMPAIGN.digest)


@pytest.mark.parametrize(
    "fields",
    [
        *({"round": value} for value in (-1, 64, 1.5, "1", True, None)),
        *({"threshold": value} for value in (None, "0.5", 2.0**53, -(2.0**53), True)),
        {"campaign": "ab"},
        {"tacit": "campaign"},
        {"version": "1.0"},
        {"site": "north"},
    ],
    ids=str,
)
def test_what_is_no_question_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidDocument, match="not a"):
        RoundQuestion.from_bytes(respelled(question(), **fields))


def test_there_is_no_question_at_what_is_no_number() -> None:
    for threshold in (float("nan"), float("inf")):
        with pytest.raises(ValidationError):
            question(threshold=threshold)


def test_answers_survive_the_way_over_the_wire() -> None:
    sent = answer_upload([1, 0, 0, 1, 1])
    read = AnswerUpload.model_validate_json(sent.to_bytes())
    assert read == sent
    assert read.records == 5
    assert read.answers().tolist() == [1, 0, 0, 1, 1]
    assert read.to_bytes() == sent.to_bytes()


def test_a_hundred_thousand_answers_are_taken_and_not_one_more() -> None:
    assert answer_upload(np.ones(100_000)).answers().sum() == 100_000
    with pytest.raises(InvalidColumn, match="from 1 to 100000"):
        answer_upload(np.ones(100_001)).answers()


@pytest.mark.parametrize(
    ("bits", "sentence"),
    [
        (Column.of(np.zeros(0, dtype=np.uint8)), "from 1 to 100000"),
        (Column.of(np.zeros(3, dtype=np.int8)), r"a column of uint8 of shape \[3\]"),
        (Column.of(np.zeros((3, 1), dtype=np.uint8)), r"a column of uint8 of shape \[3\]"),
        (Column.of(np.array([0, 1, 2], dtype=np.uint8)), "0 or 1"),
        (Column.of(np.array([0, 255], dtype=np.uint8)), "0 or 1"),
        (Column(dtype="uint8", shape=(3,), data="AQ=="), "3 bytes"),
        (Column(dtype="uint8", shape=(1,), data="A?=="), "base64"),
        (Column(dtype="uint8", shape=(2**31 - 1,), data=""), "from 1 to 100000"),
    ],
    ids=str,
)
def test_answers_that_are_no_bits_are_refused_without_showing_one(
    bits: Column, sentence: str
) -> None:
    with pytest.raises(InvalidColumn, match=sentence) as caught:
        answer_upload(bits).answers()
    assert "255" not in str(caught.value)


@pytest.mark.parametrize(
    "fields",
    [
        {"version": "1.0"},
        {"round": -1},
        {"round": 64},
        {"question": "ef"},
        {"upload": DIGEST},
        {"labels": {"dtype": "uint8", "shape": [1], "data": "AA=="}},
        {"bits": None},
    ],
    ids=str,
)
def test_what_is_no_upload_of_answers_is_refused(fields: dict[str, Any]) -> None:
    content = json.loads(answer_upload().to_bytes()) | fields
    with pytest.raises(ValidationError):
        AnswerUpload.model_validate_json(json.dumps(content))


def test_answers_are_not_shown() -> None:
    assert "AAEB" in answer_upload().to_bytes().decode()
    assert "AAEB" not in repr(answer_upload())


def current(**fields: Any) -> CurrentRound:
    asked: dict[str, Any] = {
        "campaign": DIGEST,
        "state": SearchState.OPEN,
        "round": 3,
        "question": KEY.sign(question()),
        "ends_in": 12.5,
        "waiting_for": "Round 4 of 4 waits for 2 of 5 sites.",
    }
    return CurrentRound(**(asked | fields))


def test_an_open_search_has_a_question_and_no_other_has() -> None:
    assert CurrentRound.model_validate_json(current().model_dump_json()) == current()
    for state in (SearchState.ENROLLING, SearchState.OVER):
        assert current(state=state, round=None, question=None).round is None
        with pytest.raises(ValidationError, match="and no other has"):
            current(state=state)
    for missing in ({"round": None}, {"question": None}, {"round": None, "question": None}):
        with pytest.raises(ValidationError, match="an open search has"):
            current(**missing)


def test_a_round_status_survives_the_way_over_the_wire() -> None:
    status = RoundStatus(
        round=0,
        state=RoundState.CLOSED,
        threshold=0.5,
        low=0.0,
        high=1.0,
        answers=12,
        sites=2,
        coverage=1.25,
        ends_in=0.0,
        extensions=2,
        waiting_sites=0,
        waiting_for=(),
    )
    assert RoundStatus.model_validate_json(status.model_dump_json()) == status
