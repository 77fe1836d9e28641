"""Terms of a campaign as they are written on a command line."""

import dataclasses
import re
from datetime import UTC, datetime, timedelta

from tacit import command
from tacit.protocol import Features, Model
from tacit.scores import NoiseRobust, Score
from tacit.scores.registry import SCORES
from tacit_client.cli.errors import BadOption

_UNITS = {
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
}
_SCORES = {name: kind for name, kind in SCORES.items() if kind is not NoiseRobust}
"""Those whose parameters are numbers."""


def whole_number(text: str) -> int:
    """An integer, which may be written like 1e6 or 10_000."""
    try:
        return command.whole_number(text)
    except ValueError:
        raise BadOption(f"{text} is not a whole number.") from None


def score(text: str) -> Score:
    """A score by its name, with its parameters behind a colon: aps, raps:0.1,2."""
    name, _, listed = text.partition(":")
    kind = _SCORES.get(name)
    if kind is None:
        raise BadOption(f"There is no score {name}. There are: {', '.join(_SCORES)}.")
    parameters = dataclasses.fields(kind)
    values = listed.split(",") if listed else []
    if len(values) != len(parameters):
        names = ",".join(parameter.name.upper() for parameter in parameters)
        raise BadOption(f"Write the score as {name}{':' if names else ''}{names}.")
    numbers = {
        parameter.name: _number(value, whole=parameter.type is int)
        for parameter, value in zip(parameters, values, strict=True)
    }
    return kind(**numbers)


def _number(text: str, *, whole: bool) -> float:
    try:
        return int(text) if whole else float(text)
    except ValueError:
        kind = "whole number" if whole else "number"
        raise BadOption(f"A parameter of the score must be a {kind}.") from None


def moment(text: str, now: datetime) -> datetime:
    """A date such as 2026-03-01 or 2026-03-01T12:00Z (UTC if it says nothing), or 90m, 12h, 7d."""
    if ahead := _ahead(text):
        return (now + ahead).replace(microsecond=0)
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise BadOption(
            f"{text} is not a date. Write 2026-03-01, 2026-03-01T12:00Z, or a time from now: 7d."
        ) from None
    aware = found if found.tzinfo else found.replace(tzinfo=UTC)
    return aware.astimezone(UTC).replace(microsecond=0)


def duration(text: str) -> timedelta:
    """A time such as 90s, 30m, 12h or 7d."""
    found = _ahead(text)
    if not found:
        raise BadOption(f"{text} is not a time. Write 90s, 30m, 12h or 7d.")
    return found


def _ahead(text: str) -> timedelta | None:
    match = re.fullmatch(r"(\d{1,5})([smhd])", text)
    return int(match[1]) * _UNITS[match[2]] if match else None


def classes(names: str | None, k: int | None) -> tuple[str, ...]:
    """The classes, by names separated by commas or by how many there are."""
    if (names is None) == (k is None):
        raise BadOption("Say either --classes with the names or --k with their number.")
    if names is not None:
        return tuple(name.strip() for name in names.split(","))
    if k is None or not 2 <= k <= 2**16:
        raise BadOption("--k is from 2 to 65536.")
    return tuple(str(number) for number in range(k))


def features(text: str, model: str | None) -> Features:
    """Features as dtype:shape, like uint8:28,28,3, and the model that scores them."""
    dtype, shape = _type_and_shape(text)
    if model is None:
        raise BadOption("--features needs --model, the digest of the registered model.")
    return Features(model=model, dtype=dtype, shape=shape)  # type: ignore[arg-type]  # checked there


def fetched_model(text: str | None, model: str | None, outputs: str) -> Model | None:
    """The model that sites fetch and run on features, if they do."""
    if text is None and model is None:
        return None
    if text is None or model is None:
        raise BadOption(
            "A model that sites fetch needs --model, the digest of the registered ONNX file, and"
            " --features, what it takes: uint8:28,28,3."
        )
    dtype, shape = _type_and_shape(text)
    return Model(digest=model, dtype=dtype, shape=shape, outputs=outputs)  # type: ignore[arg-type]  # the same


def _type_and_shape(text: str) -> tuple[str, tuple[int, ...]]:
    dtype, _, listed = text.partition(":")
    try:
        return dtype, tuple(int(extent) for extent in listed.split(",")) if listed else ()
    except ValueError:
        raise BadOption("Write --features as type:shape, like uint8:28,28,3.") from None
