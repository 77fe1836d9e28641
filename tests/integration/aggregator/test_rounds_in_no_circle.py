"""Answers, done marks, rounds that move and all that disturbs them, at two servers: no deadlock."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import httpx
import pytest

from tacit.protocol import CurrentRound, SearchState
from tacit_aggregator.rounds.moving import Mover, Step
from tests.support.aggregator import PATIENCE, Aggregator, in_thread, migrated, until
from tests.support.postgres import query, server
from tests.support.score_campaigns import ScoreScene, ScoreSite, question_of, score_scene

SITES = 2
ROUNDS = 2
PUTS = 4
"""Uploads in each round, each of one record and to each server."""


@dataclass
class Crowd:
    """Sites of one campaign, that speak to both servers, and what disturbs them."""

    scene: ScoreScene
    servers: tuple[Aggregator, Aggregator]
    unexpected: list[str] = field(default_factory=list)
    answered: threading.Event = field(default_factory=threading.Event)

    def site(self, name: str) -> tuple[ScoreSite, ScoreSite]:
        """A new site, as it speaks to either server."""
        digest, stack = self.scene.digest, self.scene.stack
        token = self.scene.site(name).http.headers["authorization"].removeprefix("Bearer ")
        here, there = (stack.enter_context(one.client(token)) for one in self.servers)
        return ScoreSite(name, digest, here), ScoreSite(name, digest, there)

    def check(self, answer: httpx.Response) -> None:
        """Note what may not be: neither done, nor refused because something has ended."""
        if answer.status_code not in (200, 409):
            self.unexpected.append(f"{answer.request.url} {answer.status_code} {answer.text}")

    def answer(self, site: tuple[ScoreSite, ScoreSite]) -> None:
        """Answer round after round, everything at both servers."""
        after = -1
        while True:
            current = site[after % 2].round(after, 5.0)
            if current.state is SearchState.OVER:
                return
            if current.round is not None and current.round > after:
                after = current.round
                self.answer_round(site, current)

    def answer_round(self, site: tuple[ScoreSite, ScoreSite], current: CurrentRound) -> None:
        """Answer one round, and be done with it."""
        assert current.question is not None
        question = question_of(current.question)
        for _ in range(PUTS):
            upload = site[0].answers(question, [1])
            self.check(site[0].put(upload))
            self.check(site[1].put(upload))
            self.answered.set()
        self.check(site[0].put_done(question.round, PUTS))
        self.check(site[1].enrol(2))  # refused: the first question was asked

    def disturb(self, how: str) -> None:
        """End the campaign this way, or have a site leave it, while others answer."""
        assert self.answered.wait(PATIENCE)
        if how == "leave":
            self.scene.sites["0"].leave()
        elif how:
            self.check(self.scene.owner.post(f"{self.scene.address}/{how}"))

    def check_sums(self) -> None:
        """Everything that was stored is counted, late or dropped; rounds hold what uploads do."""
        url, digest = self.scene.aggregator.settings.database_url, self.scene.digest
        tally = self.scene.status().records
        assert tally.received == tally.counted + tally.late + tally.dropped
        uploads = (
            "SELECT round, sum(uploads.ones), sum(records)"
            " FROM uploads JOIN rounds USING (campaign, round)"
            " WHERE campaign = %s AND uploads.state = 'accepted' AND rounds.state = 'closed'"
            " GROUP BY round ORDER BY round"
        )
        closed = (
            "SELECT round, ones, answers FROM rounds"
            " WHERE campaign = %s AND state = 'closed' AND answers > 0 ORDER BY round"
        )
        assert query(url, uploads, digest) == query(url, closed, digest)


@contextmanager
def two(folder: Path) -> Iterator[tuple[Aggregator, Aggregator]]:
    """Two servers on one database, both of which move rounds; nobody waited in a circle."""
    settings = migrated(folder, database_url=server().fresh())
    with in_thread(settings) as one, in_thread(settings) as other:
        yield one, other
    # What ends tells of its deadlocks at the latest when it ends.
    here = "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
    until(lambda: not query(settings.database_url, f"{here} AND pid <> pg_backend_pid()"))
    deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
    assert query(settings.database_url, deadlocks) == [(0,)]


def test_whoever_answers_is_done_leaves_closes_abandons_and_moves_rounds_waits_in_no_circle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    try_step, failed = Mover._try, []

    def tried(mover: Mover, step: Step, digest: str) -> bool | None:
        taken = try_step(mover, step, digest)
        if taken is False:
            failed.append(step)
        return taken

    monkeypatch.setattr(Mover, "_try", tried)
    with two(tmp_path) as servers, ExitStack() as stack, ThreadPoolExecutor(32) as threads:
        crowds, works = [], []
        for number, how in enumerate(("", "leave", "close", "abandon", "abandon")):
            scene = stack.enter_context(
                score_scene(servers[number % 2], planned_n=20 * SITES, round_count=ROUNDS)
            )
            crowd = Crowd(scene, servers)
            crowds.append(crowd)
            sites = [crowd.site(str(name)) for name in range(SITES)]
            for here, _ in sites:
                here.enrol(20).raise_for_status()
            works += [partial(crowd.answer, site) for site in sites] + [partial(crowd.disturb, how)]
        for running in [threads.submit(work) for work in works]:
            running.result(PATIENCE)
        for crowd in crowds:
            assert crowd.unexpected == []
            crowd.check_sums()
        assert failed == []
