"""Rounds over HTTP."""

import re
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import BeforeValidator

from tacit.protocol import LONGEST_POLL, CurrentRound, Problems, Role, RoundDone, RoundStatus
from tacit.protocol.score_campaign import MOST_ROUNDS
from tacit_aggregator.errors import Refusal
from tacit_aggregator.http.authentication import Caller, require
from tacit_aggregator.http.declared import DigestInPath, body_of, declared, json_answer
from tacit_aggregator.http.services import Services, Uses
from tacit_aggregator.messages import read_model
from tacit_aggregator.rounds import service
from tacit_aggregator.tokens.service import Identity

router = APIRouter(tags=["rounds"])


def _plain(number: str) -> str:
    """Refuse spellings of a number that only some readers take for it."""
    if re.fullmatch(r"0|[1-9]\d{0,3}", number, re.ASCII) is None:
        raise ValueError("is not a number")
    return number


RoundInPath = Annotated[
    int,
    BeforeValidator(_plain),
    Path(ge=0, lt=MOST_ROUNDS, description="The round's number, counted from 0."),
]
_After = Annotated[
    int, Query(ge=-1, lt=MOST_ROUNDS, description="The newest round that the caller knows.")
]
_Wait = Annotated[
    float,
    Query(ge=0, le=LONGEST_POLL, allow_inf_nan=False, description="Seconds to wait for a newer."),
]


@router.get(
    "/v1/campaigns/{digest}/round",
    operation_id="getRound",
    summary="Get the question that is asked now",
    response_model=CurrentRound,
    responses=declared(campaign=True),
)
async def current(
    digest: DigestInPath,
    request: Request,
    caller: Caller,
    services: Uses,
    after: _After = -1,
    wait: _Wait = 0.0,
) -> Response:
    """Answered at once if a newer round is open or the search is over, else when that happens."""
    await _checked(services, caller, digest)
    found = await services.watch.current(digest, after, wait, lambda: _hung_up(request))
    if found is None:
        raise Refusal(Problems.NOT_FOUND)
    return json_answer(found.aged())


@router.put(
    "/v1/campaigns/{digest}/rounds/{number}/done",
    operation_id="markRoundDone",
    summary="Mark a round done",
    response_model=RoundStatus,
    openapi_extra=body_of(RoundDone),
    responses=declared(
        Problems.FORBIDDEN,
        Problems.NOT_ENROLLED,
        Problems.WRONG_QUESTION,
        Problems.ANSWERS_MISSING,
        body=True,
        campaign=True,
    ),
)
async def done(
    digest: DigestInPath, number: RoundInPath, request: Request, caller: Caller, services: Uses
) -> Response:
    """The caller's site has given all its answers: so many, and all of them are stored."""
    require(caller, Role.CONTRIBUTOR)
    await _checked(services, caller, digest)
    with services.bodies.one() as body:
        mark = read_model(RoundDone, await body.read(request))
    return await run_in_threadpool(_done, services, caller, digest, number, mark.answers)


async def _hung_up(request: Request) -> None:
    # A request that nobody waits for still counts as one that is served, and crowds out others.
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _checked(services: Services, caller: Identity, digest: str) -> None:
    terms = services.documents.known(digest)
    if terms is None:
        terms = await run_in_threadpool(services.documents.get, digest)
    service.check_visible(terms, caller)


def _done(services: Services, caller: Identity, digest: str, number: int, answers: int) -> Response:
    database = services.database
    with database.transaction("mark round done") as connection:
        now = database.now(connection)
        service.mark_done(connection, digest, number, caller.name, answers, now)
    services.rounds.wake()
    with database.read() as connection:
        now = database.now(connection)
        found = service.round_status(
            connection, services.documents, digest, number, caller.name, now
        )
    return json_answer(found)
