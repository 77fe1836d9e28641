"""Many connections and many bodies at once: what they may take is bounded, and others get in."""

import contextlib
import select
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack

import httpx
import numpy as np
import pytest

from tests.support.aggregator import PATIENCE, AggregatorProcess, as_process, migrated, until
from tests.support.label_campaigns import Reported, Scene, problem_name, scene

MOST_CONNECTIONS = 20
MOST_BODY = 1_000_000
MOST_BODIES = 2_500_000
HALF_A_HEAD = b"GET /healthz HTTP/1.1\r\nHost: a\r\nX: "
REQUEST = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AggregatorProcess]:
    settings = migrated(
        tmp_path_factory.mktemp("server"),
        most_connections=MOST_CONNECTIONS,
        head_seconds=2.0,
        most_body_bytes=MOST_BODY,
        most_bodies_bytes=MOST_BODIES,
    )
    with as_process(settings) as running:
        yield running


@pytest.fixture(scope="module")
def campaign(server: AggregatorProcess) -> Iterator[Scene]:
    with scene(server) as made:
        made.site()
        yield made


def connect(server: AggregatorProcess, stack: ExitStack, first: bytes = b"") -> socket.socket:
    """A connection on which somebody has begun to speak."""
    made = socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE)
    stack.enter_context(made).sendall(first)
    return made


def answer(connection: socket.socket) -> bytes:
    """A whole answer, whose body is JSON; it may come in pieces."""
    received = b""
    while not received.endswith(b"}") and (part := connection.recv(4096)):
        received += part
    return received


def gets_in(server: AggregatorProcess) -> bool:
    """Whether somebody else is answered."""
    with contextlib.suppress(httpx.TransportError), server.client() as client:
        return client.get("/healthz").status_code == 200
    return False


@pytest.mark.parametrize("said", [b"", HALF_A_HEAD], ids=["nothing", "half a head"])
def test_who_does_not_finish_a_head_is_hung_up_on(server: AggregatorProcess, said: bytes) -> None:
    with ExitStack() as stack:
        assert connect(server, stack, said).recv(4096) == b""


def test_who_does_not_finish_a_second_head_is_hung_up_on(server: AggregatorProcess) -> None:
    with ExitStack() as stack:
        connection = connect(server, stack, REQUEST)
        assert answer(connection).startswith(b"HTTP/1.1 200")
        connection.sendall(HALF_A_HEAD)
        assert connection.recv(4096) == b""


def test_a_connection_may_rest_between_requests_for_longer_than_a_head_may_take(
    server: AggregatorProcess,
) -> None:
    with ExitStack() as stack:
        resting = connect(server, stack, REQUEST)
        assert answer(resting).startswith(b"HTTP/1.1 200")
        assert connect(server, stack, HALF_A_HEAD).recv(4096) == b""  # so long
        resting.sendall(REQUEST)
        assert answer(resting).startswith(b"HTTP/1.1 200")


def test_unfinished_heads_in_any_number_keep_nobody_out_for_long(
    server: AggregatorProcess,
) -> None:
    with ExitStack() as stack:
        for _ in range(2 * MOST_CONNECTIONS):
            with contextlib.suppress(ConnectionError):
                connect(server, stack, HALF_A_HEAD)
        until(lambda: gets_in(server))


def test_one_connection_too_many_is_told_so(server: AggregatorProcess) -> None:
    until(lambda: gets_in(server))
    with ExitStack() as stack:
        everybody = [connect(server, stack) for _ in range(MOST_CONNECTIONS + 1)]
        told = answer(everybody[-1])
        assert told.startswith(b"HTTP/1.1 503")
        assert b"urn:tacit:problem:overloaded" in told
        assert b"retry-after: 5" in told
    until(lambda: gets_in(server))


def test_bodies_that_never_end_take_no_more_memory_than_is_set_aside(
    server: AggregatorProcess, campaign: Scene
) -> None:
    site = campaign.sites["site"]
    upload = Reported.random(np.random.default_rng(1), 4).upload(campaign.digest)
    with ExitStack() as stack:
        held = []
        for number in range(4):
            head = (
                f"PUT {campaign.address}/uploads/{number:032x} HTTP/1.1\r\nHost: a\r\n"
                f"Authorization: {site.http.headers['authorization']}\r\n"
                f"Content-Type: application/json\r\nContent-Length: {MOST_BODY}\r\n\r\n"
            )
            held.append(connect(server, stack, head.encode()))
            held[-1].sendall(b" " * (MOST_BODY - 1))
        answered, _, _ = select.select(held, [], [], PATIENCE)
        assert b"urn:tacit:problem:overloaded" in answer(answered[0])
        # What was refused was forgotten, so there is room for somebody who sends little.
        until(lambda: site.put(upload).status_code == 200)
    # Those who held the others are gone, and so is what they held.
    largest = b" " * MOST_BODY
    until(lambda: problem_name(site.put_bytes("0" * 32, largest)) == "invalid-request")


@pytest.mark.parametrize(("hard", "possible"), [(4096, 1000), (300, 172)])
def test_connections_are_as_many_as_there_can_be_descriptors_for(hard: int, possible: int) -> None:
    program = (
        "import resource, tacit_aggregator.serving as serving;"
        f"resource.setrlimit(resource.RLIMIT_NOFILE, (256, {hard}));"
        "print(serving._most_connections(1000), resource.getrlimit(resource.RLIMIT_NOFILE)[0])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    )
    found, descriptors = map(int, done.stdout.split()[-2:])
    assert found == possible
    assert descriptors == min(hard, 1128)
