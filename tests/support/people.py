"""Everybody who might send a request, and a campaign that they might send it to."""

import secrets
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import numpy as np
from sqlalchemy import select

from tacit.protocol import (
    AnswerUpload,
    Campaign,
    Column,
    CurrentRound,
    LabelCampaign,
    Model,
    Role,
    ScoreCampaign,
    Signed,
    Upload,
    sha256_hex,
)
from tacit.scores import HPS
from tacit_aggregator.database.engine import Database
from tacit_aggregator.database.tables import metadata
from tacit_aggregator.tokens.service import MintedToken, create, revoke
from tests.support.aggregator import Aggregator, until
from tests.support.label_campaigns import JSON, Reported, campaign_document
from tests.support.tiny_models import CLASSES, SHAPE

RECORDS = 40
PEOPLE = (
    "anonymous",
    "unknown",
    "expired",
    "revoked",
    "admin",
    "owner",
    "other owner",
    "site",
    "neighbour",
    "stranger",
)
"""The last three are sites: of this campaign, another of this campaign, and of another campaign
under the name of the first."""


WORTHLESS = ("expired owner", "revoked owner", "expired site", "revoked site")
"""Those who would be somebody, were their tokens still good; an admin's are in the table."""


def score_document(owner: str, model: str | None = None, **terms: Any) -> ScoreCampaign:
    """A score campaign whose first question is asked as soon as all its records are enrolled."""
    now = datetime.fromtimestamp(int(time.time()), UTC)
    asked: dict[str, Any] = {
        "title": "Digits",
        "owner": owner,
        "classes": [f"class {number}" for number in range(CLASSES)],
        "epsilon": 2.0,
        "score": HPS(),
        "alpha": 0.2,
        "planned_n": 2 * RECORDS,
        "opens": now - timedelta(seconds=60),
        "enrol_until": now + timedelta(seconds=1800),
        "closes": now + timedelta(seconds=3600),
        "round_seconds": 1800,
        "shares": (1,) * 4,
    }
    if model is not None:
        asked["model"] = Model(digest=model, dtype="float32", shape=SHAPE, outputs="logits")
    return ScoreCampaign.of(**(asked | terms))


def document_of(method: str, owner: str, model: str) -> Campaign:
    """A campaign that takes uploads now."""
    if method == "scores":
        return score_document(owner, model)
    return campaign_document(owner=owner, k=CLASSES)


@dataclass
class Play:
    """A campaign with two enrolled sites, and everybody's client."""

    aggregator: Aggregator
    document: Campaign
    model: str
    clients: dict[str, httpx.Client]
    question: str = ""
    """The digest of the open question, of a score campaign."""

    @property
    def address(self) -> str:
        """Where the campaign is."""
        return f"/v1/campaigns/{self.document.digest}"

    def upload(self, records: int = 4) -> Upload | AnswerUpload:
        """An upload that the campaign takes from either of its sites."""
        if isinstance(self.document, LabelCampaign):
            generator = np.random.default_rng(1)
            return Reported.random(generator, records, CLASSES).upload(self.document.digest)
        return AnswerUpload(
            campaign=self.document.digest,
            upload=secrets.token_hex(16),
            round=0,
            question=self.question,
            bits=Column.of(np.ones(records, dtype=np.uint8)),
        )

    def put(self, who: str, upload: Upload | AnswerUpload) -> httpx.Response:
        """Send an upload in somebody's name."""
        address = f"{self.address}/uploads/{upload.upload}"
        return self.clients[who].put(address, content=upload.to_bytes(), headers=JSON)

    def stored(self) -> dict[str, list[str]]:
        """Every row of every table."""
        database = Database(self.aggregator.settings.database_url)
        with database.read() as connection:
            tables = metadata.sorted_tables
            rows = {table.name: connection.execute(select(table)).all() for table in tables}
        database.close()
        return {name: sorted(map(repr, found)) for name, found in rows.items()}


@contextmanager
def play(aggregator: Aggregator, method: str, model: str) -> Iterator[Play]:
    """A new campaign of this method; nothing in the database moves by itself."""
    with ExitStack() as stack:
        tokens = _tokens(aggregator)
        clients = {
            who: stack.enter_context(aggregator.client(token)) for who, token in tokens.items()
        }
        document = document_of(method, "owner", model)
        _create(clients["owner"], document)
        other = campaign_document(owner="other owner")
        _create(clients["other owner"], other)
        for who, name, campaign in (
            ("site", "north", document),
            ("neighbour", "south", document),
            ("stranger", "north", other),
        ):
            token = aggregator.token(Role.CONTRIBUTOR, name, campaign.digest)
            clients[who] = stack.enter_context(aggregator.client(token))
            enrolment = f"/v1/campaigns/{campaign.digest}/enrolment"
            clients[who].put(enrolment, json={"records": RECORDS}).raise_for_status()
        for who, token in _worthless(aggregator, document.digest).items():
            clients[who] = stack.enter_context(aggregator.client(token))
        made = Play(aggregator, document, model, clients)
        _begin(made)
        yield made


def _begin(made: Play) -> None:
    """Wait for the first question, or have some labels counted."""
    if isinstance(made.document, ScoreCampaign):
        made.question = until(lambda: _question(made.clients["owner"], made.address))
        return
    made.put("site", made.upload()).raise_for_status()
    until(lambda: _counted(made.clients["owner"], made.address))


def _question(owner: httpx.Client, address: str) -> str | None:
    content = owner.get(f"{address}/round").raise_for_status().content
    question: Signed | None = CurrentRound.model_validate_json(content).question
    return None if question is None else sha256_hex(question.payload.encode())


def _counted(owner: httpx.Client, address: str) -> bool:
    return bool(owner.get(f"{address}/status").raise_for_status().json()["records"]["counted"])


def _create(owner: httpx.Client, document: Campaign) -> None:
    address = f"/v1/campaigns/{document.digest}"
    owner.put(address, content=document.to_bytes(), headers=JSON).raise_for_status()


def _tokens(aggregator: Aggregator) -> dict[str, str | None]:
    """Those that do not depend on the campaign; the worthless ones were an admin's."""
    now = time.time()
    database = Database(aggregator.settings.database_url)
    with database.transaction("test tokens") as connection:

        def made(role: Role, name: str, at: float = now, until: float | None = None) -> MintedToken:
            return create(connection, role, name, campaign=None, expires_at=until, now=at)

        revoked = made(Role.ADMIN, "revoked")
        revoke(connection, revoked.id, now)
        tokens: dict[str, str | None] = {
            "anonymous": None,
            "unknown": "tacit_" + "A" * 43,
            "expired": made(Role.ADMIN, "expired", now - 2, now - 1).token,
            "revoked": revoked.token,
            "admin": made(Role.ADMIN, "operator").token,
            "owner": made(Role.OWNER, "owner").token,
            "other owner": made(Role.OWNER, "other owner").token,
        }
    database.close()
    return tokens


def _worthless(aggregator: Aggregator, campaign: str) -> dict[str, str]:
    """Tokens of the campaign's own owner and site that are not good any more."""
    now = time.time()
    database = Database(aggregator.settings.database_url)
    tokens: dict[str, str] = {}
    with database.transaction("test tokens") as connection:
        for who, role, name, scope in (
            ("owner", Role.OWNER, "owner", None),
            ("site", Role.CONTRIBUTOR, "north", campaign),
        ):
            for what, expires in (("expired", now - 1), ("revoked", None)):
                made = create(
                    connection, role, name, campaign=scope, expires_at=expires, now=now - 2
                )
                tokens[f"{what} {who}"] = made.token
                if what == "revoked":
                    revoke(connection, made.id, now)
    database.close()
    return tokens
