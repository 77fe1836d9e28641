"""The load of the ingest benchmark: requests made beforehand, over connections that stay open.

It runs in a process of its own, knows nothing of Tacit, and is the same for every server.
"""

import asyncio
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import uvloop

HOST = "127.0.0.1"
_PATIENCE = 120.0
_POLL = 0.02


@dataclass(frozen=True)
class Counted:
    """How to see that all is counted: ask this until it names so many records."""

    question: bytes
    records: int


@dataclass(frozen=True)
class Load:
    """What to send to which port, and what to wait for after the last answer."""

    port: int
    connections: int
    requests: Sequence[bytes]
    until: Counted | None = None


@dataclass(frozen=True)
class Timing:
    """Seconds from the first byte sent, and the load's own seconds of processor."""

    answered: float
    """Until the last request was answered with 200."""
    counted: float
    """Until all was counted; the same where nothing is."""
    own: float


def request(method: str, path: str, headers: dict[str, str], body: bytes = b"") -> bytes:
    """A request as it goes over the wire."""
    lines = [f"{method} {path} HTTP/1.1", f"Host: {HOST}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if body:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode() + body


def drive(load: Load) -> Timing:
    """Send all of it, each connection the next request as soon as it has its answer."""
    return uvloop.run(asyncio.wait_for(_drive(load), _PATIENCE))


class _Connection(asyncio.Protocol):
    """One request at a time; an answer is whole when its Content-Length has arrived."""

    def __init__(self) -> None:
        self._transport: asyncio.WriteTransport | None = None
        self._answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._received = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, end, body = self._received.partition(b"\r\n\r\n")
        if end and len(body) >= _length(head) and not self._answer.done():
            if head.startswith(b"HTTP/1.1 200 "):
                self._answer.set_result(bytes(body))
            else:
                self._answer.set_exception(RuntimeError(f"not accepted: {head!r}"))

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 -- of asyncio
        if not self._answer.done():
            self._answer.set_exception(ConnectionError("the server hung up"))

    async def ask(self, question: bytes) -> bytes:
        assert self._transport is not None  # noqa: S101  (it is connected)
        self._received.clear()
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(question)
        return await self._answer

    def close(self) -> None:
        if not self._answer.done():
            self._answer.cancel()
        if self._transport is not None:
            self._transport.close()


def _length(head: bytearray) -> int:
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line.partition(b":")[2])
    raise RuntimeError("an answer without Content-Length")


async def _drive(load: Load) -> Timing:
    loop = asyncio.get_running_loop()
    connections = [
        (await loop.create_connection(_Connection, HOST, load.port))[1]
        for _ in range(load.connections)
    ]
    began, own = time.perf_counter(), time.process_time()
    left = iter(load.requests)
    await asyncio.gather(*(_send(connection, left) for connection in connections))
    answered, own = time.perf_counter() - began, time.process_time() - own
    if load.until is not None:
        await _wait(connections[0], load.until)
    counted = time.perf_counter() - began if load.until is not None else answered
    for connection in connections:
        connection.close()
    return Timing(answered, counted, own)


async def _send(connection: _Connection, left: Iterator[bytes]) -> None:
    for one in left:
        await connection.ask(one)


async def _wait(connection: _Connection, until: Counted) -> None:
    while json.loads(await connection.ask(until.question))["records"]["counted"] != until.records:
        await asyncio.sleep(_POLL)
