"""Thresholds over HTTP."""

from fastapi import APIRouter, Request, Response

from tacit.protocol import Problems, Signed, ThresholdKind, sha256_hex
from tacit_aggregator.http.authentication import Caller
from tacit_aggregator.http.conditional import document_answer
from tacit_aggregator.http.declared import IF_NONE_MATCH, DigestInPath, declared, document
from tacit_aggregator.http.services import Uses

router = APIRouter(tags=["results"])


@router.get(
    "/v1/campaigns/{digest}/thresholds/{which}",
    operation_id="getThreshold",
    summary="Get a threshold",
    response_model=Signed,
    openapi_extra=IF_NONE_MATCH,
    responses={
        200: document("The signed threshold."),
        304: document("Not modified."),
        **declared(Problems.NOT_READY, Problems.NO_THRESHOLD, campaign=True),
    },
)
def threshold(
    digest: DigestInPath, which: ThresholdKind, request: Request, caller: Caller, services: Uses
) -> Response:
    """The signed threshold: nominal of what is counted so far, starred once at the planned end."""
    signed = services.thresholds.get(caller, digest, which)
    return document_answer(request, signed.model_dump_json(), sha256_hex(signed.payload.encode()))
