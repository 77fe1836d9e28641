"""An answer's commit, a done mark and the closing of their round, in both orders: none is lost."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import httpx
import pytest

from tacit.protocol import AnswerUpload
from tacit_aggregator.ingest.answers import StoringAnswers
from tacit_aggregator.rounds.ending import Turn
from tacit_aggregator.rounds.moving import Mover, Step
from tests.support.aggregator import PATIENCE, Aggregator, in_thread, migrated
from tests.support.label_campaigns import problem_name
from tests.support.postgres import every_backend, fresh_url
from tests.support.score_campaigns import ScoreScene, ScoreSite, bits, score_scene

BLOCKED_SECONDS = 0.5
"""Somebody who is not through after this long is held up."""


@pytest.fixture(scope="module", params=every_backend())
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Aggregator]:
    folder: Path = tmp_path_factory.mktemp("closing")
    with in_thread(migrated(folder, database_url=fresh_url(request.param, folder))) as running:
        yield running


class Gate:
    """Holds whoever comes through until it is opened."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.opened = threading.Event()

    def hold(self) -> None:
        self.reached.set()
        assert self.opened.wait(PATIENCE)


class Others:
    """Threads that call functions, and gates that hold them or the server's own."""

    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self._pool = pool
        self._gates: list[Gate] = []

    def call(
        self, function: Callable[..., httpx.Response], *given: Any
    ) -> "Future[httpx.Response]":
        return self._pool.submit(function, *given)

    def gate(self) -> Gate:
        self._gates.append(Gate())
        return self._gates[-1]

    def let_go(self) -> None:
        for gate in self._gates:
            gate.opened.set()


@pytest.fixture
def others() -> Iterator[Others]:
    """Where a test fails nobody stays held: neither its threads nor the server of the next one."""
    with ThreadPoolExecutor() as pool:
        made = Others(pool)
        yield made
        made.let_go()


def is_held_up(answer: "Future[httpx.Response]") -> bool:
    return bool(wait([answer], BLOCKED_SECONDS).not_done)


def prepared(scene: ScoreScene) -> tuple[ScoreSite, ScoreSite, AnswerUpload]:
    """A round that one site is done with, and answers of the other."""
    north, south = scene.site("north", 20), scene.site("south", 20)
    question = north.asked()
    north.answer(question, bits(1, 3))
    north.done(0, 3)
    return north, south, south.answers(question, bits(2, 4))


def close_slowly(scene: ScoreScene, monkeypatch: pytest.MonkeyPatch, gate: Gate) -> Gate:
    """Have the open round be closed up to its commit, which waits for the gate."""
    go_on = Turn.count_and_go_on

    def go_on_slowly(turn: Turn) -> bool:
        goes_on = go_on(turn)
        gate.hold()  # counted, and not committed yet
        return goes_on

    monkeypatch.setattr(Turn, "count_and_go_on", go_on_slowly)
    scene.pass_deadline()
    assert gate.reached.wait(PATIENCE)
    return gate


def test_an_answer_that_is_being_stored_is_counted_by_the_closing_that_waits_for_it(
    server: Aggregator, monkeypatch: pytest.MonkeyPatch, others: Others
) -> None:
    before_closing, in_answer, closed = others.gate(), others.gate(), threading.Event()
    tried, decided = Mover._try, StoringAnswers.decide

    def try_later(mover: Mover, step: Step, terms: Any) -> bool | None:
        if step is Step.CLOSE and not before_closing.opened.is_set():
            before_closing.hold()
        moved = tried(mover, step, terms)
        if step is Step.CLOSE and moved:
            closed.set()
        return moved

    def decide(storing: StoringAnswers, batch: Any) -> Any:
        outcomes = decided(storing, batch)
        if batch:  # its round is held, and nothing is written yet
            in_answer.hold()
        return outcomes

    with score_scene(server) as scene:
        north, south, upload = prepared(scene)
        monkeypatch.setattr(Mover, "_try", try_later)
        monkeypatch.setattr(StoringAnswers, "decide", decide)
        scene.pass_deadline()
        assert before_closing.reached.wait(PATIENCE)
        sent = others.call(south.put, upload)
        assert in_answer.reached.wait(PATIENCE)
        before_closing.opened.set()
        assert not closed.wait(BLOCKED_SECONDS), "the round closed while an answer was stored"
        in_answer.opened.set()
        assert sent.result(PATIENCE).json()["state"] == "accepted"
        north.asked(1)
        status = scene.status()
        assert (status.rounds[0].answers, status.records.counted) == (7, 7)
        assert south.put(upload).json()["state"] == "counted"


def test_an_answer_that_comes_while_its_round_is_being_closed_is_late(
    server: Aggregator, monkeypatch: pytest.MonkeyPatch, others: Others
) -> None:
    with score_scene(server) as scene:
        north, south, upload = prepared(scene)
        gate = close_slowly(scene, monkeypatch, others.gate())
        sent = others.call(south.put, upload)
        assert is_held_up(sent), "an answer was stored in a round that was being closed"
        assert scene.status().rounds[0].state == "open"
        gate.opened.set()
        assert problem_name(sent.result(PATIENCE)) == "round-closed"
        north.asked(1)
        assert problem_name(south.put(upload)) == "round-closed"
        tally = scene.status().records
        assert (tally.received, tally.counted, tally.late, tally.pending) == (7, 3, 4, 0)


def test_a_site_is_done_only_with_answers_that_are_stored(
    server: Aggregator, monkeypatch: pytest.MonkeyPatch, others: Others
) -> None:
    gate = others.gate()
    decided = StoringAnswers.decide

    def decide(storing: StoringAnswers, batch: Any) -> Any:
        outcomes = decided(storing, batch)
        if batch:
            gate.hold()
        return outcomes

    with score_scene(server) as scene:
        north, south, upload = prepared(scene)
        monkeypatch.setattr(StoringAnswers, "decide", decide)
        sent = others.call(south.put, upload)
        assert gate.reached.wait(PATIENCE)
        done = others.call(south.put_done, 0, 4)
        assert is_held_up(done), "a site was done before its answers were stored"
        gate.opened.set()
        assert sent.result(PATIENCE).status_code == done.result(PATIENCE).status_code == 200
        north.asked(1)
        assert scene.status().records.counted == 7


def test_a_done_mark_that_comes_while_its_round_is_being_closed_waits_and_has_no_effect(
    server: Aggregator, monkeypatch: pytest.MonkeyPatch, others: Others
) -> None:
    with score_scene(server) as scene:
        north, south, _ = prepared(scene)
        gate = close_slowly(scene, monkeypatch, others.gate())
        done = others.call(south.put_done, 0, 4)  # what it sent comes too late, or never
        assert is_held_up(done), "a site was told of a round that was being closed"
        gate.opened.set()
        answer = done.result(PATIENCE)
        assert (answer.status_code, answer.json()["state"]) == (200, "closed")
        north.asked(1)
        status = scene.status()
        assert (status.rounds[0].answers, status.records.counted) == (3, 3)
