"""A real HTTP server on loopback that answers as a test tells it to."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tacit.protocol import Problem, Problems
from tacit.protocol.problems import MEDIA_TYPE


@dataclass(frozen=True)
class Request:
    """What arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class Reply:
    """What to answer."""

    status: int = 200
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class SmallServer:
    """Where it listens, and what it was asked."""

    url: str
    requests: list[Request]


def problem(kind: Problems, **headers: str) -> Reply:
    """A problem document."""
    what = kind.value
    document = Problem(
        type=what.urn, title=what.title, status=what.status, detail=what.title, next=what.next
    )
    headers = {"Content-Type": MEDIA_TYPE} | {k.replace("_", "-"): v for k, v in headers.items()}
    return Reply(what.status, document.model_dump_json().encode(), headers)


@contextmanager
def small_server(answer: Callable[[int, Request], Reply | None]) -> Iterator[SmallServer]:
    """Answer the i-th request with what `answer` says; None breaks the connection."""
    requests: list[Request] = []
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            request = Request(self.command, self.path, dict(self.headers.items()), body)
            with lock:
                requests.append(request)
                index = len(requests) - 1
            reply = answer(index, request)
            if reply is None:
                self.close_connection = True
                return
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(reply.body)))
            self.end_headers()
            self.wfile.write(reply.body)

        do_GET = do_PUT = do_POST = do_DELETE = handle_any  # noqa: N815 -- as they are looked up

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- as it is called
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield SmallServer(f"http://127.0.0.1:{server.server_port}", requests)
        finally:
            server.shutdown()
            thread.join()
