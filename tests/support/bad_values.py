"""Bodies that a schema of the OpenAPI document does not allow, made from the schema itself."""

import copy
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.support.schemas import Json, Place, Schemas, name_of

MARKER = "marker7Zq"
"""Stands in every wrong string and must come back in no answer and no log."""
NUMBER = 8642097531864209753
"""The same for numbers; more than 2^53."""

_ENDLESS = "@endless@"
_DEEP = 300


@dataclass(frozen=True)
class Wrong:
    """A body with one thing wrong."""

    field: str
    """Like labels.shape[]; empty: the body as a whole."""
    what: str
    body: bytes


def encoded(value: Any) -> bytes:
    """JSON, canonical if the value is in ASCII and its numbers are finite."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return text.replace(f'"{_ENDLESS}"', "7" * 6000).encode()


def wrong_bodies(schemas: Schemas, schema: Json, good: Json) -> Iterator[Wrong]:
    """The good body with one field wrong, for each field and each way to be wrong."""
    for place, part in schemas.places(schema, good):
        value = _at(good, place)
        for what, bad in _wrong_values(schemas, part, value):
            yield Wrong(name_of(place), what, encoded(_with(good, place, bad)))
        if isinstance(value, dict) and not schemas.allows(part, {**value, MARKER: 1}):
            yield from _wrong_keys(schemas, part, good, place)


def _wrong_keys(schemas: Schemas, schema: Json, good: Json, place: Place) -> Iterator[Wrong]:
    value: Json = _at(good, place)
    body = encoded(_with(good, place, {**value, MARKER: NUMBER}))
    yield Wrong(name_of(place), "an unknown field", body)
    for name in value:
        field = name_of((*place, name))
        less = {key: part for key, part in value.items() if key != name}
        if not schemas.allows(schema, less):
            yield Wrong(field, "missing", encoded(_with(good, place, less)))
        twice = encoded({**value, name: MARKER}).removesuffix(b"}")
        twice += b"," + encoded({name: value[name]}).removeprefix(b"{")
        around = encoded(_with(good, place, "@here@")) if place else b'"@here@"'
        yield Wrong(field, "twice", around.replace(b'"@here@"', twice))


def _wrong_values(schemas: Schemas, schema: Json, good: Any) -> Iterator[tuple[str, Any]]:
    for what, value in (*_of_every_type(), *_close_to(schemas, schema, good)):
        if not schemas.allows(schema, value):
            yield what, value
    if any(branch.get("type") in ("integer", "number") for branch in schemas.branches(schema)):
        yield "a number of 6000 digits", _ENDLESS


def _close_to(schemas: Schemas, schema: Json, good: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(good, str):
        yield "cut", good[:-1]
        yield "longer", good + MARKER
        yield "in capitals", good.upper()
        yield "with a line break", good + "\n"
        yield "after a blank", " " + good
        yield "with a NUL", good[:-1] + "\0"
    if isinstance(good, list):
        yield "with one of another type", [*good, {MARKER: MARKER}]
        for branch in schemas.branches(schema):
            yield "too short", good[: max(0, branch.get("minItems", 0) - 1)]
            yield "too long", _longer(good, branch.get("maxItems", 0) + 1)
    for branch in schemas.branches(schema):
        yield "below the least", branch.get("minimum", 0) - 1
        yield "above the most", branch.get("maximum", 0) + 1
        yield "at the bound", branch.get("exclusiveMaximum", -1)


def _of_every_type() -> Iterator[tuple[str, Any]]:
    yield "null", None
    yield "true", True
    yield "an integer", 1
    yield "a negative integer", -1
    yield "a large integer", NUMBER
    yield "a large negative integer", -NUMBER
    yield "an integer beyond every float", 10**400
    yield "a fraction", 1.5
    yield "NaN", math.nan
    yield "infinity", math.inf
    yield "minus infinity", -math.inf
    yield "an empty string", ""
    yield "a string", MARKER
    yield "a number as a string", str(NUMBER)
    yield "a long string", MARKER * 2000
    yield "half a character", MARKER + "\ud800"
    yield "an empty list", []
    yield "a list", [MARKER, NUMBER]
    yield "an empty object", {}
    yield "an object", {MARKER: MARKER}
    yield "a deep list", _deep(lambda inner: [inner])
    yield "a deep object", _deep(lambda inner: {MARKER: inner})


def broken_bodies(good: bytes) -> Iterator[Wrong]:
    """Bodies that hold no JSON object, or not only one, or not in UTF-8."""
    marker = MARKER.encode()
    for what, body in (
        ("nothing", b""),
        ("blanks", b" \n\t"),
        ("a cut body", good[:-1]),
        ("half a body", good[: len(good) // 2]),
        ("a list", b"[" + good + b"]"),
        ("null", b"null"),
        ("true", b"true"),
        ("a number", str(NUMBER).encode()),
        ("a string", b'"' + marker + b'"'),
        ("words", marker),
        ("a form", b"labels=" + marker),
        ("two bodies", good + good),
        ("more after the body", good + marker),
        ("a byte order mark", b"\xef\xbb\xbf" + good),
        ("UTF-16", good.decode().encode("utf-16")),
        ("bytes that are no UTF-8", good[:1] + b'"\xff\xfe":1,' + good[1:]),
        ("a comment", good + b"// " + marker),
        ("a comma too many", good[:-1] + b",}"),
        ("single quotes", good.replace(b'"', b"'")),
        ("lists without end", b"[" * 100_000),
        ("objects without end", b'{"a":' * 100_000),
        ("a NUL at the end", good + b"\0"),
    ):
        yield Wrong("", what, body)


def _longer(items: list[Any], length: int) -> list[Any]:
    if items and isinstance(items[0], str):
        return [*items, *(f"{MARKER} {number}" for number in range(length - len(items)))]
    return (items * length)[:length] if items else items


def _deep(wrap: Callable[[Any], Any]) -> Any:
    value: Any = MARKER
    for _ in range(_DEEP):
        value = wrap(value)
    return value


def _at(value: Any, place: Place) -> Any:
    for part in place:
        value = value[part]
    return value


def _with(good: Any, place: Place, value: Any) -> Any:
    if not place:
        return value
    changed = copy.deepcopy(good)
    _at(changed, place[:-1])[place[-1]] = value
    return changed
