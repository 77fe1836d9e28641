"""Requests over real sockets: what is retried, what is refused, and what is never sent."""

import socket
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tacit.errors import UpgradeRequired
from tacit.protocol import PROBLEM_TYPES, Problem, Problems
from tacit_client import Network
from tacit_client.errors import (
    AnswerTooLarge,
    CampaignClosed,
    CertificateRefused,
    InsecureUrl,
    NotAServer,
    NotReady,
    Overloaded,
    ProtocolRefused,
    RedirectRefused,
    ServerProblem,
    TacitClientError,
    Timeout,
    Unauthenticated,
    Unreachable,
    UploadConflict,
    problem_error,
)
from tacit_client.transport import RETRIED_STATUSES, Transport
from tests.support.small_server import Reply, Request, problem, small_server

TOKEN = "tacit_" + "s" * 43
HASTY = Network(connect_seconds=2, read_seconds=2, total_seconds=5, attempts=4, longest_wait=0.01)


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


def send(url: str, network: Network = HASTY, method: str = "GET") -> bytes:
    with Transport(url, TOKEN, network) as transport:
        return transport.send("a test", method, "/v1/x", body=None).content


def test_a_request_says_who_sends_it_and_which_protocol() -> None:
    with small_server(lambda *_: Reply(body=b'{"a": 1}')) as server:
        assert send(server.url) == b'{"a": 1}'
    (request,) = server.requests
    headers = {name.lower(): value for name, value in request.headers.items()}
    assert headers["tacit-protocol"] == "1.1"
    assert headers["authorization"] == f"Bearer {TOKEN}"
    assert headers["user-agent"].startswith("tacit-client/")
    assert headers["accept-encoding"] == "identity"


@pytest.mark.parametrize("status", sorted(RETRIED_STATUSES))
def test_what_may_pass_is_tried_again(status: int) -> None:
    def answer(index: int, _: Request) -> Reply:
        return Reply(status, b"busy") if index < 3 else Reply(body=b"[]")

    with small_server(answer) as server:
        assert send(server.url, method="PUT") == b"[]"
    assert len(server.requests) == 4


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 410, 413, 422, 426, 501])
def test_what_cannot_pass_is_not_tried_again(status: int) -> None:
    with small_server(lambda *_: Reply(status)) as server, pytest.raises(NotAServer) as caught:
        send(server.url)
    assert caught.value.status == status
    assert len(server.requests) == 1


def test_attempts_are_bounded() -> None:
    busy = problem(Problems.OVERLOADED, Retry_After="3600")
    began = time.monotonic()
    with small_server(lambda *_: busy) as server, pytest.raises(Overloaded) as caught:
        send(server.url)
    assert len(server.requests) == HASTY.attempts
    assert caught.value.retry_after == 3600
    assert time.monotonic() - began < 60  # the hour that the server asked for is not waited


def test_retry_after_is_honoured() -> None:
    def answer(index: int, _: Request) -> Reply:
        return problem(Problems.UNAVAILABLE, Retry_After="1") if index == 0 else Reply()

    patient = replace(HASTY, longest_wait=5)
    began = time.monotonic()
    with small_server(answer) as server:
        send(server.url, patient)
    assert time.monotonic() - began >= 1


def test_a_connection_that_breaks_is_tried_again() -> None:
    with small_server(lambda index, _: None if index < 2 else Reply()) as server:
        assert send(server.url) == b"{}"
    assert len(server.requests) == 3


def test_where_nobody_listens_is_unreachable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(Unreachable, match=rf"No connection to 127\.0\.0\.1:{port}\."):
        send(f"http://127.0.0.1:{port}/a/path")


def test_a_silent_server_times_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        network = replace(HASTY, read_seconds=0.1, attempts=2)
        with pytest.raises(Timeout):
            send(f"http://127.0.0.1:{listener.getsockname()[1]}", network)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_refused_and_the_token_goes_nowhere_else(status: int) -> None:
    with small_server(lambda *_: Reply()) as elsewhere:
        away = Reply(status, headers={"Location": elsewhere.url})
        with small_server(lambda *_: away) as server, pytest.raises(RedirectRefused):
            send(server.url)
    assert elsewhere.requests == []
    assert len(server.requests) == 1


def test_an_answer_without_end_is_cut_off() -> None:
    small = replace(HASTY, most_answer_bytes=1000)
    endless = Reply(body=b"x" * 2000)
    with small_server(lambda *_: endless) as server, pytest.raises(AnswerTooLarge):
        send(server.url, small)
    assert len(server.requests) == 1


def test_what_is_no_tacit_server_is_said_to_be_none() -> None:
    page = Reply(404, b"<html>", {"Content-Type": "text/html"})
    with small_server(lambda *_: page) as server, pytest.raises(NotAServer, match="404"):
        send(server.url)
    wrong = Reply(404, b"{}", {"Content-Type": "application/problem+json"})
    with small_server(lambda *_: wrong) as server, pytest.raises(NotAServer):
        send(server.url)
    with (
        small_server(lambda *_: Reply(body=b"hello")) as server,
        Transport(server.url, TOKEN, HASTY) as transport,
        pytest.raises(NotAServer),
    ):
        transport.send("a test", "GET", "/").read(Problem)


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        (Problems.UNAUTHENTICATED, Unauthenticated),
        (Problems.CAMPAIGN_CLOSED, CampaignClosed),
        (Problems.UPLOAD_CONFLICT, UploadConflict),
        (Problems.UPGRADE_REQUIRED, ProtocolRefused),
        (Problems.UPGRADE_REQUIRED, UpgradeRequired),
        (Problems.NOT_READY, NotReady),
    ],
)
def test_a_problem_document_becomes_its_error(kind: Problems, error: type[Exception]) -> None:
    with small_server(lambda *_: problem(kind)) as server, pytest.raises(error) as caught:
        send(server.url)
    assert kind.value.next in str(caught.value)


def test_every_problem_of_the_protocol_has_an_error() -> None:
    for urn, kind in PROBLEM_TYPES.items():
        document = Problem(
            type=urn, title=kind.title, status=kind.status, detail="d", next=kind.next
        )
        assert isinstance(problem_error(document), ServerProblem)
    unknown = document.model_copy(update={"type": "urn:tacit:problem:unheard-of"})
    assert type(problem_error(unknown)) is ServerProblem


@pytest.mark.parametrize(
    "url",
    [
        "http://hospital.example",
        "http://10.0.0.1",
        "http://localhost.example.com",
        "http://127.0.0.1.example.com",
        "ftp://127.0.0.1",
        "https://name:word@hospital.example",
        "https://hospital.example/?token=x",
        "https://hospital.example/#x",
        "file:///etc/passwd",
        "127.0.0.1:80",
        "http://[",
    ],
)
def test_a_token_is_not_sent_where_it_could_be_read(url: str) -> None:
    with pytest.raises(InsecureUrl):
        Transport(url, TOKEN)


@pytest.mark.parametrize(
    "url", ["http://localhost:1", "http://127.0.0.2:1", "http://[::1]:1", "https://h.example"]
)
def test_https_and_this_machine_are_fine(url: str) -> None:
    Transport(url, TOKEN).close()


def test_plain_http_elsewhere_must_be_asked_for() -> None:
    Transport("http://hospital.example", TOKEN, Network(allow_insecure=True)).close()


def test_what_is_for_this_machine_goes_through_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    with small_server(lambda *_: Reply()) as proxy, small_server(lambda *_: Reply()) as server:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        send(server.url)
    assert proxy.requests == []
    assert len(server.requests) == 1


def test_a_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with small_server(lambda *_: Reply()) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        send("http://hospital.example", replace(HASTY, allow_insecure=True))
    assert proxy.requests[0].path == "http://hospital.example/v1/x"


def test_a_ca_bundle_that_is_none_is_said_to_be(tmp_path: Path) -> None:
    with pytest.raises(CertificateRefused):
        Transport("https://h.example", TOKEN, Network(ca_bundle=tmp_path / "nothing.pem"))


@pytest.mark.parametrize(
    "reply", [None, Reply(404), Reply(302), problem(Problems.UNAUTHENTICATED), Reply(503)]
)
def test_the_token_is_in_no_error(reply: Reply | None) -> None:
    with small_server(lambda *_: reply) as server, pytest.raises(TacitClientError) as caught:
        send(server.url)
    shown, error = "", caught.value
    cause: BaseException | None = error
    while cause is not None:
        shown += repr(cause) + str(cause)
        cause = cause.__cause__ or cause.__context__
    assert TOKEN not in shown
