"""Requests that are right, one for each operation of the API, and the same with one thing wrong."""

import json
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import httpx
import numpy as np

from tacit.protocol import (
    Campaign,
    Column,
    Features,
    Probabilities,
    Role,
    Upload,
    sha256_hex,
)
from tacit.scores import RandomizedAPS
from tests.support.aggregator import Aggregator, AggregatorProcess, as_process, migrated
from tests.support.bad_values import MARKER, NUMBER, broken_bodies, encoded, wrong_bodies
from tests.support.label_campaigns import Scene, campaign_document, scene
from tests.support.registering import registered
from tests.support.schemas import Json, Schemas
from tests.support.tiny_models import CLASSES, SHAPE, save_safetensors

ROOT = Path(__file__).parents[2]
RECORDS = 6
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


@dataclass(frozen=True)
class Attempt:
    """A request, and how it may be refused."""

    what: str
    method: str
    path: str
    headers: tuple[tuple[str, str | bytes], ...]
    body: bytes | None = None
    problems: frozenset[str] = frozenset()
    field: str | None = None
    """The field of the body that is wrong."""

    def without(self, header: str) -> tuple[tuple[str, str | bytes], ...]:
        """The headers but one."""
        return tuple((name, value) for name, value in self.headers if name != header)

    def wrong(self, what: str, *problems: str, **changes: object) -> "Attempt":
        """The same with one thing wrong."""
        return replace(self, what=what, problems=frozenset(problems), **changes)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Operation:
    """An operation of the API, as its OpenAPI document names it, and a request that is right."""

    method: str
    template: str
    good: Attempt
    parameters: dict[str, str] = field(default_factory=dict)
    schema: Json | None = None
    protocol: bool = True

    @property
    def name(self) -> str:
        """What the OpenAPI document calls it."""
        return f"{self.method} {self.template}"


@dataclass
class Stage:
    """A server with two open campaigns, one of probabilities, one of features; a site in each."""

    aggregator: AggregatorProcess
    probabilities: Scene
    features: Scene
    http: httpx.Client
    read: dict[int, dict[str, list[str]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.database = sqlite3.connect(self.aggregator.database_file, isolation_level=None)
        self.openapi: Json = self.http.get("/openapi.json").raise_for_status().json()
        self.schemas = Schemas(self.openapi["components"]["schemas"])
        self.sites = [scene.site("north") for scene in (self.probabilities, self.features)]

    def send(self, attempt: Attempt) -> httpx.Response:
        """The answer to a request that is sent exactly as it is."""
        headers = [(name.encode(), _bytes(value)) for name, value in attempt.headers]
        return self.http.request(
            attempt.method, attempt.path, headers=headers, content=attempt.body
        )

    def stored(self) -> dict[str, list[str]]:
        """Every row of every table; read again only when the server has written to the file."""
        (version,) = self.database.execute("PRAGMA data_version").fetchone()
        if version not in self.read:
            names = self.database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            self.read = {version: {name: self._rows(name) for (name,) in names.fetchall()}}
        return self.read[version]

    def _rows(self, table: str) -> list[str]:
        return sorted(map(repr, self.database.execute(f"SELECT * FROM {table}")))  # noqa: S608


@contextmanager
def stage(folder: Path) -> Iterator[Stage]:
    """A running server; its records are counted and nothing in its database moves by itself."""
    settings = migrated(folder, most_body_bytes=2**22)
    model = registered(
        settings,
        save_safetensors(folder / "tiny.safetensors"),
        dtype="float32",
        shape=SHAPE,
        module="tests.support.tiny_models:Linear",
    )
    numbers = campaign_document(
        k=CLASSES, score=RandomizedAPS(), evidence=Probabilities(model=model.digest)
    )
    asked = Features(model=model.digest, dtype="float32", shape=SHAPE)
    images = campaign_document(k=CLASSES, evidence=asked)
    with (
        as_process(settings, PYTHONPATH=str(ROOT)) as aggregator,
        scene(aggregator, numbers) as first,
        scene(aggregator, images) as second,
        httpx.Client(base_url=aggregator.url, timeout=60, trust_env=False) as http,
    ):
        made = Stage(aggregator, first, second, http)
        for site, each in zip(made.sites, (first, second), strict=True):
            site.send(good_upload(each))
            each.wait_until_counted(RECORDS)
        with closing(made.database):
            yield made


def good_upload(scene: Scene) -> Upload:
    """An upload that the campaign takes."""
    generator = np.random.default_rng(5)
    table = generator.dirichlet(np.ones(CLASSES), RECORDS).astype(np.float32)
    images = generator.random((RECORDS, *SHAPE), np.float32)
    of_features = isinstance(scene.document.evidence, Features)
    return Upload(
        campaign=scene.digest,
        upload=secrets.token_hex(16),
        labels=Column.of(np.arange(RECORDS, dtype=np.uint8) % CLASSES),
        probabilities=None if of_features else Column.of(table),
        features=Column.of(images) if of_features else None,
        uniforms=None if of_features else Column.of(generator.random(RECORDS)),
    )


def operations(stage: Stage) -> Iterator[Operation]:
    """Every operation, in an order in which all good requests succeed; some with two bodies."""
    owner, first = str(stage.probabilities.owner.headers["authorization"]), stage.probabilities
    for template in ("/healthz", "/readyz", "/v1/server"):
        good = Attempt("right", "GET", template, ())
        yield Operation("get", template, good, protocol=template.startswith("/v1"))
    yield _operation("get", "/v1/token", owner)
    yield _operation("get", "/v1/campaigns", owner)
    for campaign in (first, stage.features):
        yield from _creating(stage, campaign.document, owner)
        yield from _contributing(stage, campaign)
    site = str(stage.sites[0].http.headers["authorization"])
    digest = {"digest": first.digest}
    here = "/v1/campaigns/{digest}"
    yield _operation("get", here, site, digest)
    yield _operation("get", f"{here}/status", site, digest)
    yield _operation("get", f"{here}/uploads", site, digest)
    yield _operation("get", f"{here}/thresholds/{{which}}", owner, {**digest, "which": "nominal"})
    yield _operation("delete", f"{here}/enrolment", site, digest)
    yield _operation("post", f"{here}/close", owner, digest)
    other = str(stage.features.owner.headers["authorization"])
    yield _operation("post", f"{here}/abandon", other, {"digest": stage.features.digest})


def _creating(stage: Stage, document: Campaign, owner: str) -> Iterator[Operation]:
    body = json.loads(document.to_bytes()) | {"nonce": secrets.token_hex(16)}
    content = encoded(body)
    made = _operation(
        "put",
        "/v1/campaigns/{digest}",
        owner,
        {"digest": sha256_hex(content)},
        content,
    )
    yield replace(made, schema=_schema(stage, made))


def _contributing(stage: Stage, scene: Scene) -> Iterator[Operation]:
    site = str(scene.sites["north"].http.headers["authorization"])
    digest = {"digest": scene.digest}
    enrol = _operation(
        "put", "/v1/campaigns/{digest}/enrolment", site, digest, encoded({"records": 7000})
    )
    yield replace(enrol, schema=_schema(stage, enrol))
    upload = good_upload(scene)
    send = _operation(
        "put",
        "/v1/campaigns/{digest}/uploads/{upload}",
        site,
        {**digest, "upload": upload.upload},
        encoded(json.loads(upload.to_bytes())),
    )
    yield replace(send, schema=_schema(stage, send))


def _schema(stage: Stage, operation: Operation) -> Json:
    declared = stage.openapi["paths"][operation.template][operation.method]["requestBody"]
    schema: Json = declared["content"]["application/json"]["schema"]
    return schema


def _operation(
    method: str,
    template: str,
    authorization: str,
    parameters: dict[str, str] | None = None,
    body: bytes | None = None,
) -> Operation:
    headers = [("Authorization", authorization), ("Tacit-Protocol", "1.0")]
    if body is not None:
        headers.append(("Content-Type", "application/json"))
    given = parameters or {}
    path = template.format(**given)
    good = Attempt("right", method.upper(), path, tuple(headers), body)
    return Operation(method, template, good, given)


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
        yield from _wrong_queries(good)


def _wrong_queries(good: Attempt) -> Iterator[Attempt]:
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
    for value in ("2.0", "", "1", "1.1", "1.0.0", "1.0, 2.0", MARKER, MARKER * 500, b"\xff\xfe"):
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


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value
