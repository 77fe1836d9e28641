"""Two servers do the same at the same time, and it is done once; nothing waits in a circle."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from tacit.protocol import Role
from tacit_aggregator.campaigns.documents import Documents
from tacit_aggregator.database.duty import Duty
from tacit_aggregator.database.engine import Database
from tacit_aggregator.keys.secret import read_secret
from tacit_aggregator.scoring import folding, queries, worker
from tacit_aggregator.scoring.batches import Batch, gather
from tacit_aggregator.scoring.finishing import finish_due
from tacit_aggregator.scoring.folding import Folded, fold, lock
from tacit_aggregator.scoring.recovery import forget_lost
from tacit_aggregator.scoring.tasks import task_of
from tacit_aggregator.scoring.worker import Counts, Task
from tacit_aggregator.settings import Settings
from tests.support.aggregator import PATIENCE, Aggregator, in_thread, migrated, until
from tests.support.label_campaigns import JSON, Reported, Scene, Site, campaign_document, scene
from tests.support.postgres import query, server
from tests.support.two_servers import at_once


@dataclass(frozen=True)
class Counter:
    """What counts in a server, step by step."""

    database: Database

    def take(self) -> Batch:
        with self.database.read() as connection:
            batch = gather(queries.after(connection, 0, ()))
        assert batch is not None
        return batch

    def fold(self, batch: Batch) -> list[Folded | None]:
        documents = Documents(self.database)
        tasks = [task_of(group, documents, self.database) for group in batch.groups]
        ready = tuple(task for task in tasks if isinstance(task, Task))
        counted = [one for one in worker.score(ready, 60.0) if isinstance(one, Counts)]
        with self.database.transaction("fold uploads") as connection:
            lock(connection, batch.groups)
            return [
                fold(connection, group, counts, 1.0)
                for group, counts in zip(batch.groups, counted, strict=True)
            ]


@dataclass(frozen=True)
class Stage:
    """Two servers on one database, neither of which counts."""

    settings: Settings
    servers: tuple[Aggregator, Aggregator]
    counters: tuple[Counter, Counter]


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with pytest.MonkeyPatch.context() as patch, _two(tmp_path_factory, patch) as made:
        yield made


@contextmanager
def _two(tmp_path_factory: pytest.TempPathFactory, patch: pytest.MonkeyPatch) -> Iterator[Stage]:
    patch.setattr(Duty, "ask", lambda _: False)
    folder: Path = tmp_path_factory.mktemp("two")
    settings = migrated(folder, database_url=server().fresh())
    databases = [Database(settings.database_url) for _ in range(2)]
    with in_thread(settings) as one, in_thread(settings) as other:
        yield Stage(settings, (one, other), (Counter(databases[0]), Counter(databases[1])))
    for database in databases:
        database.close()


def sent(made: Scene, generator: np.random.Generator, uploads: int) -> list[Reported]:
    """Uploads of two sites, accepted."""
    sites = [made.sites.get(name) or made.site(name) for name in ("one", "two")]
    reports = [Reported.random(generator, 10) for _ in range(uploads)]
    for number, reported in enumerate(reports):
        sites[number % 2].send(reported.upload(made.digest))
    return reports


def is_exact(made: Scene, reports: list[Reported]) -> bool:
    """Whether the counts are those of these reports, each once."""
    sketch = made.document.empty_sketch()
    for one in reports:
        sketch = sketch.add(one.probabilities, one.labels)
    url = made.aggregator.settings.database_url
    stored = query(url, "SELECT noisy, counted FROM sites WHERE campaign = %s", made.digest)
    counts: Any = sum(np.frombuffer(noisy, "<i8") for noisy, _ in stored if noisy is not None)
    return sum(counted for _, counted in stored) == sketch.n and np.array_equal(
        counts, sketch.noisy
    )


def finish(stage: Stage, made: Scene) -> None:
    """Have nothing left that waits, so that the next test begins with nothing."""
    made.owner.post(f"{made.address}/abandon").raise_for_status()
    assert query(stage.settings.database_url, "SELECT * FROM pending") == []


def test_what_two_servers_count_at_the_same_time_is_counted_once(
    stage: Stage, generator: np.random.Generator
) -> None:
    with scene(stage.servers[0]) as made:
        reports = sent(made, generator, 8)
        batches = [counter.take() for counter in stage.counters]
        folded = at_once(
            *(
                partial(counter.fold, batch)
                for counter, batch in zip(stage.counters, batches, strict=True)
            )
        )
        # Each group is one server's; which one's, they decided by the sites' locks.
        assert [sum(one is not None for one in group) for group in zip(*folded, strict=True)] == (
            [1, 1]
        )
        assert is_exact(made, reports)
        finish(stage, made)


def test_what_another_server_counted_in_part_is_left_alone_and_the_rest_is_counted_later(
    stage: Stage, generator: np.random.Generator
) -> None:
    with scene(stage.servers[0]) as made:
        reports = sent(made, generator, 4)
        early = stage.counters[0].take()
        reports += sent(made, generator, 4)
        late = stage.counters[1].take()
        assert stage.counters[0].fold(early) != [None, None]
        assert stage.counters[1].fold(late) == [None, None]
        assert is_exact(made, reports[:4])
        assert stage.counters[1].fold(stage.counters[1].take()) != [None, None]
        assert is_exact(made, reports)
        finish(stage, made)


def test_without_the_check_of_the_rows_counting_twice_would_be_noticed(
    stage: Stage, generator: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    with scene(stage.servers[0]) as made:
        reports = sent(made, generator, 2)
        batches = [counter.take() for counter in stage.counters]
        # A broken version: it believes that whatever it took still waits, and erases nothing else.
        monkeypatch.setattr(queries, "still_waiting", lambda *_: 1)
        monkeypatch.setattr(queries, "erase", _erase_unchecked)
        for counter, batch in zip(stage.counters, batches, strict=True):
            counter.fold(batch)
        assert not is_exact(made, reports)


def test_rows_that_vanish_between_looking_and_erasing_undo_the_transaction(
    stage: Stage, generator: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    with scene(stage.servers[0]) as made:
        reports = sent(made, generator, 2)
        batches = [counter.take() for counter in stage.counters]
        monkeypatch.setattr(queries, "still_waiting", lambda *_: 1)
        stage.counters[0].fold(batches[0])
        with pytest.raises(folding.CountedElsewhere):
            stage.counters[1].fold(batches[1])
        assert is_exact(made, reports)
        finish(stage, made)


def _erase_unchecked(connection: Any, group: dict[str, Any]) -> int:
    connection.execute(queries._ERASE, group)
    return 1


def test_a_campaign_that_is_due_ends_once_with_one_threshold(
    stage: Stage, generator: np.random.Generator
) -> None:
    with scene(stage.servers[0], campaign_document(planned_n=40)) as made:
        sent(made, generator, 4)
        assert made.status().state == "closing"
        stage.counters[0].fold(stage.counters[0].take())
        secret = read_secret(stage.settings)
        ends = [
            partial(finish_due, counter.database, Documents(counter.database), secret)
            for counter in (*stage.counters, *stage.counters)
        ]
        at_once(*ends)
        assert made.status().state == "closed"
        url = stage.settings.database_url
        found = query(url, "SELECT which FROM thresholds WHERE campaign = %s", made.digest)
        assert found == [("starred",)]


def test_a_server_that_starts_forgets_nothing_that_others_are_just_storing_and_counting(
    stage: Stage, generator: np.random.Generator
) -> None:
    with scene(stage.servers[0]) as made:
        over = threading.Event()
        counter, starting = stage.counters

        def count() -> None:
            while not over.is_set():
                with counter.database.read() as connection:
                    waits = queries.waiting(connection)[0]
                if waits:
                    counter.fold(counter.take())

        def start() -> None:
            while not over.is_set():
                forget_lost(starting.database)

        def store() -> list[Reported]:
            try:
                return sent(made, generator, 60)
            finally:
                over.set()

        reports, _, _ = at_once(store, count, start)
        while queries_waiting(stage):
            counter.fold(counter.take())
        assert is_exact(made, reports)


def queries_waiting(stage: Stage) -> int:
    ((found,),) = query(stage.settings.database_url, "SELECT count(*) FROM pending")
    return int(found)


def test_what_a_backup_lost_is_forgotten_once_and_can_be_sent_again(
    stage: Stage, generator: np.random.Generator
) -> None:
    with scene(stage.servers[0], campaign_document(planned_n=40)) as made:
        sent(made, generator, 4)
        lost = "DELETE FROM pending WHERE campaign = %s RETURNING number"
        assert len(query(stage.settings.database_url, lost, made.digest)) == 4
        at_once(*(partial(forget_lost, one.database) for one in stage.counters))
        status = made.status()
        assert (status.state, status.records.received) == ("open", 0)
        sent(made, generator, 4)
        finish(stage, made)


def test_the_same_campaign_created_on_two_servers_at_once_is_one(stage: Stage) -> None:
    document = campaign_document()
    token = stage.servers[0].token(Role.OWNER, document.owner)

    def create(aggregator: Aggregator) -> httpx.Response:
        with aggregator.client(token) as http:
            address = f"/v1/campaigns/{document.digest}"
            return http.put(address, content=document.to_bytes(), headers=JSON)

    answers = at_once(*(partial(create, one) for one in stage.servers * 3))
    assert sorted(answer.status_code for answer in answers) == [200] * 5 + [201]
    assert len({answer.content for answer in answers}) == 1


def test_of_two_bodies_under_one_id_at_two_servers_one_is_stored(
    stage: Stage, generator: np.random.Generator
) -> None:
    with scene(stage.servers[0]) as made:
        token = made.site().http.headers["authorization"].removeprefix("Bearer ")
        clients = [one.client(token) for one in stage.servers]
        for _ in range(10):
            first = Reported.random(generator, 3).upload(made.digest)
            second = Reported.random(generator, 3).upload(made.digest, first.upload)
            sites = [Site("site", made.digest, http) for http in clients]
            answers = at_once(
                *(partial(site.put, upload) for site in sites for upload in (first, second))
            )
            # The one that was first, and its repetition by the other server.
            assert sorted(answer.status_code for answer in answers) == [200, 200, 409, 409]
        for http in clients:
            http.close()
        assert made.status().records.received == 30
        finish(stage, made)


def test_whoever_stores_counts_closes_abandons_enrols_and_leaves_waits_in_no_circle(
    stage: Stage, generator: np.random.Generator
) -> None:
    over = threading.Event()
    scenes = [scene(one, campaign_document(planned_n=10**6)) for one in stage.servers * 2]
    unexpected: list[str] = []

    def check(answer: httpx.Response) -> None:
        if answer.status_code not in (200, 409):  # 409: closed, left, or enrolled too little
            unexpected.append(f"{answer.request.url} {answer.status_code} {answer.text}")

    with scenes[0] as a, scenes[1] as b, scenes[2] as c, scenes[3] as d:
        every = (a, b, c, d)
        sites = [made.site(f"site {number}") for number in range(3) for made in every]
        bodies = [Reported.random(generator, 2) for _ in range(5)]

        def store(site: Any) -> None:
            for _ in range(4):
                for one in bodies:
                    check(site.put(one.upload(site.digest)))

        def count(counter: Counter) -> None:
            while not over.is_set():
                with counter.database.read() as connection:
                    batch = gather(queries.after(connection, 0, ()))
                if batch is not None:
                    counter.fold(batch)

        def disturb() -> None:
            for records in range(10_000, 10_020):
                check(sites[0].http.put(f"{a.address}/enrolment", json={"records": records}))
            check(sites[1].http.delete(f"{b.address}/enrolment"))
            check(c.owner.post(f"{c.address}/close"))
            check(d.owner.post(f"{d.address}/abandon"))

        with ThreadPoolExecutor(2) as counting, ThreadPoolExecutor(16) as threads:
            counts = [counting.submit(count, counter) for counter in stage.counters]
            works = [threads.submit(store, site) for site in sites] + [threads.submit(disturb)]
            for work in works:
                work.result(PATIENCE)
            until(lambda: not queries_waiting(stage))
            over.set()
            for one in counts:
                one.result(PATIENCE)
        assert unexpected == []
        for made in every:
            records = made.status().records
            assert records.received == records.counted + records.dropped
    deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
    assert query(stage.settings.database_url, deadlocks) == [(0,)]
