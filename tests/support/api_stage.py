"""A server with open campaigns, and a request that is right for each operation of its API."""

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
    Model,
    Probabilities,
    Upload,
    sha256_hex,
)
from tacit.scores import RandomizedAPS
from tests.support.aggregator import AggregatorProcess, as_process, migrated
from tests.support.bad_values import encoded
from tests.support.label_campaigns import Scene, campaign_document, scene
from tests.support.registering import registered
from tests.support.schemas import Json, Schemas
from tests.support.score_campaigns import ScoreScene, bits, score_document, score_scene
from tests.support.tiny_models import CLASSES, SHAPE, save_onnx, save_safetensors

ROOT = Path(__file__).parents[2]
RECORDS = 6


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
        return replace(self, what=what, problems=frozenset(problems), **changes)  # type: ignore[arg-type]  # any terms


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
    """A server with open campaigns of probabilities, of features and of scores; a site in each.

    The score campaign has asked its first question, and waits for another site too.
    """

    aggregator: AggregatorProcess
    probabilities: Scene
    features: Scene
    scores: ScoreScene
    http: httpx.Client
    read: dict[int, dict[str, list[str]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.database = sqlite3.connect(self.aggregator.database_file, isolation_level=None)
        self.openapi: Json = self.http.get("/openapi.json").raise_for_status().json()
        self.schemas = Schemas(self.openapi["components"]["schemas"])
        self.sites = [scene.site("north") for scene in (self.probabilities, self.features)]
        self.scores.site("south", 20)
        self.question = self.scores.site("north", 20).asked()

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
        return sorted(map(repr, self.database.execute(f"SELECT * FROM {table}")))  # noqa: S608 -- our tables


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
    network = registered(settings, save_onnx(folder / "tiny.onnx"), dtype="float32", shape=SHAPE)
    fetched = Model(digest=network.digest, dtype="float32", shape=SHAPE, outputs="logits")
    bisected = score_document(k=CLASSES, model=fetched)
    with (
        as_process(settings, PYTHONPATH=str(ROOT)) as aggregator,
        scene(aggregator, numbers) as first,
        scene(aggregator, images) as second,
        score_scene(aggregator, bisected) as third,
        httpx.Client(base_url=aggregator.url, timeout=60, trust_env=False) as http,
    ):
        made = Stage(aggregator, first, second, third, http)
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
    yield from _creating(stage, stage.scores.document, owner)
    yield from _answering(stage)
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


def _answering(stage: Stage) -> Iterator[Operation]:
    scene, north = stage.scores, stage.scores.sites["north"]
    assert scene.document.model is not None
    site = str(north.http.headers["authorization"])
    digest = {"digest": scene.digest}
    here = "/v1/campaigns/{digest}"
    yield _operation("get", "/v1/models/{digest}", site, {"digest": scene.document.model.digest})
    yield _operation("get", f"{here}/round", site, digest)
    upload = north.answers(stage.question, bits(2, RECORDS))
    send = _operation(
        "put",
        f"{here}/uploads/{{upload}}",
        site,
        {**digest, "upload": upload.upload},
        encoded(json.loads(upload.to_bytes())),
    )
    yield replace(send, schema=_schema(stage, send))
    done = _operation(
        "put",
        f"{here}/rounds/{{number}}/done",
        site,
        {**digest, "number": "0"},
        encoded({"answers": RECORDS}),
    )
    yield replace(done, schema=_schema(stage, done))


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


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value
