"""Thresholds over HTTP."""

from fastapi import APIRouter, Request, Response

from tacit.protocol import Problems, Signed, ThresholdKind, sha256_hex
from tacit_aggregator.http.authentication import Caller
from tacit_aggregator.http.conditional import document_answer
from tacit_aggregator.http.declared import DigestInPath, declared
from tacit_aggregator.http.services import Uses

router = APIRouter(tags=["results"])


@router.get(
    "/v1/campaigns/{digest}/thresholds/{which}",
    response_model=Signed,
    responses={
        304: {"description": "Not modified."},
        **declared(Problems.NOT_READY, Problems.NO_THRESHOLD, campaign=True),
    },
)
def threshold(
    digest: DigestInPath, which: ThresholdKind, request: Request, caller: Caller, services: Uses
) -> Response:
    """The signed threshold: nominal of what is counted so far, starred once at the planned end."""
    signed = services.thresholds.get(caller, digest, which)
    return document_answer(request, signed.model_dump_json(), sha256_hex(signed.payload.encode()))
