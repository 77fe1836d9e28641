"""The database goes away and comes back, under servers that go on."""

import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from tests.support.aggregator import AggregatorProcess, in_thread, migrated, until
from tests.support.label_campaigns import Reported, campaign_document, problem_name, scene
from tests.support.postgres import own_server
from tests.support.scene import environment


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT], ids=["stopped", "crashed"])
def test_requests_are_put_off_while_the_database_is_away_and_all_heals_when_it_is_back(
    tmp_path: Path, generator: np.random.Generator, how: signal.Signals
) -> None:
    with own_server() as postgres:
        settings = migrated(tmp_path, database_url=postgres.fresh())
        with in_thread(settings) as aggregator, scene(aggregator, campaign_document()) as made:
            site = made.site()
            sent = [Reported.random(generator, 10).upload(made.digest) for _ in range(3)]
            site.send(sent[0])
            made.wait_until_counted(10)
            postgres.stop(how)
            away = [
                site.put(sent[1]),
                made.owner.get("/readyz"),
                made.owner.get(f"{made.address}/status"),
                made.owner.post(f"{made.address}/close"),
            ]
            assert [problem_name(answer) for answer in away] == ["unavailable"] * 4
            assert all(int(answer.headers["retry-after"]) >= 1 for answer in away)
            assert made.owner.get("/healthz").status_code == 200
            postgres.start()
            # No request meets a dead connection of before.
            assert made.status().records.counted == 10
            assert site.send(sent[1]).state == "accepted"
            assert site.send(sent[0]).state == "counted"
            made.wait_until_counted(20)
            site.send(sent[2])
            made.wait_until_counted(30)
            until(lambda: made.owner.get("/readyz").status_code == 200)


def test_a_server_waits_for_a_database_that_does_not_answer_yet_and_stops_without_one(
    tmp_path: Path,
) -> None:
    with own_server() as postgres:
        settings = migrated(tmp_path, database_url=postgres.fresh())
        postgres.stop()
        aggregator = AggregatorProcess(settings, environment=environment())
        starting = threading.Thread(target=aggregator.start)
        starting.start()
        try:
            until(lambda: any(_waits(line) for line in aggregator.lines))
            time.sleep(0.2)
            assert starting.is_alive()
            postgres.start()
            starting.join(60)
            with aggregator.client() as client:
                assert client.get("/readyz").status_code == 200
            postgres.stop()
            assert aggregator.stop() == 0
        finally:
            aggregator.kill()


def _waits(line: dict[str, object]) -> bool:
    return line.get("event") == "waiting for the database"
