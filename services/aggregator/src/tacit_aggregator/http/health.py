"""Whether the server lives, is ready, and what it says of itself to anyone."""

from datetime import UTC, datetime
from importlib.metadata import version
from typing import Literal

from fastapi import APIRouter, Request, Response
from sqlalchemy.exc import SQLAlchemyError

from tacit.protocol import Problems, ServerInfo, TokenInfo
from tacit.protocol.versions import SUPPORTED
from tacit.protocol.wire import Wire
from tacit_aggregator.errors import Refusal
from tacit_aggregator.http.authentication import Caller
from tacit_aggregator.http.declared import declared, json_answer
from tacit_aggregator.http.services import Uses, services_of
from tacit_aggregator.keys.service import fingerprints

router = APIRouter()


class Health(Wire):
    """All is well."""

    status: Literal["ok"] = "ok"


@router.get(
    "/healthz",
    operation_id="isAlive",
    summary="Is it alive?",
    response_model=Health,
    tags=["health"],
    responses=declared(token=False, protocol=False),
)
async def healthz() -> Response:
    """Whether the process answers."""
    return json_answer(Health())


@router.get(
    "/readyz",
    operation_id="isReady",
    summary="Can it work?",
    response_model=Health,
    tags=["health"],
    responses=declared(Problems.UNAVAILABLE, token=False, protocol=False),
)
def readyz(request: Request) -> Response:
    """Whether it can do its work: the database answers, ingest, scoring and rounds run."""
    services = services_of(request)
    if request.app.state.stopping:
        raise Refusal(Problems.UNAVAILABLE, "The server is stopping.", retry_after=1)
    try:
        with services.database.read() as connection:
            fingerprints(connection)
    except SQLAlchemyError:
        raise Refusal(
            Problems.UNAVAILABLE, "The database does not answer.", retry_after=5
        ) from None
    if not services.writer.running:
        raise Refusal(Problems.UNAVAILABLE, "Uploads are not taken now.", retry_after=5)
    for trouble in (services.rounds.trouble, services.counting.trouble):
        if trouble is not None:
            raise Refusal(Problems.UNAVAILABLE, trouble, retry_after=5)
    return json_answer(Health())


@router.get(
    "/v1/server",
    operation_id="getServer",
    summary="Get what the server says of itself",
    response_model=ServerInfo,
    tags=["server"],
    responses=declared(token=False),
)
def server(services: Uses) -> Response:
    """What this server speaks, signs with and takes."""
    with services.database.read() as connection:
        keys = fingerprints(connection)
        now = services.database.now(connection)
    return json_answer(
        ServerInfo(
            service="tacit-aggregator",
            version=version("tacit-aggregator"),
            protocols=SUPPORTED,
            time=datetime.fromtimestamp(int(now), UTC),
            keys=keys,
            most_body_bytes=services.settings.most_body_bytes,
        )
    )


@router.get(
    "/v1/token",
    operation_id="getToken",
    summary="Get whom the token speaks for",
    response_model=TokenInfo,
    tags=["server"],
    responses=declared(),
)
async def token(caller: Caller) -> Response:
    """Who the caller's token speaks for."""
    expires = caller.expires_at
    return json_answer(
        TokenInfo(
            role=caller.role,
            name=caller.name,
            campaign=caller.campaign,
            expires=None if expires is None else datetime.fromtimestamp(int(expires), UTC),
        )
    )
