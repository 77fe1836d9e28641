"""The edge: around every request, its id, its version check, its numbers and its line in the log.

Plain ASGI, because what runs around every request must cost next to nothing.
"""

import asyncio
import secrets
import time
import traceback
from typing import Any

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tacit.errors import UpgradeRequired
from tacit.protocol import Problems
from tacit.protocol.versions import HEADER, check_version
from tacit_aggregator.errors import Refusal
from tacit_aggregator.http.authentication import CALLER
from tacit_aggregator.http.problems import REQUEST_ID, answer, refusal_of
from tacit_aggregator.metrics import Metrics

_HEADER = HEADER.lower().encode()
_STOPPING = Refusal(Problems.UNAVAILABLE, retry_after=1)
_log = structlog.get_logger("tacit_aggregator.requests")


class Edge:
    """Wraps the application; nothing of a query, a body or a header is logged."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; an error that nobody expected becomes a problem without details."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        request_id = scope[REQUEST_ID] = secrets.token_hex(8)
        status = 0

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"].append((b"x-request-id", request_id.encode()))
            await send(message)

        try:
            _check_protocol(scope)
            await self._app(scope, receive, send_with_id)
        except asyncio.CancelledError:
            if status:
                raise
            # The server stops and waits no longer. What is being stored may be stored or not.
            await answer(_STOPPING, request_id)(scope, receive, send_with_id)
        except Exception as error:
            _log_unexpected(error, request_id)
            if status:  # too late for another answer; the server closes the connection
                raise
            await answer(refusal_of(error), request_id)(scope, receive, send_with_id)
        finally:
            self._record(scope, status, time.perf_counter() - began)

    def _record(self, scope: Scope, status: int, seconds: float) -> None:
        # A path nobody serves may hold anything: it is neither counted nor logged as it is.
        route = getattr(scope.get("route"), "path", "unknown")
        self._metrics.request(scope["method"], route, status, seconds)
        fields: dict[str, Any] = {}
        caller = scope.get(CALLER)
        if caller is not None:
            fields = {"role": caller.role.value, "name": caller.name}
        _log.info(
            "request",
            method=scope["method"],
            route=route,
            status=status,
            milliseconds=round(seconds * 1000, 2),
            request_id=scope[REQUEST_ID],
            **fields,
        )


def _check_protocol(scope: Scope) -> None:
    if not scope["path"].startswith("/v1/"):
        return
    for name, value in scope["headers"]:
        if name == _HEADER:
            check_version(value.decode("latin-1"))


def _log_unexpected(error: Exception, request_id: str) -> None:
    if isinstance(error, UpgradeRequired):
        return
    # Where, not what: the text of an error may hold what a request brought along.
    places = [
        f"{frame.name}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)[-6:]
    ]
    _log.error("failed", error=type(error).__name__, places=places, request_id=request_id)
