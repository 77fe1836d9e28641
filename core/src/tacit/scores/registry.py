"""Scores by the name they have in documents."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from tacit.errors import InvalidDocument, InvalidNoise, InvalidParameter
from tacit.scores.adaptive import APS, RAPS, RandomizedAPS
from tacit.scores.base import Score
from tacit.scores.hps import HPS
from tacit.scores.margin import Margin
from tacit.scores.rank import SAPS, TopK
from tacit.scores.robust import NoiseRobust

SCORES: dict[str, type[Score]] = {
    score.name: score for score in (HPS, APS, RandomizedAPS, RAPS, SAPS, TopK, Margin, NoiseRobust)
}
"""Every score by its name."""


def score_from_dict(document: Mapping[str, Any]) -> Score:
    """The score that `Score.to_dict` describes as {"name": …, parameter: value, …}."""
    if not isinstance(document, Mapping):
        raise InvalidDocument("A score is a JSON object with a name and its parameters.")
    parameters = dict(document)
    name = parameters.pop("name", None)
    if not isinstance(name, str) or name not in SCORES:
        raise InvalidDocument(f"There is no score named {name!r}, only {', '.join(SCORES)}.")
    kind = SCORES[name]
    expected = {field.name for field in fields(kind)}
    if parameters.keys() != expected:
        raise InvalidDocument(
            f"The parameters of {name} are {sorted(expected)}, not {sorted(map(str, parameters))}."
        )
    if kind is NoiseRobust:
        parameters["base"] = _base_from_dict(parameters["base"])
    try:
        return kind(**parameters)
    except (InvalidParameter, InvalidNoise) as error:
        raise InvalidDocument(f"A parameter of {name} is not valid. {error}") from error


def _base_from_dict(document: Mapping[str, Any]) -> Score:
    """The score inside a noise-robust one; looked at first, so that no document nests deeply."""
    if isinstance(document, Mapping) and document.get("name") == NoiseRobust.name:
        raise InvalidDocument("The base of a noise-robust score is a score that is not.")
    return score_from_dict(document)
