"""The interface as a whole: roles, OpenAPI, health, numbers, and what problems give away."""

import json
import secrets
import time
from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pytest
from fastapi import FastAPI

from tacit.protocol import (
    PROBLEM_TYPES,
    Column,
    Features,
    Role,
    ServerInfo,
    TokenInfo,
    Upload,
)
from tacit_aggregator.database.engine import Database
from tacit_aggregator.http.app import create_app
from tacit_aggregator.models.service import RegisteredModel, register
from tacit_aggregator.tokens.service import list_tokens, revoke
from tests.support.aggregator import Aggregator, as_process, in_thread, migrated, until
from tests.support.label_campaigns import (
    JSON,
    Reported,
    Scene,
    campaign_document,
    problem,
    problem_name,
    scene,
)

PUBLIC = {"/healthz", "/readyz", "/v1/server"}
_SEVEN_COUNTED = 'tacit_records_total{state="counted"} 7.0'
BODIES = {"Campaign", "Enrolment", "Upload"}


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FastAPI]:
    settings = migrated(tmp_path_factory.mktemp("openapi"))
    database = Database(settings.database_url)
    yield create_app(settings, database)
    database.close()


def operations(app: FastAPI) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in app.openapi()["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def test_every_route_without_a_token_is_unauthenticated(
    app: FastAPI, aggregator: Aggregator
) -> None:
    checked = 0
    with aggregator.client() as nobody, aggregator.client("tacit_" + "A" * 43) as unknown:
        for path, method, _ in operations(app):
            if path in PUBLIC:
                continue
            address = _filled(path)
            for client in (nobody, unknown):
                answer = client.request(method, address)
                assert (answer.status_code, problem_name(answer)) == (401, "unauthenticated")
                assert answer.headers["www-authenticate"].startswith("Bearer")
                checked += 1
    assert checked >= 20


def test_public_routes_need_no_token(aggregator: Aggregator) -> None:
    with aggregator.client() as nobody:
        for path in PUBLIC:
            assert nobody.get(path).status_code == 200
        info = ServerInfo.model_validate_json(nobody.get("/v1/server").content)
        assert info.most_body_bytes == aggregator.settings.most_body_bytes
        assert aggregator.key in info.keys


def test_a_token_says_who_it_speaks_for(campaign: Scene) -> None:
    site = campaign.site("a site")
    found = TokenInfo.model_validate_json(site.http.get("/v1/token").content)
    assert (found.role, found.name, found.campaign) == ("contributor", "a site", campaign.digest)


@pytest.mark.parametrize(
    ("method", "path"),
    [("put", "/enrolment"), ("delete", "/enrolment"), ("get", "/uploads"), ("put", "/uploads/")],
)
def test_only_a_site_contributes(campaign: Scene, method: str, path: str) -> None:
    address = campaign.address + path + (secrets.token_hex(16) if path.endswith("/") else "")
    assert problem_name(campaign.owner.request(method, address)) == "forbidden"


@pytest.mark.parametrize(
    ("method", "path"), [("post", "/close"), ("post", "/abandon"), ("put", "")]
)
def test_a_site_neither_creates_nor_ends_a_campaign(
    campaign: Scene, method: str, path: str
) -> None:
    answer = campaign.site().http.request(method, campaign.address + path)
    assert problem_name(answer) == "forbidden"
    assert campaign.status().state == "open"


def test_another_owner_cannot_end_a_campaign(campaign: Scene, aggregator: Aggregator) -> None:
    with aggregator.client(aggregator.token(Role.OWNER, "somebody")) as somebody:
        for path in ("/close", "/abandon"):
            assert problem_name(somebody.post(campaign.address + path)) == "not-found"
    assert campaign.status().state == "open"


def test_an_admin_may_create_a_campaign_for_an_owner(aggregator: Aggregator) -> None:
    document = campaign_document(owner="a third owner")
    with aggregator.client(aggregator.token(Role.ADMIN, "operator")) as admin:
        address = f"/v1/campaigns/{document.digest}"
        assert admin.put(address, content=document.to_bytes(), headers=JSON).status_code == 201
        assert admin.post(address + "/close").status_code == 200


def test_a_revoked_or_expired_token_is_worth_nothing_soon(aggregator: Aggregator) -> None:
    with aggregator.client(aggregator.token(Role.OWNER, "revoked")) as client:
        assert client.get("/v1/token").status_code == 200
        database = Database(aggregator.settings.database_url)
        with database.transaction("test revocation") as connection:
            (token,) = [one for one in list_tokens(connection) if one.name == "revoked"]
            revoke(connection, token.id, time.time())
        database.close()
        until(lambda: client.get("/v1/token").status_code == 401, seconds=10)
    short = aggregator.token(Role.OWNER, "short", expires_at=time.time() + 1)
    with aggregator.client(short) as client:
        assert client.get("/v1/token").status_code == 200
        until(lambda: client.get("/v1/token").status_code == 401, seconds=10)


def test_every_route_declares_its_answers_its_problems_and_its_token(app: FastAPI) -> None:
    for path, _, operation in operations(app):
        responses = operation["responses"]
        success = [status for status in responses if status.startswith("2")]
        assert success, path
        for status in success:
            assert "$ref" in responses[status]["content"]["application/json"]["schema"]
        for status in (status for status in responses if status[0] in "45"):
            schema = responses[status]["content"]["application/problem+json"]["schema"]
            assert schema == {"$ref": "#/components/schemas/Problem"}
        assert "500" in responses
        assert ("security" in operation) == (path not in PUBLIC)
        assert ("401" in responses) == (path not in PUBLIC)
        assert operation["summary"]
        assert operation["description"]


def test_bodies_are_documented_and_every_reference_leads_somewhere(app: FastAPI) -> None:
    document = app.openapi()
    schemas = document["components"]["schemas"]
    assert set(schemas) >= BODIES
    assert set(_references(document)) <= {f"#/components/schemas/{name}" for name in schemas}
    named = {
        operation["requestBody"]["content"]["application/json"]["schema"]["$ref"].rsplit("/")[-1]
        for _, _, operation in operations(app)
        if "requestBody" in operation
    }
    assert named == BODIES
    with_body = [operation for _, _, operation in operations(app) if "requestBody" in operation]
    for operation in with_body:
        assert {"408", "413", "415", "422", "426"} <= set(operation["responses"])


def test_problems_that_happen_are_those_that_are_declared(
    app: FastAPI, aggregator: Aggregator, campaign: Scene
) -> None:
    site = campaign.site()
    declared = {
        (path, method): set(operation["responses"]) for path, method, operation in operations(app)
    }
    for path, method, _ in operations(app):
        address = _filled(path, campaign.digest)
        for client in (campaign.owner, site.http):
            for headers in ({}, JSON, {**JSON, "Content-Encoding": "br"}, {"Tacit-Protocol": "9"}):
                for address_now in (
                    address,
                    _filled(path, secrets.token_hex(32)),
                    _filled(path, "x"),
                ):
                    if path.endswith(("/close", "/abandon")) and address_now == address:
                        continue
                    answer = client.request(method, address_now, headers=headers, content=b"")
                    assert str(answer.status_code) in declared[path, method], (path, method)
                    assert answer.status_code < 500
    assert aggregator.url


def test_a_wrong_address_or_method_is_a_problem_too(aggregator: Aggregator) -> None:
    with aggregator.client() as client:
        assert problem_name(client.get("/v1/nothing")) == "not-found"
        wrong = client.post("/healthz")
        assert (problem_name(wrong), wrong.headers["allow"]) == ("method-not-allowed", "GET")
        assert problem(wrong).type in PROBLEM_TYPES


def test_an_error_nobody_expected_gives_no_details(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    now: list[Any] = [time.time()]
    settings = migrated(tmp_path_factory.mktemp("broken"))
    with in_thread(settings, lambda: now[0]) as aggregator, aggregator.client() as client:
        now[0] = "a clock that tells no time: marker"
        answer = client.get("/v1/server")
        now[0] = time.time()
    found = problem(answer)
    assert (found.status, found.type) == (500, "urn:tacit:problem:internal")
    assert "marker" not in answer.text
    assert "ValueError" not in answer.text


def test_a_server_without_room_says_when_to_come_again(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    settings = migrated(tmp_path_factory.mktemp("full"), most_pending_bytes=2**20)
    gone = RegisteredModel("0" * 64, "gone", "pt2", "gone", None, "uint8", (2**20,), 2, "logits")
    database = Database(settings.database_url)
    with database.transaction("test model") as connection:
        register(connection, gone, time.time())
    database.close()
    evidence = Features(model=gone.digest, dtype="uint8", shape=gone.shape)
    document = campaign_document(k=2, evidence=evidence)
    with in_thread(settings) as aggregator, scene(aggregator, document) as made:
        site = made.site()
        uploads = [
            Upload(
                campaign=made.digest,
                upload=secrets.token_hex(16),
                labels=Column.of(np.zeros(1, np.uint8)),
                features=Column.of(np.zeros((1, 2**20), np.uint8)),
            )
            for _ in range(2)
        ]
        site.send(uploads[0])  # it is larger than the room there is, but nothing else waits
        answer = site.put(uploads[1])
        assert (answer.status_code, problem_name(answer)) == (503, "overloaded")
        assert int(answer.headers["retry-after"]) >= 1
        assert made.status().records.received == 1
        assert site.send(uploads[0]).state == "accepted"


def test_the_numbers_for_prometheus_count_and_name_no_site_and_no_campaign(
    tmp_path_factory: pytest.TempPathFactory, generator: np.random.Generator
) -> None:
    settings = migrated(tmp_path_factory.mktemp("metrics"), metrics_port=0)
    with as_process(settings) as aggregator, scene(aggregator, campaign_document()) as made:
        made.site("a named site").send(Reported.random(generator, 7).upload(made.digest))
        made.wait_until_counted(7)
        assert made.owner.get("/metrics").status_code == 404
        (port,) = [
            line["port"] for line in aggregator.lines if line.get("event") == "metrics listening"
        ]

        def numbers() -> str:
            return httpx.get(f"http://127.0.0.1:{port}/metrics", trust_env=False).text

        text: str = until(lambda: found if _SEVEN_COUNTED in (found := numbers()) else None)
    assert 'tacit_uploads_total{state="accepted"} 1.0' in text
    assert "tacit_pending_records 0.0" in text
    assert 'tacit_transaction_seconds_count{name="fold uploads"} 1.0' in text
    assert 'route="/v1/campaigns/{digest}/uploads/{upload}",status="200"' in text
    assert "tacit_fold_seconds_count 1.0" in text
    for name in ("a named site", made.digest, made.document.owner):
        assert name not in text


def test_documentation_pages_are_off_in_production(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    settings = migrated(tmp_path_factory.mktemp("production"))
    database = Database(settings.database_url)
    app = create_app(settings.model_copy(update={"environment": "production"}), database)
    database.close()
    assert app.docs_url is None
    assert create_app(settings, database).docs_url == "/docs"


def _filled(path: str, digest: str | None = None) -> str:
    return (
        path.replace("{digest}", digest or "0" * 64)
        .replace("{upload}", secrets.token_hex(16))
        .replace("{which}", "nominal")
    )


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for value in node.values():
            yield from _references(value)
    elif isinstance(node, list):
        for value in node:
            yield from _references(value)


def test_the_openapi_document_is_served(aggregator: Aggregator) -> None:
    with httpx.Client(base_url=aggregator.url, trust_env=False) as client:
        assert json.loads(client.get("/openapi.json").content)["openapi"].startswith("3.")
