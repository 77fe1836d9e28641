"""What the routes declare in OpenAPI: problems, bodies, and answers that are raw bytes."""

from typing import Annotated, Any

from fastapi import Path, Response
from pydantic import BaseModel

from tacit.protocol import Problem, Problems
from tacit.protocol.problems import MEDIA_TYPE, ProblemType

DIGEST = r"^[0-9a-f]{64}$"
IDENTIFIER = r"^[0-9a-f]{32}$"

DigestInPath = Annotated[str, Path(pattern=DIGEST, description="SHA-256 of the campaign document.")]
ModelInPath = Annotated[str, Path(pattern=DIGEST, description="SHA-256 of the model's file.")]
UploadInPath = Annotated[
    str, Path(pattern=IDENTIFIER, description="128 random bits, drawn by the site.")
]

_EVERYWHERE = (Problems.INTERNAL,)
_PROTOCOL = (Problems.UPGRADE_REQUIRED, Problems.UNAVAILABLE)
_WITH_TOKEN = (Problems.UNAUTHENTICATED,)
_WITH_BODY = (
    Problems.INVALID_REQUEST,
    Problems.BODY_TOO_LARGE,
    Problems.BODY_TOO_SLOW,
    Problems.UNSUPPORTED_MEDIA,
    Problems.OVERLOADED,
)
_WITH_CAMPAIGN = (Problems.NOT_FOUND, Problems.INVALID_REQUEST)


def declared(
    *problems: Problems,
    token: bool = True,
    body: bool = False,
    campaign: bool = False,
    protocol: bool = True,
) -> dict[int | str, dict[str, Any]]:
    """The `responses` of a route: its own problems and those of its kind, by status."""
    every = [*_EVERYWHERE, *problems]
    every += _PROTOCOL if protocol else ()
    every += _WITH_TOKEN if token else ()
    every += _WITH_BODY if body else ()
    every += _WITH_CAMPAIGN if campaign else ()
    by_status: dict[int, list[ProblemType]] = {}
    for problem in sorted({one.value for one in every}, key=lambda problem: problem.name):
        by_status.setdefault(problem.status, []).append(problem)
    return {status: _problems(found) for status, found in by_status.items()}


def body_of(*kinds: type[BaseModel]) -> dict[str, Any]:
    """The `openapi_extra` of a route that reads its body itself: one of these messages."""
    schemas = [reference(kind) for kind in kinds]
    schema = schemas[0] if len(schemas) == 1 else {"oneOf": schemas}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def reference(kind: type[BaseModel]) -> dict[str, Any]:
    """The reference to the schema of a message."""
    return {"$ref": f"#/components/schemas/{kind.__name__}"}


def header(name: str) -> dict[str, str]:
    """The reference to a header that `openapi` describes."""
    return {"$ref": f"#/components/headers/{name}"}


def document(description: str) -> dict[str, Any]:
    """An entry of a route's `responses` that has an ETag."""
    return {"description": description, "headers": {"ETag": header("ETag")}}


IF_NONE_MATCH: dict[str, Any] = {"parameters": [{"$ref": "#/components/parameters/If-None-Match"}]}
"""The `openapi_extra` of a route that answers 304 to whoever has the document."""


def json_answer(model: BaseModel, status: int = 200) -> Response:
    """The answer that is this message."""
    return Response(model.model_dump_json(), status, media_type="application/json")


def _problems(problems: list[ProblemType]) -> dict[str, Any]:
    schema = reference(Problem)
    headers = {}
    if any(problem.may_retry for problem in problems):
        headers["Retry-After"] = header("Retry-After")
    if Problems.UNAUTHENTICATED.value in problems:
        headers["WWW-Authenticate"] = header("WWW-Authenticate")
    return {
        "description": " ".join(f"{problem.name}: {problem.title}" for problem in problems),
        "headers": headers,
        "content": {MEDIA_TYPE: {"schema": schema}},
    }
