"""Below HTTP: what is no request is refused in its turn, and whoever waits hears of a stop."""

import contextlib
import json
import socket
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tacit.protocol import Problem, Upload
from tests.support.aggregator import (
    PATIENCE,
    Aggregator,
    AggregatorProcess,
    as_process,
    in_thread,
    migrated,
)
from tests.support.label_campaigns import JSON, Reported, Site, scene

GOOD = b"GET /v1/server HTTP/1.1\r\nHost: a\r\n\r\n"
GARBAGE = b"garbage\r\n\r\n"
BROKEN_BODY = b"PUT /v1/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AggregatorProcess]:
    with as_process(migrated(tmp_path_factory.mktemp("server"))) as running:
        yield running


@pytest.fixture(autouse=True)
def nothing_failed(server: AggregatorProcess) -> Iterator[None]:
    """No error is logged: whatever comes in is no fault of the server."""
    yield
    with server.client() as http:
        assert http.get("/healthz").status_code == 200
    assert [line for line in server.lines if line.get("level") == "error"] == []


def connected(aggregator: Aggregator) -> socket.socket:
    port = int(aggregator.url.rpartition(":")[2])
    return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)


def everything(connection: socket.socket) -> bytes:
    """All that is answered until the server hangs up, which it must."""
    received = b""
    with contextlib.suppress(ConnectionResetError):
        while part := connection.recv(65536):
            received += part
    return received


def answers(aggregator: Aggregator, *pieces: bytes) -> bytes:
    with connected(aggregator) as connection:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            for piece in pieces:
                connection.sendall(piece)
        return everything(connection)


@pytest.mark.parametrize(
    "garbage", [GARBAGE, GOOD[:-2] + b"no colon\r\n\r\n", BROKEN_BODY], ids=repr
)
def test_what_is_no_request_is_answered_with_a_problem(
    server: AggregatorProcess, garbage: bytes
) -> None:
    head, _, body = answers(server, garbage).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert b"content-type: application/problem+json\r\n" in head
    assert b"connection: close" in head
    found = Problem.model_validate_json(body)
    assert (found.type, found.status) == ("urn:tacit:problem:invalid-request", 400)


@pytest.mark.parametrize("garbage", [GARBAGE, BROKEN_BODY], ids=repr)
@pytest.mark.parametrize("requests", [1, 5])
def test_garbage_after_requests_takes_no_answer_from_them_and_fills_no_log(
    server: AggregatorProcess, requests: int, garbage: bytes
) -> None:
    answered = answers(server, GOOD * requests + garbage)
    assert answered.count(b"HTTP/1.1 200 ") == requests
    assert answered.count(b"HTTP/1.1 ") == requests


def test_a_client_that_hangs_up_on_its_own_requests_fills_no_log(server: AggregatorProcess) -> None:
    for _ in range(20):
        with connected(server) as connection:
            connection.sendall(GOOD * 20)


def test_an_upload_that_waits_when_the_server_stops_is_answered_and_not_stored_by_half(
    tmp_path: Path, generator: np.random.Generator
) -> None:
    settings = migrated(tmp_path)
    with in_thread(settings, grace=1) as aggregator, scene(aggregator) as made:
        site = made.site()
        upload = Reported.random(generator, 5).upload(made.digest)
        connection = connected(aggregator)
        _begin(connection, site, upload)
        lock = sqlite3.connect(
            aggregator.database_file, isolation_level=None, check_same_thread=False
        )
        lock.execute("BEGIN IMMEDIATE")  # the writer waits, and the upload with it
        heard: list[bytes] = []

        def listen() -> None:
            heard.append(everything(connection))
            lock.close()

        listening = threading.Thread(target=listen)
        connection.sendall(upload.to_bytes())
        listening.start()
    listening.join(PATIENCE)
    connection.close()
    head, _, body = heard[0].partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 503 ")
    assert b"retry-after: 1" in head
    assert json.loads(body)["type"] == "urn:tacit:problem:unavailable"
    assert _stored(aggregator.database_file) in ((0, 0, 0), (1, 5, 5))
    with in_thread(settings) as again, again.client() as http:
        token = {"Authorization": site.http.headers["authorization"]}
        address = f"{made.address}/uploads/{upload.upload}"
        answer = http.put(address, content=upload.to_bytes(), headers={**JSON, **token})
        assert answer.status_code == 200, answer.text
    assert _stored(aggregator.database_file)[2] == 5


def _begin(connection: socket.socket, site: Site, upload: Upload) -> None:
    """Send the head of an upload; the server has it when it asks for the body."""
    head = (
        f"PUT /v1/campaigns/{upload.campaign}/uploads/{upload.upload} HTTP/1.1",
        "Host: 127.0.0.1",
        "Content-Type: application/json",
        f"Content-Length: {len(upload.to_bytes())}",
        "Expect: 100-continue",
        f"Authorization: {site.http.headers['authorization']}",
    )
    connection.sendall("\r\n".join(head).encode() + b"\r\n\r\n")
    assert connection.recv(100).startswith(b"HTTP/1.1 100 ")


def _stored(file: Path) -> tuple[int, int, int]:
    """Uploads, records that are pending or counted, and records received by the campaign."""
    with contextlib.closing(sqlite3.connect(file)) as connection:
        (found,) = connection.execute(
            "SELECT (SELECT count(*) FROM uploads),"
            " (SELECT coalesce(sum(records), 0) FROM pending)"
            " + (SELECT coalesce(sum(counted), 0) FROM sites),"
            " (SELECT sum(received) FROM campaigns)"
        ).fetchall()
    uploads, records, received = found
    return uploads, records, received
