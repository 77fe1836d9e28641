"""Two servers on one PostgreSQL that do the same at the same moment, step by step."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tacit_aggregator.campaigns.documents import Documents
from tacit_aggregator.clock import Clock
from tacit_aggregator.database.engine import Database
from tacit_aggregator.keys.secret import read_secret
from tacit_aggregator.metrics import Metrics
from tacit_aggregator.rounds.moving import Mover, Step
from tacit_aggregator.rounds.thread import Rounds
from tacit_aggregator.settings import Settings
from tests.support.aggregator import PATIENCE, Aggregator, in_thread, migrated, until
from tests.support.postgres import query, server, waiting_for_locks
from tests.support.score_campaigns import ScoreScene, ScoreSite


def at_once(*works: Callable[[], Any]) -> list[Any]:
    """The results of these, begun at the same moment."""
    barrier = threading.Barrier(len(works))

    def begin(work: Callable[[], Any]) -> Any:
        barrier.wait(PATIENCE)
        return work()

    with ThreadPoolExecutor(len(works)) as threads:
        return list(threads.map(begin, works))


class Meeting:
    """Where two of them come to the same place: who comes first goes on when the other is there.

    There it is when it has come as far, waits for a lock of the first, or has `gone` another way.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._came = 0
        self.came = threading.Event()
        self.gone = threading.Event()

    def meet(self) -> None:
        """Come to the place."""
        self._came += 1
        self.came.set()
        until(lambda: self._came > 1 or self.gone.is_set() or waiting_for_locks(self._url))


@dataclass(frozen=True)
class TwoServers:
    """Two servers, whose rounds stand still until a mover of theirs is told to move them."""

    settings: Settings
    servers: tuple[Aggregator, Aggregator]
    movers: tuple[Mover, Mover]

    @property
    def url(self) -> str:
        """Where the database is."""
        return self.settings.database_url

    def take(self, step: Step, campaign: str, server: int = 0) -> bool:
        """Take a step of a search if it is due: whether that went well.

        Again where another server was at it for so long that this one gave up.
        """
        while (taken := self.movers[server]._try(step, campaign)) is None:
            pass
        return taken

    def at_other(self, scene: ScoreScene, site: ScoreSite) -> ScoreSite:
        """The same site of a campaign, that speaks to the other server."""
        token = site.http.headers["authorization"].removeprefix("Bearer ")
        http = scene.stack.enter_context(self.servers[1].client(token))
        return ScoreSite(site.name, site.digest, http)

    def query(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        """What a query finds in their database."""
        return query(self.url, statement, *parameters)


@contextmanager
def two_servers(folder: Path, clock: Clock = time.time) -> Iterator[TwoServers]:
    """Two servers with a clock of their own, whose rounds nobody moves but the test."""
    settings = migrated(folder, database_url=server().fresh())
    databases = [Database(settings.database_url) for _ in range(2)]
    for made in databases:
        made.clock = clock
    secret = read_secret(settings)
    one, other = (Mover(made, Documents(made), secret, Metrics()) for made in databases)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Rounds, "_run", lambda _: None)
        with in_thread(settings, clock) as here, in_thread(settings, clock) as there:
            yield TwoServers(settings, (here, there), (one, other))
    for database in databases:
        database.close()
