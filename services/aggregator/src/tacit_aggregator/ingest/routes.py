"""Uploads over HTTP."""

import re
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.routing import APIRoute
from starlette.types import Receive, Scope, Send

from tacit.protocol import (
    AnswerUpload,
    FieldError,
    LabelCampaign,
    Problems,
    Receipt,
    Receipts,
    Role,
    Upload,
)
from tacit_aggregator.campaigns.documents import Terms
from tacit_aggregator.errors import Refusal
from tacit_aggregator.http.authentication import Caller, bearer_token, require
from tacit_aggregator.http.declared import (
    DIGEST,
    IDENTIFIER,
    DigestInPath,
    UploadInPath,
    body_of,
    declared,
    json_answer,
)
from tacit_aggregator.http.services import Services, Uses, services_of
from tacit_aggregator.ingest import service
from tacit_aggregator.ingest.answers import AnswerSubmission
from tacit_aggregator.ingest.submission import Submission
from tacit_aggregator.tokens.service import Identity

router = APIRouter(tags=["uploads"])

_BIG = 2**18
"""Bodies of more bytes are checked in a thread: the event loop has others to serve."""

_MOST_RECEIPTS = 1000
_PATTERNS = {"digest": re.compile(DIGEST), "upload": re.compile(IDENTIFIER)}


class _Straight(APIRoute):
    """A route whose parameters are read by hand, past the stacks and dependencies of the others.

    FastAPI takes longer for those than for a report. Refusals go to the application's handler.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **given: Any) -> None:
        super().__init__(path, endpoint, **given)
        self.app = self._answer

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive, send)
        caller = await bearer_token(request)
        parameters = request.path_params
        wrong = tuple(
            FieldError(field=f"path.{name}", message="is not of this form")
            for name, pattern in _PATTERNS.items()
            if not pattern.fullmatch(parameters[name])
        )
        if wrong:
            raise Refusal(Problems.INVALID_REQUEST, errors=wrong)
        response: Response = await self.endpoint(
            **parameters, request=request, caller=caller, services=services_of(request)
        )
        await response(scope, receive, send)


_uploads = APIRouter(tags=["uploads"], route_class=_Straight)


@_uploads.put(
    "/v1/campaigns/{digest}/uploads/{upload}",
    operation_id="putUpload",
    summary="Send an upload",
    response_model=Receipt,
    openapi_extra=body_of(Upload, AnswerUpload),
    responses=declared(
        Problems.FORBIDDEN,
        Problems.WRONG_DIGEST,
        Problems.UPLOAD_CONFLICT,
        Problems.NOT_ENROLLED,
        Problems.NOT_OPEN,
        Problems.CAMPAIGN_CLOSED,
        Problems.WRONG_QUESTION,
        Problems.ROUND_CLOSED,
        Problems.OVERLOADED,
        body=True,
        campaign=True,
    ),
)
async def put_upload(
    digest: DigestInPath, upload: UploadInPath, request: Request, caller: Caller, services: Uses
) -> Response:
    """Store an upload, exactly once however often it is sent; answered when it is durable."""
    terms = await _terms(services, caller, digest)
    with services.bodies.one() as body:
        submission = await _checked(await body.read(request), terms, caller.name, upload)
    stored = await services.writer.store(submission)
    return json_answer(
        Receipt(upload=upload, records=submission.records, state=stored.state, reason=stored.reason)
    )


router.routes.extend(_uploads.routes)


@router.get(
    "/v1/campaigns/{digest}/uploads",
    operation_id="listUploads",
    summary="List the caller's uploads",
    response_model=Receipts,
    responses=declared(Problems.FORBIDDEN, campaign=True),
)
def receipts(
    digest: DigestInPath,
    caller: Caller,
    services: Uses,
    after: Annotated[str | None, Query(pattern=IDENTIFIER)] = None,
    limit: Annotated[int, Query(ge=1, le=_MOST_RECEIPTS)] = _MOST_RECEIPTS,
) -> Response:
    """What became of this site's uploads, oldest first."""
    require(caller, Role.CONTRIBUTOR)
    with services.database.read() as connection:
        return json_answer(service.receipts(connection, caller, digest, after, limit))


async def _checked(
    body: bytes, terms: Terms, site: str, upload: str
) -> Submission | AnswerSubmission:
    def checked() -> Submission | AnswerSubmission:
        place = {"campaign": terms.digest, "site": site, "upload": upload}
        if isinstance(terms.campaign, LabelCampaign):
            return Submission.of(body, terms.campaign, **place)
        return AnswerSubmission.of(body, **place)

    return await run_in_threadpool(checked) if len(body) > _BIG else checked()


async def _terms(services: Services, caller: Identity, digest: str) -> Terms:
    require(caller, Role.CONTRIBUTOR)
    if caller.campaign != digest:
        raise Refusal(Problems.NOT_FOUND)
    terms = services.documents.known(digest)
    if terms is None:
        terms = await run_in_threadpool(services.documents.get, digest)
    if terms is None:
        raise Refusal(Problems.NOT_FOUND)
    return terms
