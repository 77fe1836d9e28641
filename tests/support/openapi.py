"""The aggregator's OpenAPI document, taken apart."""

import secrets
from collections.abc import Iterator
from typing import Any

from fastapi import FastAPI

PUBLIC = {"/healthz", "/readyz", "/v1/server"}


def operations(app: FastAPI) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Every path with each of its methods and what is declared of it."""
    for path, methods in app.openapi()["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def filled(path: str, digest: str | None = None) -> str:
    """An address of this path."""
    return (
        path.replace("{digest}", digest or "0" * 64)
        .replace("{upload}", secrets.token_hex(16))
        .replace("{which}", "nominal")
        .replace("{number}", "0")
    )


def references(node: Any) -> Iterator[str]:
    """Every reference in a document."""
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for value in node.values():
            yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)
