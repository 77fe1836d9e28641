"""Running the server until it is told to stop."""

import asyncio
import os
import resource
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import structlog
import uvicorn
from fastapi import FastAPI
from prometheus_client import CollectorRegistry, start_http_server

from tacit_aggregator.database.engine import Database
from tacit_aggregator.database.lock import serving
from tacit_aggregator.database.schema import check_current
from tacit_aggregator.errors import OperatorError
from tacit_aggregator.http.app import create_app
from tacit_aggregator.http.connections import Connection
from tacit_aggregator.keys.service import current_key, read_secret
from tacit_aggregator.logging import configure_logging
from tacit_aggregator.settings import Settings, refuse_unsafe

_GRACE_SECONDS = 10
_KEEP_ALIVE_SECONDS = 65  # longer than proxies and clients keep an idle connection
_BACKLOG = 2048
_OTHER_DESCRIPTORS = 128
"""Files, pipes to workers, the metrics' connections."""


def serve(settings: Settings) -> None:
    """Serve until a signal says to stop; refuses what would not be safe or would not work."""
    refuse_unsafe(settings)
    configure_logging(settings)
    with _opened(settings) as database, serving(database):
        check_current(database)
        with database.read() as connection:
            # Fails now rather than with the first campaign.
            current_key(connection, read_secret(settings))
        with _stopping_quietly():
            _run(settings, database)


def _run(settings: Settings, database: Database) -> None:
    listener = _bound(settings.host, settings.port)
    app = create_app(settings, database)
    if settings.metrics_port is not None:
        _serve_metrics(settings.host, settings.metrics_port, app.state.metrics.registry)
    config = uvicorn.Config(
        app,
        http=type("Connection", (Connection,), {"head_seconds": settings.head_seconds}),
        limit_concurrency=_most_connections(settings.most_connections) + 1,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=_BACKLOG,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )
    _Server(config, app, settings.drain_seconds).run(sockets=[listener])


def _most_connections(wanted: int) -> int:
    """How many there can be, with as many descriptors as the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + _OTHER_DESCRIPTORS
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return wanted
    soft = needed if hard == resource.RLIM_INFINITY else max(soft, min(needed, hard))
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    possible = max(1, min(wanted, soft - _OTHER_DESCRIPTORS))
    if possible < wanted:
        _log().warning("few descriptors", connections=possible)
    return possible


class _Server(uvicorn.Server):
    """Uvicorn, that says when it listens, drains, and quits at the second signal."""

    def __init__(self, config: uvicorn.Config, app: FastAPI, drain_seconds: float) -> None:
        super().__init__(config)
        self._app = app
        self._drain_seconds = drain_seconds

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        for listener in sockets or ():
            host, port = listener.getsockname()[:2]
            shown = f"[{host}]" if ":" in host else host
            _log().info("listening", host=host, port=port, url=f"http://{shown}:{port}")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        _log().info("stopping")
        # Requests are still served; whoever asks /readyz sends them elsewhere.
        await asyncio.sleep(self._drain_seconds)
        await super().shutdown(sockets=sockets)
        _log().info("stopped")

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.should_exit:
            # Whatever was acknowledged is on the disk, and every line of the log is written.
            os._exit(128 + sig)
        self._app.state.stopping = True
        super().handle_exit(sig, frame)


@contextmanager
def _opened(settings: Settings) -> Iterator[Database]:
    database = Database(settings.database_url, connections=settings.database_connections)
    try:
        database.wait(settings.database_wait_seconds)
        yield database
    finally:
        database.close()


@contextmanager
def _stopping_quietly() -> Iterator[None]:
    """Exit with 0 after a signal: uvicorn raises it again when everything has been put away."""

    def leave(_: int, __: FrameType | None) -> None:
        raise SystemExit(0)

    before = {one: signal.signal(one, leave) for one in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        raise OperatorError(
            f"Nothing can listen on {host} port {port}: {_reason(error)}. See TACIT_HOST and"
            " TACIT_PORT."
        ) from None


def _serve_metrics(host: str, port: int, registry: CollectorRegistry) -> None:
    try:
        server, _ = start_http_server(port, addr=host, registry=registry)
    except OSError as error:
        raise OperatorError(
            f"Metrics cannot listen on {host} port {port}: {_reason(error)}."
            " See TACIT_METRICS_PORT."
        ) from None
    _log().info("metrics listening", host=host, port=server.server_port)


def _reason(error: OSError) -> str:
    # A socket's own words repeat the address; a name that is not known has none of these numbers.
    if error.errno is None or isinstance(error, socket.gaierror):
        return error.strerror or "the address is not known"
    return os.strerror(error.errno)


def _log() -> Any:
    # Not at import: the logger would be made before logging is configured.
    return structlog.get_logger("tacit_aggregator.serving")
