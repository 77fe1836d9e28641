"""Waiting for the next question: answered when there is one, and nothing is held meanwhile."""

import asyncio
import contextlib
import re
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tacit_aggregator.database.engine import Database
from tests.support.aggregator import (
    PATIENCE,
    Aggregator,
    AggregatorProcess,
    as_process,
    in_thread,
    migrated,
    until,
)
from tests.support.label_campaigns import problem_name
from tests.support.postgres import BACKENDS, fresh_url, query
from tests.support.relay import Relay
from tests.support.score_campaigns import (
    ScoreSite,
    answer_round,
    score_document,
    score_scene,
)

WAITING = 1000


@contextmanager
def waiting(site: ScoreSite, after: int, seconds: float) -> Iterator["list[httpx.Response]"]:
    """A request of a site that waits in another thread; its answer, when the context has ended."""
    answers: list[httpx.Response] = []

    def ask() -> None:
        query_ = {"after": after, "wait": seconds}
        answers.append(site.http.get(f"{site.address}/round", params=query_))

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield answers
    finally:
        thread.join(PATIENCE)


def test_a_question_that_is_new_to_the_site_is_answered_at_once(server: Aggregator) -> None:
    with score_scene(server) as scene:
        site = scene.site(enrol=40)
        site.asked()
        began = time.monotonic()
        assert site.round(-1, 25.0).round == 0
        assert time.monotonic() - began < 20
        known = site.round(0)
        assert (known.round, known.state) == (0, "open")


def test_without_news_the_state_is_told_when_the_wait_is_over(server: Aggregator) -> None:
    with score_scene(server) as scene:
        site = scene.site(enrol=40)
        site.asked()
        began = time.monotonic()
        current = site.round(0, 1.0)
        assert time.monotonic() - began >= 1.0
        assert (current.round, current.state) == (0, "open")
        assert 500 < current.ends_in <= 600


def test_who_waits_is_told_when_the_round_opens_and_when_the_search_ends(
    server: Aggregator,
) -> None:
    with score_scene(server) as scene:
        north, south = scene.site("north", 10), scene.site("south")
        with waiting(north, -1, 25.0) as first:
            time.sleep(0.2)
            assert not first
            south.enrol(30).raise_for_status()
        assert first[0].json()["round"] == 0
        with waiting(north, 0, 25.0) as second:
            time.sleep(0.2)
            assert not second
            scene.owner.post(f"{scene.address}/close").raise_for_status()
        assert (second[0].json()["state"], second[0].json()["question"]) == ("over", None)


@pytest.mark.parametrize(
    "asked", ["wait=26", "wait=25.01", "wait=-1", "wait=nan", "after=64", "after=-2", "after=x"]
)
def test_nobody_waits_longer_than_proxies_do(server: Aggregator, asked: str) -> None:
    with score_scene(server) as scene:
        site = scene.site()
        assert problem_name(site.http.get(f"{site.address}/round?{asked}")) == "invalid-request"


def test_behind_a_proxy_that_hangs_up_on_silence_a_site_hears_of_the_question(
    server: Aggregator,
) -> None:
    """The proxy's 30 s and our 25 s, scaled down, with more time between for a busy machine."""
    silence, poll = 1.5, 0.5
    with score_scene(server) as scene, Relay(silence=silence) as proxy:
        proxy.target = int(server.url.rpartition(":")[2])
        site = scene.site("north", 10)
        far = Aggregator(server.settings, proxy.url)
        token = site.http.headers["authorization"].removeprefix("Bearer ")
        with far.client(token) as http:
            behind = ScoreSite("north", scene.digest, http)
            assert [behind.round(-1, poll).state for _ in range(2)] == ["enrolling"] * 2
            assert proxy.unanswered == 0
            with pytest.raises(httpx.TransportError):
                behind.round(-1, 4 * silence)
            assert proxy.unanswered == 1
            scene.site("south", 30)
            until(lambda: behind.round(-1, poll).round == 0)


def test_waking_many_costs_one_read_of_the_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = 0
    read = Database.read

    def counted(database: Database) -> object:
        nonlocal reads
        reads += threading.current_thread().name != "counting"
        return read(database)

    many = 40
    with (
        in_thread(migrated(tmp_path)) as server,
        score_scene(server) as scene,
        ThreadPoolExecutor(many) as pool,
    ):
        site = scene.site(enrol=40)
        site.asked()
        waiting_ = [pool.submit(site.round, 0, 25.0) for _ in range(many)]
        time.sleep(1.0)
        monkeypatch.setattr(Database, "read", counted)
        answer_round([site], 0, 1, 2)
        assert [one.result(PATIENCE).round for one in waiting_] == [1] * many
        # The site's own requests and the thread's ticks read too, but none of those that waited.
        assert reads < many / 2


def test_a_server_that_stops_answers_those_who_wait(tmp_path: Path) -> None:
    with as_process(migrated(tmp_path)) as aggregator, score_scene(aggregator) as scene:
        site = scene.site(enrol=40)
        site.asked()
        began = time.monotonic()
        with waiting(site, 0, 25.0) as answers:
            time.sleep(0.5)
            assert aggregator.stop() == 0
        assert (answers[0].status_code, answers[0].json()["round"]) == (200, 0)
        assert time.monotonic() - began < 20


async def wait_many(url: httpx.URL, path: str, token: str, many: int) -> int:
    """So many connections that each ask once: how many got a question."""

    async def ask() -> bytes:
        reader, writer = await asyncio.open_connection(url.host, url.port)
        head = f"GET {path} HTTP/1.1\r\nHost: x\r\n{token}\r\nConnection: close\r\n\r\n"
        writer.write(head.encode())
        await writer.drain()
        answer = await reader.read()
        writer.close()
        return answer

    answers = await asyncio.gather(*(ask() for _ in range(many)))
    return sum(b"200 OK" in answer and b'"round":1' in answer for answer in answers)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_thousand_who_wait_hold_no_connection_and_no_thread(tmp_path: Path, backend: str) -> None:
    settings = migrated(
        tmp_path,
        database_url=fresh_url(backend, tmp_path),
        most_connections=WAITING + 100,
        metrics_port=0,
    )
    document = score_document(closes_in=7200)
    with as_process(settings) as aggregator, score_scene(aggregator, document) as scene:
        site = scene.site(enrol=40)
        question = site.asked()
        site.put(site.answers(question, [1, 0])).raise_for_status()
        before, _ = held(aggregator)
        token = f"Authorization: {site.http.headers['authorization']}"
        path = f"{site.address}/round?after=0&wait=25"
        with ThreadPoolExecutor(1) as pool:
            everybody = wait_many(httpx.URL(aggregator.url), path, token, WAITING)
            got = pool.submit(asyncio.run, everybody)
            until(lambda: polls_waiting(aggregator) == WAITING, 20)
            threads, connections = held(aggregator)
            # Threads and connections of requests that began to wait stay in their pools.
            assert threads <= before + WAITING / 20
            assert connections <= WAITING / 20
            assert in_transactions(aggregator) == 0
            site.done(0, 2)
            assert got.result(PATIENCE) == WAITING
        assert polls_waiting(aggregator) == 0
        assert scene.status().rounds[1].state == "open"


def test_a_poll_whose_site_hangs_up_is_forgotten_at_once(tmp_path: Path) -> None:
    most, crowd = 60, 50
    settings = migrated(tmp_path, most_connections=most, metrics_port=0)
    with as_process(settings) as aggregator, score_scene(aggregator) as scene:
        site = scene.site(enrol=40)
        site.asked()
        token = site.http.headers["authorization"]
        head = f"GET {site.address}/round?after=0&wait=25 HTTP/1.1\r\nHost: x\r\n"
        request = f"{head}Authorization: {token}\r\n\r\n".encode()
        began = time.monotonic()
        for _ in range(3):  # more than there is room for, if one of them stayed
            with contextlib.ExitStack() as stack:
                for _ in range(crowd):
                    to = ("127.0.0.1", aggregator.port)
                    stack.enter_context(socket.create_connection(to)).sendall(request)
                until(lambda: polls_waiting(aggregator) == crowd, 20)
            until(lambda: polls_waiting(aggregator) == 0, 20)
            assert scene.status().rounds[0].state == "open"
        assert time.monotonic() - began < 25
        assert not [line for line in aggregator.lines if line.get("level") == "error"]


def test_a_site_that_still_waits_hears_of_the_question_when_others_have_hung_up(
    server: Aggregator,
) -> None:
    with score_scene(server) as scene:
        north, south = scene.site("north", 10), scene.site("south")
        with waiting(north, -1, 25.0) as first:
            with pytest.raises(httpx.ReadTimeout):
                north.http.get(f"{north.address}/round?wait=25", timeout=0.3)
            assert not first
            south.enrol(30).raise_for_status()
        assert first[0].json()["round"] == 0


def held(aggregator: AggregatorProcess) -> tuple[int, int]:
    """Threads of the server, and its connections to the database."""
    assert aggregator.process is not None
    process = Path(f"/proc/{aggregator.process.pid}")
    found = re.search(r"Threads:\s+(\d+)", (process / "status").read_text())
    assert found is not None
    url = aggregator.settings.database_url
    if not url.startswith("sqlite"):
        asked = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        return int(found[1]), query(url, asked)[0][0] - 1
    files = 0
    for file in (process / "fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            files += file.readlink() == aggregator.database_file
    return int(found[1]), files


def in_transactions(aggregator: Aggregator) -> int:
    """How many of them are in a transaction, again and again for a moment: the least."""
    url = aggregator.settings.database_url
    if url.startswith("sqlite"):
        return 0
    asked = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        " AND pid <> pg_backend_pid() AND state <> 'idle'"
    )
    return min(int(query(url, asked)[0][0]) for _ in range(10))


def polls_waiting(aggregator: AggregatorProcess) -> int:
    """What the server's metrics say of those who wait."""
    port = next(line["port"] for line in aggregator.lines if line["event"] == "metrics listening")
    text = httpx.get(f"http://127.0.0.1:{port}/metrics", trust_env=False).text
    found = re.search(r"^tacit_polls_waiting (\d+)", text, re.MULTILINE)
    assert found is not None
    return int(found[1])
