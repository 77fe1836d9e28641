"""What moves rounds on: it goes on after trouble, says when it cannot, and counts what it did."""

import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import psycopg
import pytest
from sqlalchemy.exc import OperationalError

from tacit_aggregator.ingest.answers import StoringAnswers
from tacit_aggregator.ingest.storing import Storing
from tacit_aggregator.ingest.submission import Stored
from tacit_aggregator.ingest.writer import Writer
from tacit_aggregator.rounds.ending import Turn
from tacit_aggregator.rounds.moving import Mover
from tacit_aggregator.rounds.thread import Rounds
from tests.support.aggregator import PATIENCE, Aggregator, as_process, in_thread, migrated, until
from tests.support.label_campaigns import Reported, problem, scene
from tests.support.postgres import fresh_url, waiting_for_locks
from tests.support.score_campaigns import answer_round, bits, score_scene


def test_a_server_whose_rounds_stand_still_is_not_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with in_thread(migrated(tmp_path)) as server, server.client() as nobody:
        assert nobody.get("/readyz").status_code == 200
    monkeypatch.setattr(Rounds, "_run", lambda _: None)
    with in_thread(migrated(tmp_path)) as server, server.client() as nobody:
        until(lambda: nobody.get("/readyz").status_code == 503)
        assert "Rounds" in problem(nobody.get("/readyz")).detail


def test_after_trouble_with_the_database_rounds_are_moved_on(
    server: Aggregator, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    troubles = 2
    move = Mover.move

    def troubled(mover: Mover) -> bool:
        nonlocal troubles
        if troubles:
            troubles -= 1
            raise OperationalError("SELECT secret", {}, Exception("a row with somebody's data"))
        return move(mover)

    with score_scene(server) as campaign:
        monkeypatch.setattr(Mover, "move", troubled)
        assert campaign.site(enrol=40).asked().round == 0
    assert not troubles
    logged = capsys.readouterr().out
    assert "OperationalError" in logged
    assert "somebody" not in logged
    assert "secret" not in logged


def test_a_campaign_that_cannot_be_moved_keeps_no_other_from_going_on(
    server: Aggregator, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask_first = Turn.ask_first
    stuck = threading.Event()
    with score_scene(server) as broken, score_scene(server) as fine:

        def fails_for_one(turn: Turn) -> bool:
            if turn.terms.digest == broken.digest and not stuck.is_set():
                raise RuntimeError("its key is gone")
            return ask_first(turn)

        monkeypatch.setattr(Turn, "ask_first", fails_for_one)
        unlucky = broken.site(enrol=40)
        assert fine.site(enrol=40).asked().round == 0
        assert unlucky.round(-1, 1.0).state == "enrolling"
        stuck.set()
        assert unlucky.asked().round == 0


def test_a_round_that_somebody_holds_delays_no_other_search_and_is_no_trouble(
    tmp_path: Path,
) -> None:
    settings = migrated(tmp_path, database_url=fresh_url("postgresql", tmp_path))
    with in_thread(settings) as server, score_scene(server) as held, score_scene(server) as free:
        stuck, other = held.site(enrol=40), free.site(enrol=40)
        stuck.asked()
        other.asked()
        # As a server does that hangs while it stores an answer.
        with psycopg.connect(settings.database_url) as hanging:
            hanging.execute("SELECT 1 FROM rounds WHERE campaign = %s FOR SHARE", [held.digest])
            stuck.done(0, 0)
            until(lambda: waiting_for_locks(settings.database_url))
            began = time.monotonic()
            other.done(0, 0)
            assert other.round(0, 20.0).round == 1
            assert time.monotonic() - began < 9, "it waited until the usual lock_timeout"
            assert stuck.round(0).round == 0
            assert server.client().get("/readyz").status_code == 200
        assert stuck.round(0, 20.0).round == 1


def test_labels_and_answers_that_wait_together_are_stored_together(
    server: Aggregator, monkeypatch: pytest.MonkeyPatch, generator: np.random.Generator
) -> None:
    decide_labels, decide_answers = Storing.decide, StoringAnswers.decide
    reached, opened = threading.Event(), threading.Event()
    batches: list[tuple[int, int]] = []
    arrived = 0
    store = Writer.store

    async def arrive(writer: Writer, submission: Any) -> Stored:
        nonlocal arrived
        arrived += 1
        return await store(writer, submission)

    def labels(storing: Storing, batch: Any) -> Any:
        batches.append((len(batch), 0))
        return decide_labels(storing, batch)

    def answers(storing: StoringAnswers, batch: Any) -> Any:
        batches[-1] = (batches[-1][0], len(batch))
        reached.set()
        assert opened.wait(PATIENCE)
        return decide_answers(storing, batch)

    with score_scene(server) as scored, scene(server) as labelled, ThreadPoolExecutor() as pool:
        asked, reporting = scored.site(enrol=40), labelled.site()
        question = asked.asked()
        monkeypatch.setattr(Writer, "store", arrive)
        monkeypatch.setattr(Storing, "decide", labels)
        monkeypatch.setattr(StoringAnswers, "decide", answers)
        first = pool.submit(asked.answer, question, [1])
        assert reached.wait(PATIENCE)
        reports = [Reported.random(generator, n).upload(labelled.digest) for n in (2, 3)]
        sent = [
            pool.submit(asked.answer, question, bits(1, 4)),
            *[pool.submit(reporting.send, upload) for upload in reports],
            pool.submit(asked.answer, question, bits(2, 5)),
        ]
        until(lambda: arrived == 5)
        opened.set()
        assert first.result(PATIENCE).records == 1
        assert [one.result(PATIENCE).records for one in sent] == [4, 2, 3, 5]
        assert batches == [(0, 1), (2, 2)]
        assert scored.status().records.pending == 10
        labelled.wait_until_counted(5)


def test_metrics_tell_what_became_of_rounds_and_answers(tmp_path: Path) -> None:
    settings = migrated(tmp_path, metrics_port=0)
    with as_process(settings) as aggregator, score_scene(aggregator, least=3) as campaign:
        site = campaign.site(enrol=40)
        question = site.asked()
        answer_round([site], 0, 1, 2)
        site.asked(1)
        campaign.pass_deadline()
        until(lambda: campaign.status().rounds[1].extensions == 1)
        site.put(site.answers(question, bits(1, 5)))
        port = next(line["port"] for line in aggregator.lines if "metrics" in line["event"])
        text = httpx.get(f"http://127.0.0.1:{port}/metrics", trust_env=False).text
        counted = dict(
            re.findall(r"^tacit_((?:rounds|answers)_total\{.*\}) (\d+)", text, re.MULTILINE)
        )
        assert counted == {
            'rounds_total{event="opened"}': "2",
            'rounds_total{event="closed"}': "1",
            'rounds_total{event="extended"}': "1",
            'answers_total{state="accepted"}': "2",
            'answers_total{state="late"}': "5",
        }
        assert campaign.digest not in text
