"""Campaigns over HTTP."""

from typing import get_args

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool

from tacit.protocol import (
    Campaign,
    CampaignList,
    CampaignStatus,
    Problems,
    Role,
    Signed,
    sha256_hex,
)
from tacit.protocol.campaign import Method
from tacit.protocol.versions import FIRST, HEADER
from tacit_aggregator.campaigns import queries, service
from tacit_aggregator.errors import Refusal
from tacit_aggregator.http.authentication import Caller, require
from tacit_aggregator.http.conditional import document_answer
from tacit_aggregator.http.declared import (
    IF_NONE_MATCH,
    DigestInPath,
    body_of,
    declared,
    document,
    json_answer,
)
from tacit_aggregator.http.services import Services, Uses
from tacit_aggregator.scoring.backlog import Amount
from tacit_aggregator.tokens.service import Identity

router = APIRouter(tags=["campaigns"])


@router.put(
    "/v1/campaigns/{digest}",
    operation_id="createCampaign",
    summary="Create a campaign",
    response_model=Signed,
    status_code=201,
    openapi_extra=body_of(Campaign),
    responses={
        200: {"model": Signed, **document("It exists already, exactly like this.")},
        201: document("It is created and signed."),
        **declared(Problems.FORBIDDEN, Problems.WRONG_DIGEST, Problems.UNKNOWN_MODEL, body=True),
    },
)
async def create(
    digest: DigestInPath, request: Request, caller: Caller, services: Uses
) -> Response:
    """The body is the canonical JSON of the campaign's document."""
    require(caller, Role.OWNER, Role.ADMIN)
    with services.bodies.one() as body:
        content = await body.read(request)
        signed, is_new = await run_in_threadpool(_create, services, caller, digest, content)
    return document_answer(request, signed, digest, 201 if is_new else 200)


@router.get(
    "/v1/campaigns",
    operation_id="listCampaigns",
    summary="List campaigns",
    response_model=CampaignList,
    responses=declared(),
)
def listing(request: Request, caller: Caller, services: Uses) -> Response:
    """The campaigns that the caller may see, newest first; to version 1.0 those of labels."""
    methods = ("labels",) if request.headers.get(HEADER) == FIRST else get_args(Method)
    with services.database.read() as connection:
        now = services.database.now(connection)
        found = service.listing(connection, services.documents, caller, methods, now)
    return json_answer(found)


@router.get(
    "/v1/campaigns/{digest}",
    operation_id="getCampaign",
    summary="Get a campaign's document",
    response_model=Signed,
    openapi_extra=IF_NONE_MATCH,
    responses={
        200: document("The signed campaign."),
        304: document("Not modified."),
        **declared(campaign=True),
    },
)
def show(digest: DigestInPath, request: Request, caller: Caller, services: Uses) -> Response:
    """The signed campaign, for its owner, its sites and admins."""
    with services.database.read() as connection:
        service.visible(connection, caller, digest)
        signed = queries.signed(connection, digest)
    return document_answer(request, signed or "", digest)


@router.get(
    "/v1/campaigns/{digest}/status",
    operation_id="getCampaignStatus",
    summary="Get a campaign's status",
    response_model=CampaignStatus,
    responses=declared(campaign=True),
)
def status(digest: DigestInPath, caller: Caller, services: Uses) -> Response:
    """Where the campaign stands, and what it waits for."""
    return _status(services, caller, digest)


@router.post(
    "/v1/campaigns/{digest}/close",
    operation_id="closeCampaign",
    summary="Close a campaign by hand",
    response_model=CampaignStatus,
    responses=declared(Problems.FORBIDDEN, campaign=True),
)
def close(digest: DigestInPath, caller: Caller, services: Uses) -> Response:
    """Take no more uploads and count what was accepted; there will be no starred threshold."""
    require(caller, Role.OWNER, Role.ADMIN)
    with services.database.transaction("close campaign") as connection:
        service.close(connection, caller, digest, services.database.now(connection))
    services.backlog.wake()
    services.rounds.wake()
    return _status(services, caller, digest)


@router.post(
    "/v1/campaigns/{digest}/abandon",
    operation_id="abandonCampaign",
    summary="Abandon a campaign",
    response_model=CampaignStatus,
    responses=declared(Problems.FORBIDDEN, Problems.CAMPAIGN_CLOSED, campaign=True),
)
def abandon(digest: DigestInPath, caller: Caller, services: Uses) -> Response:
    """Erase what is not counted, and give no results."""
    require(caller, Role.OWNER, Role.ADMIN)
    with services.database.transaction("abandon campaign") as connection:
        now = services.database.now(connection)
        dropped = service.abandon(connection, caller, digest, now)
    services.backlog.dropped(Amount(*dropped))
    services.rounds.wake()
    return _status(services, caller, digest)


def _create(services: Services, caller: Identity, digest: str, body: bytes) -> tuple[str, bool]:
    campaign = Campaign.from_bytes(body)
    if sha256_hex(body) != digest:
        raise Refusal(Problems.WRONG_DIGEST, "The address must end in the body's SHA-256.")
    with services.database.read() as connection:
        existing = queries.signed(connection, digest)
        if existing is None:
            now = services.database.now(connection)
            service.check_new(connection, campaign, caller, now)
        else:
            service.visible(connection, caller, digest)
            return existing, False
    with services.database.transaction("create campaign") as connection:
        # Two may create it at the same time.
        services.database.keep_others_out(connection, f"create {digest}")
        existing = queries.signed(connection, digest)
        if existing is not None:
            return existing, False
        return service.create(connection, campaign, digest, services.secret, now), True


def _status(services: Services, caller: Identity, digest: str) -> Response:
    with services.database.read() as connection:
        now = services.database.now(connection)
        return json_answer(service.status(connection, services.documents, caller, digest, now))
