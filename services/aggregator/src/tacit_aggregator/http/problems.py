"""Every way a request ends badly, as one kind of answer: a problem document."""

import math

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from tacit.errors import TacitError, UpgradeRequired
from tacit.protocol import FieldError, Problem, Problems, ProblemType
from tacit.protocol.problems import MEDIA_TYPE
from tacit_aggregator.database.failures import is_away
from tacit_aggregator.errors import Refusal

REQUEST_ID = "tacit.request_id"
"""Where the edge puts a request's id in its scope."""

_MOST_ERRORS = 20
_BY_STATUS = {404: Problems.NOT_FOUND, 405: Problems.METHOD_NOT_ALLOWED}


def answer(refusal: Refusal, request_id: str | None) -> Response:
    """The problem document of a refusal, with the headers that belong to it."""
    problem = refusal.problem
    document = Problem(
        type=problem.urn,
        title=problem.title,
        status=problem.status,
        detail=refusal.detail,
        next=problem.next,
        request_id=request_id,
        errors=refusal.errors[:_MOST_ERRORS],
    )
    return Response(
        document.model_dump_json(),
        status_code=problem.status,
        media_type=MEDIA_TYPE,
        headers=_headers(problem, refusal.retry_after),
    )


def install(app: FastAPI) -> None:
    """Have the application answer every expected error with a problem document."""
    app.add_exception_handler(Refusal, _handle)
    app.add_exception_handler(TacitError, _handle)
    app.add_exception_handler(RequestValidationError, _handle)
    app.add_exception_handler(HTTPException, _handle)
    app.add_exception_handler(ClientDisconnect, _handle)


async def _handle(request: Request, error: Exception) -> Response:
    response = answer(refusal_of(error), request.scope.get(REQUEST_ID))
    if isinstance(error, HTTPException) and error.headers:
        response.headers.update(error.headers)
    return response


def refusal_of(error: Exception) -> Refusal:
    """The refusal that an error of a request amounts to."""
    match error:
        case Refusal():
            refusal = error
        case UpgradeRequired():
            refusal = Refusal(Problems.UPGRADE_REQUIRED, str(error))
        case TacitError():
            refusal = Refusal(Problems.INVALID_REQUEST, str(error))
        case RequestValidationError():
            refusal = Refusal(Problems.INVALID_REQUEST, errors=_of_parameters(error))
        case ClientDisconnect():
            refusal = Refusal(Problems.BODY_TOO_SLOW)
        case HTTPException():
            refusal = Refusal(_BY_STATUS.get(error.status_code, Problems.INVALID_REQUEST))
        case _ if is_away(error):
            refusal = Refusal(Problems.UNAVAILABLE, "The database is away.", retry_after=2)
        case _:
            refusal = Refusal(Problems.INTERNAL, retry_after=1)
    return refusal


def _of_parameters(error: RequestValidationError) -> tuple[FieldError, ...]:
    return tuple(
        FieldError(field=".".join(map(str, detail["loc"])), message=detail["msg"])
        for detail in error.errors()
    )


def _headers(problem: ProblemType, retry_after: float | None) -> dict[str, str]:
    headers = {"Cache-Control": "no-store"}
    if retry_after is not None:
        headers["Retry-After"] = str(max(1, math.ceil(retry_after)))
    if problem is Problems.UNAUTHENTICATED.value:
        headers["WWW-Authenticate"] = 'Bearer realm="tacit"'
    if problem is Problems.BODY_TOO_SLOW.value:
        headers["Connection"] = "close"  # the rest of the body would be taken for a request
    return headers
