"""Scores in documents."""

import json
from typing import Any

import pytest
from hypothesis import given

from tacit.errors import InvalidDocument
from tacit.scores import APS, HPS, RAPS, SAPS, NoiseRobust, Score, score_from_dict
from tests.unit.scores.strategies import scores


@given(score=scores())
def test_a_score_comes_back_from_its_json(score: Score) -> None:
    assert score_from_dict(json.loads(json.dumps(score.to_dict()))) == score


@given(score=scores())
def test_a_noise_robust_score_comes_back_with_its_base(score: Score) -> None:
    robust = NoiseRobust(score, beta=0.25)
    assert score_from_dict(json.loads(json.dumps(robust.to_dict()))) == robust


def test_a_document_names_the_score_and_its_parameters() -> None:
    assert RAPS(a=0.01, b=5).to_dict() == {"name": "raps", "a": 0.01, "b": 5}
    assert SAPS(weight=0.1).to_dict() == {"name": "saps", "weight": 0.1}
    assert HPS().to_dict() == {"name": "hps"}


def test_scores_are_equal_if_their_parameters_are() -> None:
    assert RAPS(a=0.01, b=5) == RAPS(a=0.01, b=5)
    assert RAPS(a=0.01, b=5) != RAPS(a=0.01, b=6)
    assert len({HPS(), HPS(), APS()}) == 2


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"name": "unknown"},
        {"name": None},
        {"name": ["hps"]},
        {"name": "hps", "a": 1},
        {"name": "raps"},
        {"name": "raps", "a": 0.1},
        {"name": "raps", "a": 0.1, "b": 1, "c": 2},
        {"name": "raps", "a": "0.1", "b": 1},
        {"name": "raps", "a": 0.1, "b": 1.0},
        {"name": "raps", "a": -0.1, "b": 1},
        {"name": "raps", "a": True, "b": 1},
        {"name": "saps", "weight": None},
        {"name": "hps", 1: 2},
        {"name": "noise-robust", "base": {"name": "hps"}, "beta": 1},
        {"name": "noise-robust", "base": "hps", "beta": 0.1},
        {"name": "noise-robust", "base": NoiseRobust(HPS(), 0.1).to_dict(), "beta": 0.1},
        "hps",
        None,
    ],
    ids=repr,
)
def test_documents_that_describe_no_score_are_refused(wrong: Any) -> None:
    with pytest.raises(InvalidDocument):
        score_from_dict(wrong)
