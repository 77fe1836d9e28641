"""The OpenAPI document says what happens: answers, problems, bodies and headers."""

import json
import re
import secrets

import httpx
import pytest
from fastapi import FastAPI

from tacit.protocol import Campaign, RoundQuestion, Threshold
from tacit.protocol.versions import SUPPORTED
from tacit_aggregator.database.engine import Database
from tacit_aggregator.http.app import create_app
from tests.support.aggregator import Aggregator, migrated
from tests.support.label_campaigns import JSON, Scene
from tests.support.openapi import PUBLIC, filled, operations, references

BODIES = {"Campaign", "Enrolment", "Upload", "AnswerUpload", "RoundDone"}
RAW = {"/v1/models/{digest}"}
"""What is answered with bytes that are no JSON."""


def test_every_route_declares_its_answers_its_problems_and_its_token(app: FastAPI) -> None:
    for path, _, operation in operations(app):
        responses = operation["responses"]
        success = [status for status in responses if status.startswith("2")]
        assert success, path
        for status in success:
            if path in RAW:
                assert "application/octet-stream" in responses[status]["content"]
            else:
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
    components = document["components"]
    assert set(components["schemas"]) >= BODIES
    assert set(references(document)) <= {
        f"#/components/{kind}/{name}" for kind, named in components.items() for name in named
    }
    named = {
        reference.rsplit("/")[-1]
        for _, _, operation in operations(app)
        for reference in references(operation.get("requestBody", {}))
    }
    assert named == BODIES
    with_body = [operation for _, _, operation in operations(app) if "requestBody" in operation]
    for operation in with_body:
        assert {"408", "413", "415", "422", "426"} <= set(operation["responses"])


def test_every_operation_has_a_name_of_its_own_a_title_and_a_tag_that_is_described(
    app: FastAPI,
) -> None:
    found = [operation for _, _, operation in operations(app)]
    names = {operation["operationId"] for operation in found}
    assert len(names) == len(found)
    assert all(re.fullmatch(r"[a-z][A-Za-z]+", name) for name in names)
    assert len({operation["summary"] for operation in found}) == len(found)
    described = {tag["name"] for tag in app.openapi()["tags"] if tag["description"]}
    assert {tag for operation in found for tag in operation["tags"]} == described


def test_what_is_signed_is_described(app: FastAPI) -> None:
    schemas = app.openapi()["components"]["schemas"]
    payload = schemas["Signed"]["properties"]["payload"]
    assert set(references(payload)) == {
        "#/components/schemas/Campaign",
        "#/components/schemas/RoundQuestion",
        "#/components/schemas/Threshold",
    }
    for kind in (Campaign, Threshold):
        forms = kind.__subclasses__()
        assert set(references(schemas[kind.__name__])) == {
            f"#/components/schemas/{form.__name__}" for form in forms
        }
        for form in (*forms, RoundQuestion):
            assert set(schemas[form.__name__]["properties"]) == set(form.model_fields)
    assert payload["contentMediaType"] == "application/json"


def test_headers_that_answers_have_are_those_that_are_declared(
    app: FastAPI, aggregator: Aggregator, campaign: Scene
) -> None:
    declared = {
        (path, method, int(status)): {name.lower() for name in response["headers"]}
        for path, method, operation in operations(app)
        for status, response in operation["responses"].items()
    }
    said = {"x-request-id", "etag", "www-authenticate", "retry-after"}
    path = "/v1/campaigns/{digest}"
    with aggregator.client() as nobody:
        document = campaign.owner.get(campaign.address)
        known = {"If-None-Match": document.headers["etag"]}
        answers = [
            (path, document),
            (path, campaign.owner.get(campaign.address, headers=known)),
            (path, nobody.get(campaign.address)),
            (f"{path}/thresholds/{{which}}", campaign.threshold()),
            ("/healthz", nobody.get("/healthz")),
        ]
    assert [answer.status_code for _, answer in answers] == [200, 304, 401, 409, 200]
    for found, answer in answers:
        there = said & set(answer.headers.keys())
        assert there == declared[found, "get", answer.status_code], answer


def test_headers_that_requests_may_have_are_declared(app: FastAPI) -> None:
    for path, method, operation in operations(app):
        named = {
            reference.rsplit("/")[-1] for reference in references(operation.get("parameters", []))
        }
        assert ("Tacit-Protocol" in named) == path.startswith("/v1/")
        has_304 = method == "get" and "304" in operation["responses"]
        assert ("If-None-Match" in named) == has_304
    shown = app.openapi()["components"]["parameters"]
    assert {name: one["in"] for name, one in shown.items()} == dict.fromkeys(shown, "header")
    assert shown["Tacit-Protocol"]["schema"]["enum"] == list(SUPPORTED)


def test_problems_that_happen_are_those_that_are_declared(
    app: FastAPI, aggregator: Aggregator, campaign: Scene
) -> None:
    site = campaign.site()
    declared = {
        (path, method): set(operation["responses"]) for path, method, operation in operations(app)
    }
    for path, method, _ in operations(app):
        address = filled(path, campaign.digest)
        for client in (campaign.owner, site.http):
            for headers in ({}, JSON, {**JSON, "Content-Encoding": "br"}, {"Tacit-Protocol": "9"}):
                for address_now in (
                    address,
                    filled(path, secrets.token_hex(32)),
                    filled(path, "x"),
                ):
                    if path.endswith(("/close", "/abandon")) and address_now == address:
                        continue
                    answer = client.request(method, address_now, headers=headers, content=b"")
                    assert str(answer.status_code) in declared[path, method], (path, method)
                    assert answer.status_code < 500
    assert aggregator.url


def test_the_openapi_document_is_served(aggregator: Aggregator) -> None:
    with httpx.Client(base_url=aggregator.url, trust_env=False) as client:
        assert json.loads(client.get("/openapi.json").content)["openapi"].startswith("3.")


def test_documentation_pages_are_off_in_production(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    settings = migrated(tmp_path_factory.mktemp("production"))
    database = Database(settings.database_url)
    app = create_app(settings.model_copy(update={"environment": "production"}), database)
    database.close()
    assert app.docs_url is None
    assert create_app(settings, database).docs_url == "/docs"
