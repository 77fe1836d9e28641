"""The OpenAPI document, with the schemas of messages that FastAPI does not see."""

from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from tacit.protocol import Campaign, Enrolment, Problem, Upload

_READ_OR_SENT_RAW: tuple[type[BaseModel], ...] = (Campaign, Enrolment, Upload, Problem)


def install(app: FastAPI) -> None:
    """Have `app.openapi()` give the complete document."""
    generated = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = generated()
            schemas = document.setdefault("components", {}).setdefault("schemas", {})
            for name, schema in _schemas().items():
                schemas.setdefault(name, schema)
        assert app.openapi_schema is not None  # noqa: S101 -- FastAPI has just stored it
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI's documented way


def _schemas() -> dict[str, Any]:
    _, definitions = models_json_schema(
        [(model, "validation") for model in _READ_OR_SENT_RAW],
        ref_template="#/components/schemas/{model}",
    )
    schemas: dict[str, Any] = definitions["$defs"]
    return schemas
