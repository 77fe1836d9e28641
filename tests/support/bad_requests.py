"""Requests of every operation of the API with one thing wrong."""

import json
from collections.abc import Iterator

from tacit.protocol import Role, sha256_hex
from tests.support.aggregator import Aggregator
from tests.support.api_stage import Attempt, Operation, Stage
from tests.support.bad_values import MARKER, NUMBER, broken_bodies, wrong_bodies

_UNREADABLE = frozenset(
    {
        "NaN",
        "infinity",
        "minus infinity",
        "half a character",
        "a deep list",
        "a deep object",
        "twice",
    }
)
"""A body with such a version is no JSON, and so of no version."""
OTHER_METHODS = ("GET", "PUT", "POST", "DELETE", "PATCH", "OPTIONS", "TRACE")


def wrong_attempts(stage: Stage, operation: Operation) -> Iterator[Attempt]:
    """Every way we know to get a request of this operation wrong."""
    yield from _wrong_methods(stage, operation)
    yield from _wrong_paths(operation)
    if "Authorization" in dict(operation.good.headers):
        yield from _wrong_tokens(stage, operation)
    if operation.protocol:
        yield from _wrong_protocols(operation.good)
    if operation.schema is not None and operation.good.body is not None:
        yield from _wrong_media(operation.good)
        yield from _wrong_contents(stage, operation)


def _wrong_methods(stage: Stage, operation: Operation) -> Iterator[Attempt]:
    taken = {method.upper() for method in stage.openapi["paths"][operation.template]}
    for method in set(OTHER_METHODS) - taken:
        yield operation.good.wrong(f"method {method}", "method-not-allowed", method=method)


def _wrong_paths(operation: Operation) -> Iterator[Attempt]:
    good = operation.good
    yield good.wrong("a slash too many", "not-found", path=good.path + "/")
    refused = ("invalid-request", "not-found")
    path = f"{good.path}/{MARKER}/{MARKER}"
    yield good.wrong("a place too far", "method-not-allowed", *refused, path=path)
    for name, value in operation.parameters.items():
        for wrong in (
            MARKER,
            value[:-1],
            value + "0",
            value.upper() + "A",
            "0" * 100_0,
            "..%2F..%2Fetc",
            "%00" + value[3:],
            "%FF" + value[3:],
            "%F0%9F%A6%86",
            value + "%0A",
            "%20" + value,
            "%27%20OR%201%3D1%3B--",
        ):
            path = operation.template.format(**{**operation.parameters, name: wrong})
            yield good.wrong(f"{name} is {wrong[:20]}", *refused, path=path)
        if name == "digest":
            path = operation.template.format(**{**operation.parameters, name: "0" * 64})
            yield good.wrong("another digest", "not-found", "wrong-digest", path=path)
    if operation.template.endswith("/uploads"):
        yield from _wrong_pages(good)
    if operation.template.endswith("/round"):
        yield from _wrong_waits(good)


def _wrong_waits(good: Attempt) -> Iterator[Attempt]:
    waits = ("-1", "26", "25.01", "", MARKER, str(NUMBER), "9" * 5000, "NaN", "inf", "-inf", "%00")
    afters = ("-2", "64", "1.5", "", MARKER, str(NUMBER), "9" * 5000, "NaN", "1e1", "%00", "null")
    queries = [f"wait={wait}" for wait in waits] + [f"after={after}" for after in afters]
    for query in (*queries, f"wait=0&wait={MARKER}", f"after=&wait={NUMBER}"):
        yield good.wrong(query[:40], "invalid-request", path=f"{good.path}?{query}")


def _wrong_pages(good: Attempt) -> Iterator[Attempt]:
    limits = ("0", "-1", "1001", "1.5", "", MARKER, str(NUMBER), "9" * 5000, "NaN", "1e2", "%00")
    afters = ("", MARKER, "0" * 31, "0" * 32, "F" * 32, "0" * 5000, "%FF", "%00", "null")
    queries = [f"limit={limit}" for limit in limits] + [f"after={after}" for after in afters]
    for query in (*queries, f"limit=1&limit={MARKER}", f"after=&limit={NUMBER}"):
        yield good.wrong(query[:40], "invalid-request", path=f"{good.path}?{query}")


def _wrong_tokens(stage: Stage, operation: Operation) -> Iterator[Attempt]:
    good = operation.good
    token = dict(good.headers)["Authorization"]
    assert isinstance(token, str)
    unknown = "tacit_" + MARKER.ljust(43, "0")
    for value in (
        None,
        "",
        "Bearer",
        token.removeprefix("Bearer "),
        token[:-1],
        token + "0",
        token.swapcase(),
        f"Basic {MARKER}",
        f"Bearer {unknown}",
        f"Bearer {MARKER * 1000}",
        f"Bearer {MARKER}é\xff".encode("latin-1"),
        f"Bearer {unknown} {unknown}",
    ):
        headers = good.without("Authorization")
        added = () if value is None else (("Authorization", value),)
        shown = repr(value)[:30]
        yield good.wrong(f"token {shown}", "unauthenticated", headers=(*headers, *added))
    if operation.parameters:
        stranger = _strangers(stage.aggregator)
        for name, value in stranger.items():
            headers = (*good.without("Authorization"), ("Authorization", f"Bearer {value}"))
            # Who creates a campaign under a name that is not its own is told so.
            yield good.wrong(name, "not-found", "forbidden", headers=headers)


_TOKENS: dict[str, dict[str, str]] = {}


def _strangers(aggregator: Aggregator) -> dict[str, str]:
    """Tokens that are valid, and for something else; minted once for each server."""
    if aggregator.url not in _TOKENS:
        _TOKENS[aggregator.url] = {
            "another owner": aggregator.token(Role.OWNER, "stranger"),
            "a site of another campaign": aggregator.token(Role.CONTRIBUTOR, "north", "0" * 64),
        }
    return _TOKENS[aggregator.url]


def _wrong_protocols(good: Attempt) -> Iterator[Attempt]:
    for value in ("2.0", "", "1", "1.2", "1.0.0", "1.0, 2.0", MARKER, MARKER * 500, b"\xff\xfe"):
        headers = (*good.without("Tacit-Protocol"), ("Tacit-Protocol", value))
        yield good.wrong(f"protocol {value[:20]!r}", "upgrade-required", headers=headers)
    headers = (*good.headers, ("Tacit-Protocol", "1.0"), ("Tacit-Protocol", "2.0"))
    yield good.wrong("two protocols", "upgrade-required", headers=headers)


def _wrong_media(good: Attempt) -> Iterator[Attempt]:
    refused = "unsupported-media"
    for value in (
        None,
        "",
        "text/plain",
        "application/problem+json",
        "multipart/form-data; boundary=x",
        "application/x-www-form-urlencoded",
        "application/json; charset=latin-1",
        "application/json; charset=utf-8; more=1",
        f"application/{MARKER}",
        MARKER,
        b"application/json\xff",
    ):
        added = () if value is None else (("Content-Type", value),)
        headers = (*good.without("Content-Type"), *added)
        yield good.wrong(f"media {value!r}", refused, headers=headers)
    for encoding in ("gzip", "br", "deflate", "zstd", "identity, gzip", MARKER, ""):
        headers = (*good.headers, ("Content-Encoding", encoding))
        yield good.wrong(f"encoding {encoding!r}", refused, headers=headers)


def _wrong_contents(stage: Stage, operation: Operation) -> Iterator[Attempt]:
    assert operation.schema is not None
    assert operation.good.body is not None
    good = json.loads(operation.good.body)
    creates = operation.template.endswith("{digest}")
    for wrong in (
        *wrong_bodies(stage.schemas, operation.schema, good),
        *broken_bodies(operation.good.body),
    ):
        refused = {"invalid-request"}
        if wrong.field == "version":
            refused = {"upgrade-required", *(refused if wrong.what in _UNREADABLE else ())}
        # A document's address is its digest, so that nothing but the document is wrong.
        path = f"/v1/campaigns/{sha256_hex(wrong.body)}" if creates else operation.good.path
        yield operation.good.wrong(
            f"{wrong.field or 'body'}: {wrong.what}",
            *refused,
            path=path,
            body=wrong.body,
            field=wrong.field,
        )
