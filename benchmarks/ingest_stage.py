"""Where the ingest benchmark plays: both servers and the load on one kind of database."""

import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Literal, Self

from benchmarks.contestants import Bare, Body, Server, processor_seconds, running_bare
from benchmarks.load import Timing, drive
from benchmarks.peers.environment import CACHE
from tacit_client import Owner
from tacit_client.testing import RunningAggregator
from tests.support.postgres import own_server

Engine = Literal["SQLite", "PostgreSQL"]
ENGINES: tuple[Engine, ...] = ("SQLite", "PostgreSQL")


@dataclass(frozen=True)
class Turn:
    """One server's turn: the load's timing, and the server's seconds of processor."""

    timing: Timing
    processor: float | None


@dataclass(frozen=True)
class Stage:
    """Both servers and the load, running; files are on a disk, not in memory as /tmp may be."""

    folder: Path
    database_url: str
    aggregator: RunningAggregator
    bare: Bare
    owner: Owner
    loader: ProcessPoolExecutor

    @classmethod
    @contextmanager
    def running(cls, engine: Engine) -> Iterator[Self]:
        """All of it, until the block ends."""
        CACHE.mkdir(exist_ok=True)
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=CACHE)))
            url, bare_database = f"sqlite:///{folder / 'aggregator.db'}", str(folder / "bare.db")
            if engine == "PostgreSQL":
                server = stack.enter_context(own_server(parent=CACHE))
                url, bare_database = server.fresh(), server.fresh()
            settings = {
                "TACIT_DATABASE_URL": url,
                "TACIT_KEY_SECRET_FILE": str(folder / "secret"),
            }
            aggregator = stack.enter_context(RunningAggregator(folder, settings))
            bare = stack.enter_context(running_bare(bare_database))
            owner = stack.enter_context(aggregator.owner())
            loader = ProcessPoolExecutor(1, mp_context=get_context("spawn"))
            yield cls(folder, url, aggregator, bare, owner, stack.enter_context(loader))

    def turn(self, server: Server, bodies: Sequence[Body], connections: int) -> Turn:
        """One server's turn."""
        load = server.load(bodies, connections)
        before = processor_seconds(server.pid)
        timing = self.loader.submit(drive, load).result()
        after = processor_seconds(server.pid)
        return Turn(timing, None if before is None or after is None else after - before)
