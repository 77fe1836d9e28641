"""Requests of the right form that cannot be meant: columns, terms, and the vectors of refusals."""

import json
import secrets
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import httpx
import numpy as np
import pytest

from tacit.protocol import Column, Role, Upload, sha256_hex
from tests.support.aggregator import Aggregator, in_thread, migrated
from tests.support.api_stage import RECORDS, Stage, good_upload, stage
from tests.support.bad_values import encoded
from tests.support.label_campaigns import JSON, Scene, problem, problem_name
from tests.support.score_campaigns import CERTIFIABLE, score_document
from tests.support.tiny_models import CLASSES, SHAPE
from tests.vectors import check

REFUSED = check.read("refused.json")
DURING = datetime(2026, 3, 1, tzinfo=UTC).timestamp()
"""While the vectors' campaign is open."""
Fields = dict[str, Any]


@pytest.fixture(scope="module")
def open_stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with stage(tmp_path_factory.mktemp("stage")) as made:
        yield made


@pytest.fixture(scope="module")
def of_vectors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Aggregator]:
    """A server that has the campaign of the vectors, at a time when it is open."""
    settings = migrated(tmp_path_factory.mktemp("vectors"))
    with in_thread(settings, clock=lambda: DURING) as aggregator:
        payload = check.read("campaign.json")["probabilities"]["canonical"].encode()
        admin = aggregator.token(Role.ADMIN, "admin")
        with aggregator.client(admin) as http:
            answer = http.put(f"/v1/campaigns/{REFUSED['digest']}", content=payload, headers=JSON)
            assert answer.status_code == 201, answer.text
        yield aggregator


@pytest.fixture(scope="module")
def admin(of_vectors: Aggregator) -> Iterator[httpx.Client]:
    with of_vectors.client(of_vectors.token(Role.ADMIN, "admin")) as http:
        yield http


@pytest.fixture(scope="module")
def site(of_vectors: Aggregator) -> Iterator[httpx.Client]:
    with of_vectors.client(of_vectors.token(Role.CONTRIBUTOR, "s", REFUSED["digest"])) as http:
        http.put(f"/v1/campaigns/{REFUSED['digest']}/enrolment", json={"records": 100})
        yield http


def problem_of(refused_as: str) -> str:
    """A document that a reader finds invalid is an invalid request."""
    return {"invalid-document": "invalid-request"}.get(refused_as, refused_as)


@pytest.mark.parametrize("case", REFUSED["campaigns"], ids=lambda case: str(case["why"]))
def test_a_campaign_of_the_vectors_that_must_be_refused_is(admin: httpx.Client, case: Any) -> None:
    body = case["payload"].encode()
    before = admin.get("/v1/campaigns").json()
    answer = admin.put(f"/v1/campaigns/{sha256_hex(body)}", content=body, headers=JSON)
    assert problem_name(answer) == problem_of(case["refused_as"])
    assert admin.get("/v1/campaigns").json() == before


@pytest.mark.parametrize("case", REFUSED["uploads"], ids=lambda case: str(case["why"]))
def test_an_upload_of_the_vectors_that_must_be_refused_is(site: httpx.Client, case: Any) -> None:
    body = case["body"].encode()
    upload = json.loads(body)["upload"].lower()
    path = f"/v1/campaigns/{REFUSED['digest']}/uploads"
    answer = site.put(f"{path}/{upload}", content=body, headers=JSON)
    # A digest that is none cannot be the one in the address either.
    assert problem_name(answer) == problem_of(case["refused_as"])
    assert site.get(path).json()["receipts"] == []


def _columns(**changes: Any) -> Fields:
    return {
        "labels": Column.of(np.arange(RECORDS, dtype=np.uint8) % CLASSES),
        "features": Column.of(np.zeros((RECORDS, *SHAPE), np.float32)),
        **changes,
    }


def _spoiled(value: float) -> Column:
    features = np.zeros((RECORDS, *SHAPE), np.float32)
    features[-1, -1, -1] = value
    return Column.of(features)


def _claims(shape: tuple[int, ...]) -> Column:
    return Column(dtype="float32", shape=shape, data="AAAA")


BAD_FEATURES = {
    "not a number": _columns(features=_spoiled(np.nan)),
    "infinity": _columns(features=_spoiled(np.inf)),
    "another type": _columns(features=Column.of(np.zeros((RECORDS, *SHAPE)))),
    "integers": _columns(features=Column.of(np.zeros((RECORDS, *SHAPE), np.uint8))),
    "another order of axes": _columns(features=Column.of(np.zeros((RECORDS, 2, 4), np.float32))),
    "an axis less": _columns(features=Column.of(np.zeros((RECORDS, 8), np.float32))),
    "a record less": _columns(features=Column.of(np.zeros((RECORDS - 1, *SHAPE), np.float32))),
    "a shape of 2^248 numbers": _columns(features=_claims((2**31 - 1,) * 8)),
    "a shape of no numbers": _columns(features=_claims((0,) * 8)),
    "fewer bytes than the shape asks for": _columns(features=_claims((RECORDS, *SHAPE))),
    "more labels than fit in memory": _columns(
        labels=Column(dtype="uint8", shape=(2**31 - 1,), data="AAAA")
    ),
    "no features": _columns(features=None),
    "probabilities too": _columns(
        probabilities=Column.of(np.full((RECORDS, CLASSES), 1 / CLASSES, np.float32))
    ),
    "uniforms for a score that has none": _columns(uniforms=Column.of(np.zeros(RECORDS))),
    "a label that is no class": _columns(labels=Column.of(np.full(RECORDS, CLASSES, np.uint8))),
    "labels on two axes": _columns(labels=Column.of(np.zeros((RECORDS, 1), np.uint8))),
}


@pytest.mark.parametrize("columns", BAD_FEATURES.values(), ids=list(BAD_FEATURES))
def test_features_that_the_campaign_does_not_ask_for_are_refused(
    open_stage: Stage, columns: Fields
) -> None:
    campaign = open_stage.features
    upload = Upload(campaign=campaign.digest, upload=secrets.token_hex(16), **columns)
    before = open_stage.stored()
    answer = campaign.sites["north"].put(upload)
    assert problem_name(answer) == "invalid-request"
    assert open_stage.stored() == before


def test_more_records_than_an_upload_may_have_are_refused(open_stage: Stage) -> None:
    campaign = open_stage.probabilities
    n = 100_001
    upload = good_upload(campaign).model_copy(
        update={
            "labels": Column.of(np.zeros(n, np.uint8)),
            "probabilities": Column.of(np.zeros((n, CLASSES), np.float32)),
            "uniforms": Column.of(np.zeros(n)),
        }
    )
    before = open_stage.stored()
    found = problem(campaign.sites["north"].put(upload))
    assert "100000" in found.detail
    assert open_stage.stored() == before


def _terms(campaign: Scene, **changes: Any) -> bytes:
    fields = json.loads(campaign.document.to_bytes()) | {"nonce": secrets.token_hex(16)}
    return encoded(fields | changes)


BAD_TERMS: dict[str, Fields] = {
    "α of 0": {"alpha": 0},
    "α of 1": {"alpha": 1},
    "a negative α": {"alpha": -0.1},
    "an α that rounds to 0": {"alpha": 5e-324},
    "δ of 0": {"delta": 0},
    "δ of 1": {"delta": 1},
    "a δ with no comparison": {"guarantee": "nominal"},
    "no δ for a comparison": {"delta": None},
    "ε of another channel": {"epsilon": 1},
    "a negative ε": {"epsilon": -2},
    "a channel that always lies": {"mechanism": {"name": "k-rr", "threshold": "9" * 20}},
    "a channel that never lies": {"mechanism": {"name": "k-rr", "threshold": "1"}},
    "a class twice": {"classes": ["a", "a", "b"]},
    "more classes than the model has": {"classes": ["a", "b", "c", "d"]},
    "a grid of no steps": {"grid": {"even_steps": 0, "steps_per_octave": 0}},
    "a grid of negative steps": {"grid": {"even_steps": -1, "steps_per_octave": 32}},
    "a grid that fills the memory": {"grid": {"even_steps": 2**52, "steps_per_octave": 2**52}},
    "no score": {"score": {}},
    "a score with no name": {"score": {"name": None}},
    "a score that there is not": {"score": {"name": "lac"}},
    "a score with parameters of another": {"score": {"name": "hps", "a": 1, "b": 2}},
    "a score that is nested": {"score": {"name": {"name": {"name": "hps"}}}},
    "RAPS with a negative penalty": {"score": {"name": "raps", "a": -1, "b": 2}},
    "the end before the beginning": {"closes": "2020-01-01T00:00:00Z"},
    "an end in the past": {"opens": "2019-01-01T00:00:00Z", "closes": "2020-01-01T00:00:00Z"},
    "a month of 32 days": {"closes": "2099-01-32T00:00:00Z"},
    "a year of five digits": {"closes": "20999-01-01T00:00:00Z"},
    "an offset from UTC": {"closes": "2099-01-01T00:00:00+01:00"},
    "a moment as a number": {"closes": 4070908800},
}


@pytest.mark.parametrize("changes", BAD_TERMS.values(), ids=list(BAD_TERMS))
def test_terms_that_cannot_be_meant_make_no_campaign(open_stage: Stage, changes: Fields) -> None:
    campaign = open_stage.features
    body = _terms(campaign, **changes)
    before = open_stage.stored()
    path = f"/v1/campaigns/{sha256_hex(body)}"
    answer = campaign.owner.put(path, content=body, headers=JSON)
    assert problem_name(answer) in {"invalid-request", "unknown-model"}
    assert open_stage.stored() == before


BAD_SCORE_TERMS: dict[str, Fields] = {
    "a tolerance with δ": {"search": {"name": "binary", "tolerance": 0.1}},
    "a δ with no certificate": {"guarantee": "nominal"},
    "no δ for a certificate": {"delta": None},
    "fewer records than rounds": {"planned_n": 1},
    "a δ that so few records cannot reach": {"planned_n": 20},
    "the channel of labels": {"mechanism": {"name": "k-rr", "threshold": "1"}},
    "a channel of chance": {"mechanism": {"name": "binary-rr", "threshold": str(2**63)}},
    "ε of another channel": {"epsilon": 1},
    "more classes than the model has": {"classes": ["a", "b", "c", "d"]},
    "the method of another form": {"method": "labels"},
    "the version of another form": {"version": "1.0"},
    "more answers at least than a round has": {"rounds": {"least": 1000}},
    "no rounds": {"rounds": {"shares": []}},
    "a round of no records": {"rounds": {"shares": [1, 0]}},
    "enrolment after the end": {"rounds": {"enrol_until": "2099-01-01T00:00:00Z"}},
    "enrolment before the beginning": {"rounds": {"enrol_until": "2020-01-01T00:00:00Z"}},
    "a model that is not registered": {"model": {"digest": "0" * 64}},
    "another type of features": {"model": {"dtype": "uint8"}},
    "other outputs of the model": {"model": {"outputs": "probabilities"}},
}


@pytest.mark.parametrize("changes", BAD_SCORE_TERMS.values(), ids=list(BAD_SCORE_TERMS))
def test_terms_of_scores_that_cannot_be_meant_make_no_campaign(
    open_stage: Stage, changes: Fields
) -> None:
    scene = open_stage.scores
    document = score_document(k=CLASSES, model=scene.document.model, **CERTIFIABLE)
    fields = json.loads(document.to_bytes())
    body = encoded(fields | {name: _changed(fields[name], to) for name, to in changes.items()})
    before = open_stage.stored()
    path = f"/v1/campaigns/{sha256_hex(body)}"
    answer = scene.owner.put(path, content=body, headers=JSON)
    assert problem_name(answer) in {"invalid-request", "unknown-model"}
    assert open_stage.stored() == before


def _changed(value: Any, change: Any) -> Any:
    nested = isinstance(value, dict) and isinstance(change, dict) and "name" not in change
    return value | change if nested else change


def test_the_terms_of_scores_that_were_made_worse_are_good(open_stage: Stage) -> None:
    scene = open_stage.scores
    document = score_document(k=CLASSES, model=scene.document.model, **CERTIFIABLE)
    path = f"/v1/campaigns/{document.digest}"
    answer = scene.owner.put(path, content=document.to_bytes(), headers=JSON)
    assert answer.status_code == 201, answer.text


BAD_BITS: dict[str, Column] = {
    "neither 0 nor 1": Column.of(np.array([0, 1, 2], np.uint8)),
    "another type": Column.of(np.zeros(3, np.float32)),
    "wider integers": Column.of(np.zeros(3, np.uint16)),
    "on two axes": Column.of(np.zeros((3, 1), np.uint8)),
    "none": Column(dtype="uint8", shape=(0,), data=""),
    "more than fit in memory": Column(dtype="uint8", shape=(2**31 - 1,), data="AAAA"),
    "more than an upload may have": Column.of(np.zeros(100_001, np.uint8)),
    "fewer bytes than the shape asks for": Column(dtype="uint8", shape=(9,), data="AAAA"),
}


@pytest.mark.parametrize("column", BAD_BITS.values(), ids=list(BAD_BITS))
def test_answers_that_are_no_bits_are_refused(open_stage: Stage, column: Column) -> None:
    site = open_stage.scores.sites["north"]
    good = site.answers(open_stage.question, [1, 0])
    before = open_stage.stored()
    answer = site.put(good.model_copy(update={"bits": column}))
    assert problem_name(answer) == "invalid-request"
    assert open_stage.stored() == before


@pytest.mark.parametrize(
    ("changes", "refused"),
    [
        ({"question": "0" * 64}, "wrong-question"),
        ({"round": 1}, "wrong-question"),
        ({"round": 63}, "wrong-question"),
        ({"campaign": "0" * 64}, "wrong-digest"),
    ],
)
def test_answers_to_what_was_not_asked_are_refused(
    open_stage: Stage, changes: Fields, refused: str
) -> None:
    site = open_stage.scores.sites["north"]
    upload = site.answers(open_stage.question, [1, 0]).model_copy(update=changes)
    before = open_stage.stored()
    assert problem_name(site.put(upload)) == refused
    assert open_stage.stored() == before


@pytest.mark.parametrize(
    ("features", "refused"),
    [
        ({"model": "0" * 64}, "unknown-model"),
        ({"dtype": "uint8"}, "unknown-model"),
        ({"shape": [2, 4]}, "unknown-model"),
        ({"shape": []}, "unknown-model"),
        ({"shape": [0, 4]}, "invalid-request"),
        ({"shape": [-4, 2]}, "invalid-request"),
        ({"shape": [2**31]}, "invalid-request"),
    ],
)
def test_features_that_the_model_does_not_take_make_no_campaign(
    open_stage: Stage, features: Fields, refused: str
) -> None:
    campaign = open_stage.features
    evidence = json.loads(campaign.document.to_bytes())["evidence"]
    body = _terms(campaign, evidence=evidence | features)
    path = f"/v1/campaigns/{sha256_hex(body)}"
    assert problem_name(campaign.owner.put(path, content=body, headers=JSON)) == refused


def test_a_campaign_in_the_name_of_somebody_else_is_forbidden(open_stage: Stage) -> None:
    campaign = open_stage.features
    body = _terms(campaign, owner="somebody else")
    path = f"/v1/campaigns/{sha256_hex(body)}"
    assert problem_name(campaign.owner.put(path, content=body, headers=JSON)) == "forbidden"


def test_the_terms_that_were_made_worse_are_good(open_stage: Stage) -> None:
    body = _terms(open_stage.features)
    path = f"/v1/campaigns/{sha256_hex(body)}"
    assert open_stage.features.owner.put(path, content=body, headers=JSON).status_code == 201
