"""Reading a request's body: plain JSON, not too large, not too slow."""

import asyncio
from typing import TypeVar

from fastapi import Request
from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect

from tacit.errors import UpgradeRequired
from tacit.protocol import Problems
from tacit_aggregator.errors import Refusal
from tacit_aggregator.http.problems import invalid
from tacit_aggregator.settings import Settings

Model = TypeVar("Model", bound=BaseModel)


async def read_body(request: Request, settings: Settings) -> bytes:
    """The whole body; refused as soon as it is known to be of the wrong kind or too large."""
    _check_headers(request, settings.most_body_bytes)
    try:
        async with asyncio.timeout(settings.body_seconds):
            return await _receive(request, settings.most_body_bytes)
    except TimeoutError:
        raise Refusal(Problems.BODY_TOO_SLOW, retry_after=1) from None


def read_model(kind: type[Model], body: bytes) -> Model:
    """The message in the body; what is wrong is named by field, never by value."""
    try:
        message = kind.model_validate_json(body)
    except ValidationError as error:
        _check_version(error)
        raise invalid(error) from None
    if body.count(b'"') != _quotes(message):
        raise Refusal(Problems.INVALID_REQUEST, "A field stands in the body twice.")
    return message


def _check_version(error: ValidationError) -> None:
    """Of another version nothing else is judged: it may be right there."""
    details = error.errors(include_url=False, include_input=False, include_context=False)
    if any(detail["loc"] == ("version",) for detail in details):
        raise UpgradeRequired


def _quotes(message: BaseModel) -> int:
    """How many quotation marks a body has that holds each field of the message once.

    No string of a message that is read here may hold one itself. Another parser that looks for
    fields given twice takes several times as long as reading the message.
    """
    total = 0
    for name in message.model_fields_set:
        value = getattr(message, name)
        total += 2 + (2 if isinstance(value, str) else 0)
        total += _quotes(value) if isinstance(value, BaseModel) else 0
    return total


def _check_headers(request: Request, most: int) -> None:
    headers = request.headers
    content_type = headers.get("content-type", "")
    if content_type != "application/json":
        kind, _, parameters = content_type.partition(";")
        charset = parameters.replace(" ", "").replace('"', "").lower()
        if kind.strip().lower() != "application/json" or charset not in ("", "charset=utf-8"):
            raise Refusal(Problems.UNSUPPORTED_MEDIA)
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise Refusal(Problems.UNSUPPORTED_MEDIA)
    length = headers.get("content-length", "0")
    if length.isdecimal() and int(length) > most:
        raise _too_large(most)


async def _receive(request: Request, most: int) -> bytes:
    message = await request.receive()
    if message["type"] == "http.request" and not message.get("more_body", False):
        body: bytes = message.get("body", b"")
        if len(body) > most:
            raise _too_large(most)
        return body
    content = bytearray()
    while True:
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        content += message.get("body", b"")
        if len(content) > most:
            raise _too_large(most)
        if not message.get("more_body", False):
            return bytes(content)
        message = await request.receive()


def _too_large(most: int) -> Refusal:
    return Refusal(Problems.BODY_TOO_LARGE, f"A body has at most {most} bytes.")
