"""The wire relays requests as they are, remembers them, and can be cut."""

import threading
from collections.abc import Iterator
from http.client import RemoteDisconnected
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest

from tacit_client.demo.wire import Exchange, Wire

TOKEN = "Bearer tacit_secret"  # noqa: S105 -- of nobody


class Echo(BaseHTTPRequestHandler):
    """Answers with what it was sent, and with the token it saw."""

    protocol_version = "HTTP/1.1"

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(409 if b"conflict" in body else 200)
        self.send_header("Seen", self.headers["Authorization"])
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    listener = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    listener.daemon_threads = True
    threading.Thread(target=listener.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://127.0.0.1:{listener.server_port}"
    listener.shutdown()
    listener.server_close()


def put(url: str, body: bytes) -> httpx.Response:
    with httpx.Client(trust_env=False, timeout=10) as client:
        return client.put(f"{url}/v1/uploads/1", content=body, headers={"Authorization": TOKEN})


def test_requests_and_answers_pass_unchanged_and_are_remembered(server: str) -> None:
    with Wire(server) as wire:
        answer = put(wire.listen("Fir"), b"\x00 body")
        refused = put(wire.listen("Ash"), b"conflict")
    assert (answer.status_code, answer.content, answer.headers["Seen"]) == (
        200,
        b"\x00 body",
        TOKEN,
    )
    assert refused.status_code == 409
    (seen,) = wire.exchanges("Fir")
    assert seen == Exchange("Fir", "PUT", "/v1/uploads/1", b"\x00 body", 200, b"\x00 body")
    assert seen.is_upload
    assert len(wire.exchanges()) == 2


def test_tokens_are_not_remembered(server: str) -> None:
    with Wire(server) as wire:
        put(wire.listen("Fir"), b"body")
        assert "secret" not in repr([vars(seen) for seen in wire.exchanges()])


def test_a_connection_can_be_cut_after_the_server_has_answered(server: str) -> None:
    cut = iter([True, False])
    with Wire(server) as wire:
        url = wire.listen("Birch", lambda _: next(cut))
        with pytest.raises((httpx.RemoteProtocolError, RemoteDisconnected)):
            put(url, b"lost")
        assert put(url, b"lost").content == b"lost"
        first, second = wire.exchanges("Birch")
    assert first.answer == second.answer == b"lost"


def test_a_server_that_is_gone_breaks_the_connection_and_nothing_else() -> None:
    with Wire("http://127.0.0.1:1") as wire, pytest.raises(httpx.TransportError):
        put(wire.listen("Fir"), b"body")
    assert wire.exchanges() == []
