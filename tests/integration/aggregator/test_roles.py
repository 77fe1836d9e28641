"""Who may do what: every operation, for everybody, in a table; and whom a token speaks for."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from sqlalchemy import update

from tacit.protocol import CampaignList, Role, TokenInfo
from tacit_aggregator.database.engine import Database
from tacit_aggregator.database.tables import tokens
from tacit_aggregator.tokens.service import list_tokens, revoke
from tests.support.aggregator import Aggregator, in_thread, migrated, until
from tests.support.label_campaigns import JSON, Scene, campaign_document, problem_name
from tests.support.openapi import PUBLIC
from tests.support.people import PEOPLE, RECORDS, WORTHLESS, Play, document_of, play

TABLE = """
                                          no unk exp rev adm own oth sit nei str
both    GET    /healthz                   200 200 200 200 200 200 200 200 200 200
both    GET    /readyz                    200 200 200 200 200 200 200 200 200 200
both    GET    /v1/server                 200 200 200 200 200 200 200 200 200 200
both    GET    /v1/token                  401 401 401 401 200 200 200 200 200 200
both    GET    /v1/campaigns              401 401 401 401 200 200 200 200 200 200
both    PUT    {c}                        401 401 401 401 200 200 404 403 403 403
both    PUT    {c} as-new                 401 401 401 401 201 201 403 403 403 403
both    GET    {c}                        401 401 401 401 200 200 404 200 200 404
both    GET    {c}/status                 401 401 401 401 200 200 404 200 200 404
both    POST   {c}/close                  401 401 401 401 200 200 404 403 403 403
both    POST   {c}/abandon                401 401 401 401 200 200 404 403 403 403
both    PUT    {c}/enrolment              401 401 401 401 403 403 403 200 200 404
both    DELETE {c}/enrolment              401 401 401 401 403 403 403 200 200 404
both    PUT    {c}/uploads/{upload}       401 401 401 401 403 403 403 200 200 404
both    GET    {c}/uploads                401 401 401 401 403 403 403 200 200 404
labels  GET    {c}/thresholds/{which}     401 401 401 401 200 200 404 200 200 404
scores  GET    {c}/thresholds/{which}     401 401 401 401 409 409 404 409 409 404
labels  GET    {c}/round                  401 401 401 401 404 404 404 404 404 404
scores  GET    {c}/round                  401 401 401 401 200 200 404 200 200 404
labels  PUT    {c}/rounds/{number}/done   401 401 401 401 403 403 403 404 404 404
scores  PUT    {c}/rounds/{number}/done   401 401 401 401 403 403 403 200 200 404
scores  GET    /v1/models/{digest}        401 401 401 401 200 200 404 200 200 404
"""
"""{c} is /v1/campaigns/{digest}. 409: the campaign has no threshold yet, whoever asks."""

NOBODY = PEOPLE[:4]


@dataclass(frozen=True)
class Row:
    """An operation, and the status that each of the people gets."""

    method: str
    verb: str
    template: str
    variant: str
    expected: dict[str, int]

    @property
    def name(self) -> str:
        """For people."""
        return f"{self.method} {self.verb} {self.template} {self.variant}".strip()

    @property
    def operation(self) -> tuple[str, str]:
        """As the OpenAPI document names it."""
        return self.template, self.verb.lower()


def rows() -> Iterator[Row]:
    for line in TABLE.strip().splitlines()[1:]:
        methods, verb, path, *rest = line.split()
        variant = rest.pop(0) if len(rest) > len(PEOPLE) else ""
        expected = dict(zip(PEOPLE, map(int, rest), strict=True))
        template = path.replace("{c}", "/v1/campaigns/{digest}")
        for method in ("labels", "scores") if methods == "both" else (methods,):
            yield Row(method, verb, template, variant, expected)


ROWS = list(rows())


@pytest.fixture(scope="module")
def aggregator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Aggregator]:
    folder: Path = tmp_path_factory.mktemp("roles")
    with in_thread(migrated(folder)) as running:
        yield running


def request(played: Play, row: Row, who: str) -> httpx.Response:
    """The answer to a request that is right but for who sends it."""
    upload = played.upload()
    digest, body = played.document.digest, b""
    match row.operation:
        case ("/v1/models/{digest}", _):
            digest = played.model
        case ("/v1/campaigns/{digest}", "put"):
            document = played.document
            if row.variant == "as-new":
                document = document_of(row.method, "owner", played.model)
            digest, body = document.digest, document.to_bytes()
        case (template, "put") if template.endswith("/enrolment"):
            body = json.dumps({"records": RECORDS}).encode()
        case (template, "put") if template.endswith("/uploads/{upload}"):
            body = upload.to_bytes()
        case (template, "put") if template.endswith("/done"):
            body = b'{"answers":0}'
    path = row.template.format(digest=digest, upload=upload.upload, which="nominal", number=0)
    headers = JSON if body else {}
    return played.clients[who].request(row.verb, path, content=body or None, headers=headers)


def allowed(row: Row) -> list[str]:
    return [who for who in PEOPLE if row.expected[who] < 400]


@pytest.mark.parametrize("method", ["labels", "scores"])
def test_a_token_that_has_expired_or_was_revoked_is_worth_nothing_whoever_it_was_for(
    aggregator: Aggregator, model: str, method: str
) -> None:
    with play(aggregator, method, model) as played:
        before = played.stored()
        for row in (row for row in ROWS if row.method == method):
            got = {who: request(played, row, who).status_code for who in WORTHLESS}
            assert got == dict.fromkeys(WORTHLESS, row.expected["expired"]), row.name
        assert played.stored() == before


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_each_is_refused_what_the_table_says_and_reading_and_refusals_change_nothing(
    aggregator: Aggregator, model: str, row: Row
) -> None:
    problems = {401: "unauthenticated", 403: "forbidden", 404: "not-found", 409: "not-ready"}
    with play(aggregator, row.method, model) as played:
        before = played.stored()
        for who in (who for who in PEOPLE if row.expected[who] >= 400):
            answer = request(played, row, who)
            assert answer.status_code == row.expected[who], (who, answer.text)
            assert problem_name(answer) == problems[answer.status_code]
            assert ("www-authenticate" in answer.headers) == (answer.status_code == 401)
        for who in allowed(row) if row.verb == "GET" else ():
            assert request(played, row, who).status_code == 200, who
        assert played.stored() == before


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row.verb != "GET"], ids=lambda row: row.name
)
def test_each_may_change_what_the_table_says(aggregator: Aggregator, model: str, row: Row) -> None:
    for who in allowed(row):
        with play(aggregator, row.method, model) as played:
            answer = request(played, row, who)
            assert answer.status_code == row.expected[who], (who, answer.text)


def test_every_operation_of_the_server_is_in_the_table(aggregator: Aggregator) -> None:
    with aggregator.client() as anybody:
        paths = anybody.get("/openapi.json").raise_for_status().json()["paths"]
    served = {(path, verb) for path, verbs in paths.items() for verb in verbs}
    assert served == {row.operation for row in ROWS}


def test_only_what_is_public_answers_nobody() -> None:
    for row in ROWS:
        for who in NOBODY:
            assert row.expected[who] == (200 if row.template in PUBLIC else 401)


@pytest.mark.parametrize("method", ["labels", "scores"])
def test_a_list_shows_nobody_the_campaigns_of_another(
    aggregator: Aggregator, model: str, method: str
) -> None:
    with play(aggregator, method, model) as played:
        listed: dict[str, set[str]] = {}
        for who in PEOPLE[4:]:
            content = played.clients[who].get("/v1/campaigns").raise_for_status().content
            found = CampaignList.model_validate_json(content).campaigns
            listed[who] = {status.campaign for status in found}
    digest = played.document.digest
    assert {who for who, seen in listed.items() if digest in seen} == {
        *("admin", "owner", "site", "neighbour")
    }
    assert listed["site"] == listed["neighbour"] == {digest}
    assert listed["owner"].isdisjoint(listed["other owner"])
    assert listed["stranger"] <= listed["other owner"]


def test_a_token_says_who_it_speaks_for(campaign: Scene) -> None:
    site = campaign.site("a site")
    found = TokenInfo.model_validate_json(site.http.get("/v1/token").content)
    assert (found.role, found.name, found.campaign) == ("contributor", "a site", campaign.digest)


def test_an_admin_may_create_a_campaign_for_an_owner(aggregator: Aggregator) -> None:
    document = campaign_document(owner="a third owner")
    with (
        aggregator.client(aggregator.token(Role.ADMIN, "operator")) as admin,
        aggregator.client(aggregator.token(Role.OWNER, "a third owner")) as owner,
    ):
        address = f"/v1/campaigns/{document.digest}"
        assert admin.put(address, content=document.to_bytes(), headers=JSON).status_code == 201
        assert owner.get(address).status_code == 200
        assert admin.post(address + "/close").status_code == 200


def test_a_revoked_or_expired_token_is_worth_nothing_soon(aggregator: Aggregator) -> None:
    database = Database(aggregator.settings.database_url)
    with aggregator.client(aggregator.token(Role.OWNER, "to be revoked")) as client:
        assert client.get("/v1/token").status_code == 200
        with database.transaction("test revocation") as connection:
            (token,) = [one for one in list_tokens(connection) if one.name == "to be revoked"]
            revoke(connection, token.id, time.time())
        until(lambda: client.get("/v1/token").status_code == 401, seconds=10)
    short = aggregator.token(Role.OWNER, "short", expires_at=time.time() + 600)
    with aggregator.client(short) as client:
        assert client.get("/v1/token").status_code == 200
        with database.transaction("test expiry") as connection:
            connection.execute(update(tokens).where(tokens.c.name == "short").values(expires_at=1))
        until(lambda: client.get("/v1/token").status_code == 401, seconds=10)
    database.close()
