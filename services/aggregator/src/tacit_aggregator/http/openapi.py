"""The OpenAPI document, with what FastAPI does not see: raw messages, and headers of the edge."""

from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from tacit.protocol import (
    AnswerUpload,
    Campaign,
    Enrolment,
    LabelCampaign,
    LabelThreshold,
    Problem,
    RoundDone,
    RoundQuestion,
    ScoreCampaign,
    ScoreThreshold,
    Threshold,
    Upload,
)
from tacit.protocol.versions import HEADER, SUPPORTED
from tacit_aggregator.http.declared import header, reference

TAGS = [
    {"name": "campaigns", "description": "An owner's campaigns: their documents and their state."},
    {"name": "sites", "description": "Whether and with how many records a site takes part."},
    {"name": "uploads", "description": "Randomized labels and answers, exactly once."},
    {"name": "rounds", "description": "What a score campaign asks now, and who is done with it."},
    {"name": "results", "description": "Signed thresholds."},
    {"name": "models", "description": "ONNX files that sites of score campaigns run."},
    {"name": "server", "description": "What the server speaks and signs with, and who asks."},
    {"name": "health", "description": "For whoever watches the server."},
]

_READ_OR_SENT_RAW: tuple[type[BaseModel], ...] = (
    LabelCampaign,
    ScoreCampaign,
    Enrolment,
    Upload,
    AnswerUpload,
    RoundDone,
    RoundQuestion,
    Problem,
    LabelThreshold,
    ScoreThreshold,
)
_FORMS: dict[type[BaseModel], tuple[type[BaseModel], ...]] = {
    Campaign: (LabelCampaign, ScoreCampaign),
    Threshold: (LabelThreshold, ScoreThreshold),
}
_SIGNED: tuple[type[BaseModel], ...] = (Campaign, RoundQuestion, Threshold)
_PAYLOAD = (
    "The canonical JSON (RFC 8785) of a Campaign, a RoundQuestion or a Threshold, as text: its"
    " UTF-8 bytes are what digest and signature cover."
)


def _string(description: str, **more: Any) -> dict[str, Any]:
    return {"description": description, "schema": {"type": "string", **more}}


_HEADERS = {
    "X-Request-Id": _string("The request's id, as in the log and in problems."),
    "ETag": _string("The document's digest, in quotation marks."),
    "WWW-Authenticate": _string('Bearer realm="tacit"'),
    "Retry-After": {
        "description": "After so many seconds the same request may succeed.",
        "schema": {"type": "integer", "minimum": 1},
    },
}
_PARAMETERS = {
    "If-None-Match": {
        "name": "If-None-Match",
        "in": "header",
        **_string("The ETag of the document that the caller has; 304 if that is still it."),
    },
    HEADER: {
        "name": HEADER,
        "in": "header",
        **_string("The protocol's version; another one is refused.", enum=list(SUPPORTED)),
    },
}


def install(app: FastAPI) -> None:
    """Have `app.openapi()` give the complete document."""
    generated = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            _complete(generated())
        assert app.openapi_schema is not None  # noqa: S101 -- FastAPI has just stored it
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI's documented way


def _complete(document: dict[str, Any]) -> None:
    components = document.setdefault("components", {})
    components["headers"] = _HEADERS
    components["parameters"] = _PARAMETERS
    schemas = components.setdefault("schemas", {})
    for name, schema in _schemas().items():
        schemas.setdefault(name, schema)
    schemas["Signed"]["properties"]["payload"] |= {
        "description": _PAYLOAD,
        "contentMediaType": "application/json",
        "contentSchema": {"oneOf": [reference(model) for model in _SIGNED]},
    }
    for path, methods in document["paths"].items():
        for operation in methods.values():
            if path.startswith("/v1/"):
                version = {"$ref": f"#/components/parameters/{HEADER}"}
                operation.setdefault("parameters", []).append(version)
            for response in operation["responses"].values():
                response.setdefault("headers", {})["X-Request-Id"] = header("X-Request-Id")


def _schemas() -> dict[str, Any]:
    _, definitions = models_json_schema(
        [(model, "validation") for model in _READ_OR_SENT_RAW],
        ref_template="#/components/schemas/{model}",
    )
    schemas: dict[str, Any] = definitions["$defs"]
    for kind, forms in _FORMS.items():
        schemas[kind.__name__] = {"oneOf": [reference(form) for form in forms]}
    return schemas
