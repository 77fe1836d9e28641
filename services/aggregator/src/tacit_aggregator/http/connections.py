"""Connections: uvicorn's, with bounds on their number and on heads, and problems for no HTTP."""

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from tacit.protocol import Problem, Problems
from tacit.protocol.problems import MEDIA_TYPE

MOST_HEAD_BYTES = 2**16

STOPPING = "tacit.stopping"
"""Where the application's lifespan puts what is to be called when the server begins to stop."""


class Connection(HttpToolsProtocol):
    """Hangs up on a head without end, which would otherwise be kept in memory, token or not.

    A head must have come after `head_seconds`, and no more connections are kept than uvicorn may
    handle at once; otherwise a few that say nothing would keep everybody else out.

    What is no HTTP gets a problem document, after the requests that came before it were answered.
    """

    head_seconds = 20.0

    _in_head = False
    _head_bytes = 0
    _deadline: asyncio.TimerHandle | None = None
    _earlier: tuple[RequestResponseCycle, ...] = ()
    """Requests that were not answered yet when the next one came."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Somebody has come; refused at once if there are too many."""
        super().connection_made(transport)
        most = self.limit_concurrency
        if most is not None and len(self.connections) >= most:
            transport.write(_crowded(self.server_state.default_headers))
            transport.close()
        else:
            self._wait()

    def data_received(self, data: bytes) -> None:
        """Feed the parser; refuse when it still waits for the end of a head that is too long."""
        goes_on = self._in_head
        super().data_received(data)
        if goes_on and self._in_head:
            self._head_bytes += len(data)
            if self._head_bytes > MOST_HEAD_BYTES:
                self._in_head = False
                self.send_400_response("The headers are too long.")
        self._wait()

    def on_message_begin(self) -> None:
        """A head begins."""
        self._in_head = True
        self._head_bytes = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """It has ended."""
        self._in_head = False
        before = self.cycle
        super().on_headers_complete()
        if before is not None and not before.response_complete:
            self._earlier = (*self._unanswered(self._earlier), before)

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP, and hang up."""
        if self.transport.is_closing():
            return
        unanswered = self._unanswered((*self._earlier, self.cycle))
        whole = [cycle for cycle in unanswered if not cycle.more_body]
        if whole:
            # A refusal now would be taken for their answer: the last of these ends the connection.
            whole[-1].keep_alive = False
            return
        self._forget(unanswered)
        if not any(cycle.response_started for cycle in unanswered):
            self.transport.write(_refusal(msg, self.server_state.default_headers))
        self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nobody listens: let no answer be written, also not of requests before the last one."""
        if self._deadline is not None:
            self._deadline.cancel()
        self._forget(self._unanswered(self._earlier))
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """The server stops: a request that waits for something is answered now."""
        self.app_state.get(STOPPING, _nothing)()
        super().shutdown()

    def _wait(self) -> None:
        """Wait for a head, but not for ever; a whole request in one piece costs no timer."""
        head = self._in_head or self.cycle is None
        waits = head or self.cycle.response_complete
        if waits and self._deadline is None:
            # Without a head it is the rest of a body that was refused: read and thrown away.
            seconds = self.head_seconds if head else self.timeout_keep_alive
            self._deadline = self.loop.call_later(seconds, self._give_up)
        elif not waits and self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        self._deadline = None
        if self._unanswered((*self._earlier, self.cycle)):
            self._wait()  # what came before is answered first
        elif not self.transport.is_closing():
            self.transport.close()

    @staticmethod
    def _unanswered(
        cycles: tuple[RequestResponseCycle | None, ...],
    ) -> tuple[RequestResponseCycle, ...]:
        return tuple(cycle for cycle in cycles if cycle and not cycle.response_complete)

    @staticmethod
    def _forget(cycles: tuple[RequestResponseCycle, ...]) -> None:
        for cycle in cycles:
            cycle.disconnected = True
            cycle.message_event.set()


def _nothing() -> None:
    """What an application that has nothing to stop does."""


def _refusal(detail: str, default_headers: list[tuple[bytes, bytes]]) -> bytes:
    problem = Problems.INVALID_REQUEST.value
    document = Problem(
        type=problem.urn,
        title=problem.title,
        status=400,  # not 422, which would say that the request was understood
        detail=detail,
        next="Send HTTP/1.1; nothing was stored.",
    )
    return _last_answer(b"400 Bad Request", document, default_headers)


def _crowded(default_headers: list[tuple[bytes, bytes]]) -> bytes:
    problem = Problems.OVERLOADED.value
    document = Problem(
        type=problem.urn,
        title=problem.title,
        status=problem.status,
        detail="There are too many connections.",
        next=problem.next,
    )
    headers = [*default_headers, (b"retry-after", b"5")]
    return _last_answer(b"503 Service Unavailable", document, headers)


def _last_answer(status: bytes, document: Problem, more: list[tuple[bytes, bytes]]) -> bytes:
    body = document.model_dump_json().encode()
    headers = [
        *more,
        (b"content-type", MEDIA_TYPE.encode()),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
        (b"connection", b"close"),
    ]
    lines = [b"HTTP/1.1 " + status, *(b"%s: %s" % header for header in headers), b"", body]
    return b"\r\n".join(lines)
