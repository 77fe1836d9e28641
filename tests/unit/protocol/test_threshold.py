"""Threshold documents hold a result of the core's, and nothing that contradicts it."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from tacit.conformal import Calibration, NotCertifiable
from tacit.errors import InvalidDocument, TacitError, UpgradeRequired
from tacit.protocol import HostileContributors, Privacy, Threshold
from tests.unit.protocol.examples import campaign, respelled, threshold

CAMPAIGN = campaign(delta=0.05)
NOMINAL = threshold(CAMPAIGN)
SHORT = threshold(CAMPAIGN, starred=True)
STARRED = threshold(CAMPAIGN, starred=True, n=5000)


@pytest.mark.parametrize(
    ("document", "kind"),
    [(NOMINAL, Calibration), (SHORT, NotCertifiable), (STARRED, Calibration)],
    ids=["nominal", "too few", "starred"],
)
def test_a_threshold_survives_the_way_over_the_wire(document: Threshold, kind: type) -> None:
    read = Threshold.from_bytes(document.to_bytes())
    assert read == document
    assert isinstance(read.outcome(), kind)
    assert read.outcome() == document.outcome()
    assert read.certificate is None


@pytest.mark.parametrize(
    "result",
    [
        {},
        {"tacit": "coverage sketch"},
        {"tacit": ["calibration"]},
        {**NOMINAL.result, "threshold": 7},
        {**NOMINAL.result, "threshold": None},
        {**NOMINAL.result, "n": 10**30},
        {**NOMINAL.result, "n": 1.5},
        {**NOMINAL.result, "extra": 1},
        {**NOMINAL.result, "k": 4},
        {**NOMINAL.result, "score": {"name": "hps", "base": []}},
        {**NOMINAL.result, "delta": 0.05},
        {**NOMINAL.result, "epsilon": 1.0},
        {name: value for name, value in NOMINAL.result.items() if name != "alpha"},
        STARRED.result,
        SHORT.result,
    ],
)
def test_a_result_that_is_none_or_another_is_refused(result: dict[str, Any]) -> None:
    content = json.dumps(NOMINAL.model_dump(mode="json") | {"result": result}, sort_keys=True)
    with pytest.raises(InvalidDocument, match="not a valid threshold"):
        Threshold.from_bytes(content.encode())


@pytest.mark.parametrize(
    "fields",
    [
        {"which": "certified"},
        {"which": "starred"},
        {"final": 1},
        {"sites": -1},
        {"sites": 2**53},
        {"sites": True},
        {"campaign": "ab"},
        {"classes": ["a", "b"]},
        {"certificate": {}},
        {"tacit": "campaign"},
        {"hostile": {"shift_per_record": -1}},
        {"privacy": {"epsilon": 1, "unit": "a label", "conditions": []}},
        {"privacy": {"epsilon": "2", "unit": "a label", "conditions": []}},
        {"unknown": 1},
    ],
    ids=str,
)
def test_a_threshold_with_a_wrong_field_is_refused(fields: dict[str, Any]) -> None:
    content = json.dumps(NOMINAL.model_dump(mode="json") | fields).encode()
    with pytest.raises(TacitError, match="not a"):
        Threshold.from_bytes(content)


def test_another_spelling_of_a_threshold_is_refused() -> None:
    with pytest.raises(InvalidDocument, match="canonical"):
        Threshold.from_bytes(json.dumps(NOMINAL.model_dump(mode="json")).encode())


def test_a_threshold_of_another_version_says_to_upgrade() -> None:
    with pytest.raises(UpgradeRequired):
        Threshold.from_bytes(respelled(NOMINAL, version="1.2"))


def test_numbers_that_are_not_finite_cannot_be_put_into_a_threshold() -> None:
    for value in (float("nan"), float("inf")):
        with pytest.raises(ValidationError):
            threshold(CAMPAIGN, result={**NOMINAL.result, "coverage": value})
        with pytest.raises(ValidationError):
            HostileContributors(shift_per_record=value)
        with pytest.raises(ValidationError):
            Privacy(epsilon=value, unit="a label", conditions=())


def test_what_json_does_not_know_cannot_be_put_into_a_threshold() -> None:
    for value in (b"bytes", (1, 2), {1}, object()):
        with pytest.raises(ValidationError):
            threshold(CAMPAIGN, result={**NOMINAL.result, "notes": value})


def test_text_that_is_no_unicode_cannot_be_written() -> None:
    privacy = Privacy(epsilon=CAMPAIGN.epsilon, unit="\ud800", conditions=())
    with pytest.raises((InvalidDocument, ValidationError)):
        threshold(CAMPAIGN, privacy=privacy).to_bytes()
