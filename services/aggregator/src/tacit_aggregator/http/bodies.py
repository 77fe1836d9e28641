"""Reading a request's body: plain JSON, not too large, not too slow, not too many at once."""

import asyncio
from types import TracebackType

from fastapi import Request
from starlette.requests import ClientDisconnect

from tacit.protocol import Problems
from tacit_aggregator.errors import Refusal
from tacit_aggregator.settings import Settings


class Bodies:
    """The bodies that arrive or are being checked, and how much of them all is in memory."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.size = 0

    def one(self) -> "Body":
        """The body of one more request; use it as a context, whose end forgets it."""
        return Body(self)


class Body:
    """A body; what has arrived of it counts until it is checked."""

    def __init__(self, others: Bodies) -> None:
        self._others = others
        self._size = 0

    def __enter__(self) -> "Body":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self._others.size -= self._size

    async def read(self, request: Request) -> bytes:
        """All of it; refused as soon as it is known to be of the wrong kind or too large."""
        settings = self._others.settings
        _check_headers(request, settings.most_body_bytes)
        try:
            async with asyncio.timeout(settings.body_seconds):
                return await self._receive(request)
        except TimeoutError:
            raise Refusal(Problems.BODY_TOO_SLOW, retry_after=1) from None

    async def _receive(self, request: Request) -> bytes:
        message = await request.receive()
        if message["type"] == "http.request" and not message.get("more_body", False):
            body: bytes = message.get("body", b"")
            self._grow(len(body))
            return body
        content = bytearray()
        while True:
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            part = message.get("body", b"")
            self._grow(len(part))
            content += part
            if not message.get("more_body", False):
                return bytes(content)
            message = await request.receive()

    def _grow(self, more: int) -> None:
        settings = self._others.settings
        self._size += more
        self._others.size += more
        if self._size > settings.most_body_bytes:
            raise _too_large(settings.most_body_bytes)
        # A body that is alone is taken whatever it takes.
        if self._size < self._others.size > settings.most_bodies_bytes:
            raise Refusal(Problems.OVERLOADED, "Too many bodies at once.", retry_after=2)


def _check_headers(request: Request, most: int) -> None:
    """Refuse by what any header says, also where it is there twice; one look at each."""
    is_json = False
    for name, value in request.scope["headers"]:
        if name == b"content-type":
            is_json = _is_json(value)
        wrong = name == b"content-type" and not is_json
        if wrong or (name == b"content-encoding" and value.lower() != b"identity"):
            raise Refusal(Problems.UNSUPPORTED_MEDIA)
        if name == b"content-length" and value.isdigit() and int(value) > most:
            raise _too_large(most)
    if not is_json:
        raise Refusal(Problems.UNSUPPORTED_MEDIA)


def _is_json(content_type: bytes) -> bool:
    if content_type == b"application/json":
        return True
    kind, _, parameters = content_type.partition(b";")
    charset = parameters.replace(b" ", b"").replace(b'"', b"").lower()
    return kind.strip().lower() == b"application/json" and charset in (b"", b"charset=utf-8")


def _too_large(most: int) -> Refusal:
    return Refusal(Problems.BODY_TOO_LARGE, f"A body has at most {most} bytes.")
