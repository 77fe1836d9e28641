"""Rounds on several aggregators that are killed and restarted: each closes once, counts exact."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tacit.protocol import Tally
from tacit_aggregator.ingest.answers import StoringAnswers
from tacit_aggregator.rounds import queries
from tacit_aggregator.rounds.moving import Mover, Step
from tests.support.aggregator import PATIENCE, AggregatorProcess, in_thread, migrated, until
from tests.support.postgres import query, server
from tests.support.score_campaigns import bits, score_scene
from tests.support.score_oracle import ScoreOracle, stored
from tests.support.score_replicas import score_replicas
from tests.support.score_scene import answering_here

SITES = tuple(f"site-{number}" for number in range(3))
EACH = 40
N = len(SITES) * EACH
ROUNDS = 5


def has_opened(oracle: ScoreOracle, rounds: int) -> bool:
    return oracle.opened() >= rounds


def killed(replica: AggregatorProcess) -> None:
    replica.kill()


def told_to_stop(replica: AggregatorProcess) -> None:
    assert replica.stop() == 0


@pytest.mark.parametrize(
    ("count", "end"),
    [
        pytest.param(3, killed),
        pytest.param(3, told_to_stop, marks=pytest.mark.long),
        pytest.param(2, told_to_stop, marks=pytest.mark.long),
        pytest.param(2, killed, marks=pytest.mark.long),
    ],
)
def test_every_round_closes_once_while_replicas_end_and_come_back_under_load(
    tmp_path: Path, count: int, end: Callable[[AggregatorProcess], None]
) -> None:
    with score_replicas(tmp_path, count, SITES, EACH, rounds=ROUNDS) as made:
        with made.watched(), answering_here(made.sites):
            for number, replica in enumerate(made.running):
                until(partial(has_opened, made.oracle, number + 2))
                end(replica)
                replica.start()
        oracle = made.oracle
        oracle.check(made.owner)
        made.check_one_question_per_round()
        assert sum(taken.records for taken in oracle.counted) == N
        numbers = [number for (number,) in stored(oracle.url, "SELECT number FROM uploads")]
        assert sorted(numbers) == list(range(1, len(numbers) + 1))
        errors = [
            line for one in made.running for line in one.lines if line.get("level") == "error"
        ]
        assert errors == []


def test_a_round_is_extended_and_closed_by_whichever_replica_is_there(tmp_path: Path) -> None:
    waits = {"rounds": 2, "round_for": timedelta(seconds=1), "least": EACH}
    with score_replicas(tmp_path, 2, SITES[:2], EACH, **waits) as made:
        there, missing = made.sites
        first, second = made.running

        def extensions() -> int:
            found = stored(made.oracle.url, "SELECT sum(extensions) FROM rounds")
            return int(found[0][0] or 0)

        missing.answer_here(wait=False)  # enrols; nothing is asked yet
        with answering_here([there]):
            first.kill()
            until(extensions)
            first.start()
            second.kill()
            before = extensions()
            until(lambda: extensions() > before)
            ((opened, ends, times),) = stored(
                made.oracle.url, "SELECT opened_at, ends_at, extensions FROM rounds"
            )
            # Both look after the deadline, and each extension is by a second at least.
            assert times <= ends - opened - 1
            with answering_here([missing]):
                pass
        oracle = made.oracle
        oracle.check(made.owner)
        assert sum(taken.records for taken in oracle.counted) == 2 * EACH


def interleaved(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Tally:
    """What is counted when a round is closed at the moment when an answer to it is stored."""
    deciding, may_commit, closed = threading.Event(), threading.Event(), threading.Event()
    tried, decided = Mover._try, StoringAnswers.decide

    def try_meanwhile(mover: Mover, step: Step, terms: Any) -> bool | None:
        if step is Step.CLOSE:
            assert deciding.wait(PATIENCE)
        moved = tried(mover, step, terms)
        if step is Step.CLOSE and moved:
            closed.set()
        return moved

    def decide(storing: StoringAnswers, batch: Any) -> Any:
        outcomes = decided(storing, batch)
        if batch:  # its round is held, and nothing is written yet
            deciding.set()
            assert may_commit.wait(PATIENCE)
        return outcomes

    settings = migrated(folder, database_url=server().fresh())
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    with (
        in_thread(settings) as aggregator,
        score_scene(aggregator) as scene,
        ThreadPoolExecutor() as pool,
        ExitStack() as failing,
    ):
        failing.callback(may_commit.set)  # or those who wait for it would be waited for
        north, south = scene.site("north", 20), scene.site("south", 20)
        question = north.asked()
        north.answer(question, bits(1, 3))
        north.done(0, 3)
        monkeypatch.setattr(Mover, "_try", try_meanwhile)
        monkeypatch.setattr(StoringAnswers, "decide", decide)
        scene.pass_deadline()
        sent = pool.submit(south.put, south.answers(question, bits(2, 4)))
        until(lambda: closed.is_set() or query(settings.database_url, waiting) == [(1,)])
        may_commit.set()
        assert sent.result(PATIENCE).json()["state"] == "accepted"
        north.asked(1)
        return scene.status().records


def check_balance(tally: Tally) -> None:
    """An answer that was acknowledged before its round closed is counted."""
    assert (tally.received, tally.counted, tally.late, tally.pending) == (7, 7, 0, 0)


def test_a_closing_waits_for_the_answer_that_is_being_stored_and_counts_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_balance(interleaved(tmp_path, monkeypatch))


def test_a_closing_that_sums_up_before_it_has_the_lock_would_be_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "lock", lambda *_: None)
    tally = interleaved(tmp_path, monkeypatch)
    with pytest.raises(AssertionError):
        check_balance(tally)
