"""Enrolment over HTTP."""

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool

from tacit.protocol import Enrolment, Problems, Role, SiteStatus
from tacit_aggregator.http.authentication import Caller, require
from tacit_aggregator.http.declared import DigestInPath, body_of, declared, json_answer
from tacit_aggregator.http.services import Services, Uses
from tacit_aggregator.messages import read_model
from tacit_aggregator.sites import service
from tacit_aggregator.tokens.service import Identity

router = APIRouter(tags=["sites"])


@router.put(
    "/v1/campaigns/{digest}/enrolment",
    operation_id="enrol",
    summary="Enrol the caller's site",
    response_model=SiteStatus,
    openapi_extra=body_of(Enrolment),
    responses=declared(
        Problems.FORBIDDEN,
        Problems.NOT_ENROLLED,
        Problems.CAMPAIGN_CLOSED,
        Problems.ENROLMENT_CLOSED,
        body=True,
        campaign=True,
    ),
)
async def enrol(digest: DigestInPath, request: Request, caller: Caller, services: Uses) -> Response:
    """Say how many records the site will send, at most."""
    require(caller, Role.CONTRIBUTOR)
    with services.bodies.one() as body:
        enrolment = read_model(Enrolment, await body.read(request))
    return await run_in_threadpool(_enrol, services, caller, digest, enrolment.records)


@router.delete(
    "/v1/campaigns/{digest}/enrolment",
    operation_id="leave",
    summary="Leave the campaign",
    response_model=SiteStatus,
    responses=declared(Problems.FORBIDDEN, campaign=True),
)
def leave(digest: DigestInPath, caller: Caller, services: Uses) -> Response:
    """Nothing more is taken from the caller's site; what was accepted is counted."""
    require(caller, Role.CONTRIBUTOR)
    with services.database.transaction("leave campaign") as connection:
        now = services.database.now(connection)
        status = service.leave(connection, caller, digest, now)
    services.rounds.wake()
    return json_answer(status)


def _enrol(services: Services, caller: Identity, digest: str, records: int) -> Response:
    with services.database.transaction("enrol site") as connection:
        now = services.database.now(connection)
        status = service.enrol(connection, caller, digest, records, now)
    services.rounds.wake()
    return json_answer(status)
