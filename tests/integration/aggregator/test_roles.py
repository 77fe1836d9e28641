"""Who may do what: roles, tokens, and routes without one."""

import secrets
import time

import pytest
from fastapi import FastAPI

from tacit.protocol import Role, TokenInfo
from tacit_aggregator.database.engine import Database
from tacit_aggregator.tokens.service import list_tokens, revoke
from tests.support.aggregator import Aggregator, until
from tests.support.label_campaigns import JSON, Scene, campaign_document, problem_name
from tests.support.openapi import PUBLIC, filled, operations


def test_every_route_without_a_token_is_unauthenticated(
    app: FastAPI, aggregator: Aggregator
) -> None:
    checked = 0
    with aggregator.client() as nobody, aggregator.client("tacit_" + "A" * 43) as unknown:
        for path, method, _ in operations(app):
            if path in PUBLIC:
                continue
            address = filled(path)
            for client in (nobody, unknown):
                answer = client.request(method, address)
                assert (answer.status_code, problem_name(answer)) == (401, "unauthenticated")
                assert answer.headers["www-authenticate"].startswith("Bearer")
                checked += 1
    assert checked >= 20


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
