"""Models over HTTP: the ONNX files that sites of score campaigns run."""

import structlog
from fastapi import APIRouter, Request, Response

from tacit.protocol import Problems, Role
from tacit_aggregator.errors import Refusal
from tacit_aggregator.http.authentication import Caller
from tacit_aggregator.http.conditional import pieces_answer
from tacit_aggregator.http.declared import IF_NONE_MATCH, ModelInPath, declared, document
from tacit_aggregator.http.services import Services, Uses
from tacit_aggregator.models import service
from tacit_aggregator.models.files import ModelFile
from tacit_aggregator.models.registered import ModelChanged, RegisteredModel
from tacit_aggregator.tokens.service import Identity

router = APIRouter(tags=["models"])

_log = structlog.get_logger("tacit_aggregator.models")


@router.get(
    "/v1/models/{digest}",
    operation_id="getModel",
    summary="Get a model's file",
    response_class=Response,
    openapi_extra=IF_NONE_MATCH,
    responses={
        200: {
            **document("The bytes of the ONNX file."),
            "content": {
                "application/octet-stream": {"schema": {"type": "string", "format": "binary"}}
            },
        },
        304: document("Not modified."),
        **declared(campaign=True),
    },
)
def model(digest: ModelInPath, request: Request, caller: Caller, services: Uses) -> Response:
    """The ONNX model that a campaign of the caller's names, for its sites to run."""
    found = _visible(services, caller, digest)
    if found is None:
        raise Refusal(Problems.NOT_FOUND)
    return pieces_answer(request, lambda: _verified(services, found), digest)


def _visible(services: Services, caller: Identity, digest: str) -> RegisteredModel | None:
    if caller.role is Role.CONTRIBUTOR:
        terms = None if caller.campaign is None else services.documents.get(caller.campaign)
        if terms is None or service.model_of(terms.campaign) != digest:
            return None
    owner = caller.name if caller.role is Role.OWNER else None
    with services.database.read() as connection:
        return service.for_sites(connection, digest, owner)


def _verified(services: Services, found: RegisteredModel) -> ModelFile:
    try:
        return services.model_files.verified(found)
    except ModelChanged as error:
        _log.error("model trouble", reason=str(error))
        raise Refusal(
            Problems.UNAVAILABLE, "The model's file is not there as it was.", retry_after=30
        ) from None
