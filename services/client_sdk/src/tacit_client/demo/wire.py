"""The wire between the parties, where the demo listens; and where a connection can be cut."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import urlsplit

_PATIENCE = 60.0
_OF_ONE_CONNECTION = frozenset({"connection", "content-length", "date", "host", "keep-alive"})
"""Headers that each end writes for itself."""


@dataclass(frozen=True)
class Exchange:
    """One request and its answer, as they went by."""

    party: str
    method: str
    path: str
    body: bytes = field(repr=False)
    status: int
    answer: bytes = field(repr=False)

    @property
    def is_upload(self) -> bool:
        """Whether reports were sent."""
        return self.method == "PUT" and "/uploads/" in self.path


Cut = Callable[[Exchange], bool]
"""Told of each answer before it is passed on; if it says so, the connection breaks instead."""


class Wire:
    """Relays between parties and one server, on a loopback port for each, and remembers it all.

    Headers are relayed and not remembered: tokens are there.
    """

    def __init__(self, server: str) -> None:
        self._server = urlsplit(server).netloc
        self._listeners: list[ThreadingHTTPServer] = []
        self._lock = threading.Lock()
        self._exchanges: list[Exchange] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for listener in self._listeners:
            listener.shutdown()
            listener.server_close()

    def listen(self, party: str, cut: Cut | None = None) -> str:
        """The address at which a party reaches the server."""

        def remember(exchange: Exchange) -> bool:
            with self._lock:
                self._exchanges.append(exchange)
            return cut is not None and cut(exchange)

        listener = _Listener(("127.0.0.1", 0), _Relay)
        listener.party, listener.server, listener.remember = party, self._server, remember
        self._listeners.append(listener)
        threading.Thread(target=listener.serve_forever, args=(0.05,), daemon=True).start()
        return f"http://127.0.0.1:{listener.server_port}"

    def exchanges(self, party: str | None = None) -> list[Exchange]:
        """What went by, in order; of one party or of all."""
        with self._lock:
            return [seen for seen in self._exchanges if party in (None, seen.party)]


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    party: str
    server: str
    remember: Cut

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A party that went away is no error; nothing is printed."""


class _Relay(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = _PATIENCE
    disable_nagle_algorithm = True
    server: _Listener

    def setup(self) -> None:
        super().setup()
        self._behind = HTTPConnection(self.server.server, timeout=_PATIENCE)

    def finish(self) -> None:
        self._behind.close()
        super().finish()

    def relay(self) -> None:
        """Pass one request on, and its answer back."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {k: v for k, v in self.headers.items() if k.lower() not in _OF_ONE_CONNECTION}
        try:
            self._behind.request(self.command, self.path, body or None, headers)
            response = self._behind.getresponse()
            answer = response.read()
        except (OSError, HTTPException):  # the server is gone, and so is the connection
            self.close_connection = True
            return
        exchange = Exchange(
            self.server.party, self.command, self.path, body, response.status, answer
        )
        if self.server.remember(exchange):
            self.close_connection = True
            return
        self.send_response_only(response.status)
        for name, value in response.getheaders():
            if name.lower() not in _OF_ONE_CONNECTION:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_GET = do_PUT = do_POST = do_DELETE = relay  # noqa: N815 -- as http.server calls them
