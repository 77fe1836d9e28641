"""What is no request at all, or never ends: refused or hung up on, and the server lives on."""

import contextlib
import secrets
import socket
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.support.aggregator import PATIENCE, AggregatorProcess, as_process, migrated
from tests.support.label_campaigns import Reported, Scene, scene

MOST = 100_000
SECONDS = 1.0
MARKER = b"marker7Zq"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AggregatorProcess]:
    folder: Path = tmp_path_factory.mktemp("server")
    settings = migrated(folder, most_body_bytes=MOST, body_seconds=SECONDS)
    with as_process(settings) as running:
        yield running


@pytest.fixture(scope="module")
def campaign(server: AggregatorProcess) -> Iterator[Scene]:
    with scene(server) as made:
        made.site()
        yield made


@pytest.fixture(autouse=True)
def the_server_lives_on(server: AggregatorProcess, campaign: Scene) -> Iterator[None]:
    """After every test the next upload is taken, and nothing but it was stored."""
    before = campaign.status().records.received
    yield
    upload = Reported.random(np.random.default_rng(1), 2).upload(campaign.digest)
    campaign.sites["site"].send(upload)
    assert campaign.status().records.received == before + 2
    assert server.process is not None
    assert server.process.poll() is None
    assert not [line for line in server.lines if MARKER.decode() in str(line)]
    assert not [line for line in server.lines if line.get("event") == "failed"]


def head(campaign: Scene, *headers: str, path: str | None = None) -> bytes:
    """The head of an upload, with further headers."""
    token = campaign.sites["site"].http.headers["authorization"]
    address = path or f"{campaign.address}/uploads/{secrets.token_hex(16)}"
    lines = (
        f"PUT {address} HTTP/1.1",
        "Host: 127.0.0.1",
        "Content-Type: application/json",
        f"Authorization: {token}",
        *headers,
    )
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


def talk(server: AggregatorProcess, *pieces: bytes, patience: float = 1.0) -> bytes:
    """Send the pieces; what is answered to them."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as connection:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            for piece in pieces:
                connection.sendall(piece)
        connection.settimeout(patience)
        return rest_of(connection)


def rest_of(connection: socket.socket) -> bytes:
    """What is answered until the server hangs up or falls silent."""
    received = b""
    with contextlib.suppress(ConnectionResetError, TimeoutError):
        while part := connection.recv(65536):
            received += part
            connection.settimeout(0.3)
    return received


def asked(server: AggregatorProcess, *pieces: bytes) -> bytes:
    """The answer that must come, however long it takes."""
    return talk(server, *pieces, patience=PATIENCE)


def status_of(answer: bytes) -> int | None:
    """The status of the first answer; None if there is none."""
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.1 ") else None


def refused(answer: bytes) -> bool:
    """Whether the server hung up, or answered that the request is wrong, and no more."""
    status = status_of(answer)
    return (status is None or 400 <= status < 500) and MARKER not in answer


@pytest.mark.parametrize(
    "garbage",
    [
        MARKER,
        MARKER + b"\r\n\r\n",
        b"\r\n" * 1000,
        b"\0" * 1000,
        bytes(range(256)) * 40,
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"MARKER7ZQ /v1/server HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /v1/server HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n",
        b"GET /v1/server HTTP/1.1\r\nHost: a\r\nbad\0name: 1\r\n\r\n",
        b"GET /v1/token HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer \r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"a" * 500,
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET " + b"/" * 200_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
    ],
    ids=lambda garbage: repr(garbage[:24]),
)
def test_garbage_is_refused_or_hung_up_on(server: AggregatorProcess, garbage: bytes) -> None:
    assert refused(talk(server, garbage))


@pytest.mark.parametrize(
    "header",
    [
        "Content-Length: -1",
        "Content-Length: 1e3",
        "Content-Length: 0x10",
        "Content-Length: marker7Zq",
        "Content-Length: 99999999999999999999999999",
        "Content-Length: 2\r\nContent-Length: 3",
        "Content-Length: 2\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: marker7Zq",
        "Transfer-Encoding: gzip, chunked",
    ],
)
def test_a_length_that_makes_no_sense_is_refused(
    server: AggregatorProcess, campaign: Scene, header: str
) -> None:
    assert refused(talk(server, head(campaign, header), b"{}"))


@pytest.mark.parametrize(
    "chunk", [b"zz\r\n{}\r\n", b"-2\r\n{}", b"ffffffffffffffffffff\r\n", b"2\r\n{}}"]
)
def test_chunks_that_are_none_are_refused(
    server: AggregatorProcess, campaign: Scene, chunk: bytes
) -> None:
    assert refused(talk(server, head(campaign, "Transfer-Encoding: chunked"), chunk))


def test_a_body_that_says_it_is_too_large_is_refused_before_it_is_sent(
    server: AggregatorProcess, campaign: Scene
) -> None:
    answer = asked(server, head(campaign, f"Content-Length: {MOST + 1}"))
    assert status_of(answer) == 413
    assert b"body-too-large" in answer


def test_a_body_in_chunks_that_grows_too_large_is_refused(
    server: AggregatorProcess, campaign: Scene
) -> None:
    chunk = b"2710\r\n" + b" " * 10_000 + b"\r\n"
    answer = asked(server, head(campaign, "Transfer-Encoding: chunked"), *[chunk] * 40)
    assert status_of(answer) in (413, None)
    small = asked(server, head(campaign, "Transfer-Encoding: chunked"), *[chunk] * 11, b"0\r\n\r\n")
    assert status_of(small) == 413


def test_a_body_shorter_than_it_says_is_no_upload(
    server: AggregatorProcess, campaign: Scene
) -> None:
    upload = Reported.random(np.random.default_rng(2), 3).upload(campaign.digest)
    body = upload.to_bytes()
    path = f"{campaign.address}/uploads/{upload.upload}"
    longer = head(campaign, f"Content-Length: {len(body) + 1}", path=path)
    assert refused(talk(server, longer, body))
    shorter = head(campaign, f"Content-Length: {len(body) - 1}", path=path)
    assert refused(talk(server, shorter, body))


def test_a_client_that_hangs_up_in_a_body_leaves_nothing_behind(
    server: AggregatorProcess, campaign: Scene
) -> None:
    for _ in range(20):
        talk(server, head(campaign, "Content-Length: 1000"), b'{"version":', patience=0.001)


@pytest.mark.parametrize("length", ["Content-Length: 1000", "Transfer-Encoding: chunked"])
def test_a_body_that_trickles_is_given_up(
    server: AggregatorProcess, campaign: Scene, length: str
) -> None:
    piece = b"1\r\n \r\n" if "chunked" in length else b" "
    with socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS / 5) as connection:
        connection.sendall(head(campaign, length))
        received = b""
        for _ in range(100):  # far more than the server waits for
            with contextlib.suppress(TimeoutError):
                received = connection.recv(65536)
                break
            connection.sendall(piece)
        received += rest_of(connection)
    assert status_of(received) == 408
    assert b"body-too-slow" in received


def test_many_connections_that_say_nothing_keep_nobody_out(server: AggregatorProcess) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(200):
            connection = socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE)
            stack.enter_context(connection)
        with server.client() as http:
            assert http.get("/healthz").status_code == 200


@pytest.mark.parametrize(
    "piece",
    [b"X-Marker: " + b"a" * 1000 + b"\r\n", b"a" * 1000, b": " * 500],
    ids=["many headers", "a long header", "colons"],
)
def test_a_head_without_end_is_refused(server: AggregatorProcess, piece: bytes) -> None:
    answer = asked(server, b"GET /v1/server HTTP/1.1\r\nHost: a\r\n", *[piece] * 5000)
    assert refused(answer)


def test_headers_of_a_usual_length_are_fine(server: AggregatorProcess) -> None:
    line = b"X-Cookie: " + b"a" * 1000 + b"\r\n"
    answer = asked(server, b"GET /v1/server HTTP/1.1\r\nHost: a\r\n", *[line] * 30, b"\r\n")
    assert status_of(answer) == 200


def test_what_follows_a_refused_body_is_not_taken_for_a_request(
    server: AggregatorProcess, campaign: Scene
) -> None:
    hidden = head(campaign, "Content-Length: 2")
    answer = talk(server, head(campaign, f"Content-Length: {MOST * 2}"), hidden, b"{}")
    assert answer.count(b"HTTP/1.1 ") <= 1


def test_requests_one_after_another_without_waiting_are_each_answered(
    server: AggregatorProcess, campaign: Scene
) -> None:
    bad = head(campaign, "Content-Length: 2") + b"[]"
    assert asked(server, bad * 3).count(b"HTTP/1.1 422") == 3
