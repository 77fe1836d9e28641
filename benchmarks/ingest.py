"""Uploads per second from the socket to the sketch, beside a bare endpoint that only stores them.

Both are real processes with one worker and a fully synced SQLite file, and take the same bodies
from the same load over as many connections. What the site spends before it sends is measured apart.
"""

import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from multiprocessing import get_context
from pathlib import Path
from typing import Self

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # to be run by path, too

from benchmarks.contestants import Bare, Body, Server, Tacit, processor_seconds, running_bare
from benchmarks.harness import Bar, Report, main, progress, show_table
from benchmarks.load import Load, Timing, drive
from benchmarks.peers.environment import CACHE
from benchmarks.synthetic import EPSILON, make_labelled
from tacit.conformal import CoverageSketch
from tacit.protocol import Campaign, Invitation, Reports, Upload
from tacit_client import Contributor, Owner, Policy
from tacit_client.api import Api
from tacit_client.drawing import draw
from tacit_client.ledger import find_campaign
from tacit_client.outbox import ReportState
from tacit_client.records import Records
from tacit_client.testing import RunningAggregator

CLASSES = 10
ALPHA = 0.1
PLENTY = 10**9
TURNS = 5
TACIT = "tacit"
BARE = "bare endpoint"


@dataclass(frozen=True)
class Case:
    """Uploads of one size, how many of them a turn takes, and the bar of the busy server."""

    name: str
    records: int
    uploads: int
    at_least: float


CASES = (Case("uploads of 1000", 1000, 1000, 0.4), Case("lone reports", 1, 5000, 0.5))
BUSY = 16
CONNECTIONS = (BUSY, 1)
"""Many sites at once, which the bars are about; and one alone, which waits for every commit."""


@dataclass(frozen=True)
class Turn:
    """One server's turn: the load's timing, and the server's seconds of processor."""

    timing: Timing
    processor: float | None


class Site:
    """The client: it draws reports as the SDK does, and keeps the sketch they must end up in."""

    def __init__(self, contributor: Contributor, case: Case) -> None:
        self._contributor = contributor
        self.case = case
        self._generator = np.random.default_rng(case.records)
        self._sketch = contributor.campaign.empty_sketch()
        self.seconds = 0.0
        """Spent by the client before anything is sent."""

    @property
    def records(self) -> int:
        """How many were drawn so far."""
        return self._sketch.n

    def draw(self, uploads: int) -> list[Body]:
        """Check, randomize and write out new records, as `contribute` does before it sends."""
        count = uploads * self.case.records
        probabilities, labels = make_labelled(count, CLASSES, self._generator)
        ids = np.arange(self.records, self.records + count)
        ledger, campaign = self._contributor.ledger, self._contributor.campaign
        began = time.perf_counter()
        records = Records.of(campaign, labels, ids, probabilities=probabilities)
        joined = find_campaign(ledger, self._contributor.digest)
        policy = self._contributor.policy
        draw(ledger, joined, campaign, policy, records, per_upload=self.case.records)
        self.seconds += time.perf_counter() - began
        return self._taken()

    def check(self, owner: Owner) -> None:
        """See that the server's threshold is the library's, for the very reports that were sent."""
        campaign = self._contributor.campaign
        found = owner.threshold(self._contributor.digest).calibration
        if found != self._sketch.calibrate(campaign.channel, campaign.alpha):
            raise RuntimeError("The server's threshold is not that of the reports it was sent.")

    def _taken(self) -> list[Body]:
        outbox = self._contributor.outbox
        waiting = [entry.upload for entry in outbox.waiting()]
        bodies = [Body(upload, outbox.body(upload)) for upload in waiting]
        outbox.mark(dict.fromkeys(waiting, ReportState.ACCEPTED))
        self._sketch += sketch_of(bodies, self._contributor.campaign)
        return bodies


def sketch_of(bodies: Sequence[Body], campaign: Campaign) -> CoverageSketch:
    """The library's sketch of these uploads."""
    sketch = campaign.empty_sketch()
    for body in bodies:
        reports = Reports.of(Upload.model_validate_json(body.content), campaign)
        sketch = sketch.add(reports.evidence, reports.labels)
    return sketch


def enrolled(aggregator: RunningAggregator, owner: Owner, case: Case) -> Invitation:
    """The invitation of a site that has enrolled for a new campaign."""
    campaign = owner.create(
        title=case.name,
        classes=[f"class {number}" for number in range(CLASSES)],
        epsilon=EPSILON,
        alpha=ALPHA,
        planned_n=PLENTY,
        closes=timedelta(days=1),
    )
    invitation = aggregator.invitation(campaign.digest, "site")
    with Api(invitation.url, invitation.token) as api:
        api.enrol(campaign.digest, PLENTY)
    return invitation


@dataclass(frozen=True)
class Scene:
    """Both servers and the load, running; files are on a disk, not in memory as /tmp may be."""

    folder: Path
    aggregator: RunningAggregator
    bare: Bare
    owner: Owner
    loader: ProcessPoolExecutor

    @classmethod
    @contextmanager
    def running(cls) -> Iterator[Self]:
        """All of it, until the block ends."""
        CACHE.mkdir(exist_ok=True)
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=CACHE)))
            aggregator = stack.enter_context(RunningAggregator(folder))
            bare = stack.enter_context(running_bare(folder / "bare.db"))
            owner = stack.enter_context(aggregator.owner())
            loader = ProcessPoolExecutor(1, mp_context=get_context("spawn"))
            yield cls(folder, aggregator, bare, owner, stack.enter_context(loader))

    @contextmanager
    def case(self, case: Case) -> Iterator[tuple[dict[str, Server], Site]]:
        """A campaign of its own for a case, with a site that has joined it."""
        invitation = enrolled(self.aggregator, self.owner, case)
        policy = Policy(may_leave={"probabilities"}, max_epsilon=EPSILON)
        home = self.folder / f"site {case.records}"
        with Contributor.join(invitation, home, policy) as contributor:
            tacit = Tacit(self.aggregator.pid or 0, invitation)
            yield {TACIT: tacit, BARE: self.bare}, Site(contributor, case)

    def turn(self, server: Server, load: Load) -> Turn:
        """One server's turn."""
        before = processor_seconds(server.pid)
        timing = self.loader.submit(drive, load).result()
        after = processor_seconds(server.pid)
        return Turn(timing, None if before is None or after is None else after - before)


def best_turns(
    scene: Scene, servers: dict[str, Server], site: Site, connections: int, turns: int
) -> dict[str, Turn]:
    """Give both servers the same bodies, turn by turn; the best turn of each counts.

    The first turn is a small one that warms up, and does not count.
    """
    every: dict[str, list[Turn]] = {name: [] for name in servers}
    for number in range(turns + 1):
        bodies = site.draw(site.case.uploads if number else max(1, site.case.uploads // 10))
        for name, server in servers.items():
            load = server.load(bodies, site.records, connections)
            every[name].append(scene.turn(server, load))
    return {name: min(taken[1:], key=_seconds) for name, taken in every.items()}


def _seconds(turn: Turn) -> float:
    return turn.timing.counted


def show(case: Case, connections: int, best: dict[str, Turn]) -> None:
    """Print both servers at one number of connections."""
    bare = best[BARE].timing.counted
    rows = [
        (
            name,
            f"{case.uploads / turn.timing.answered:,.0f}",
            f"{case.uploads / turn.timing.counted:,.0f}",
            f"{case.uploads * case.records / turn.timing.counted:,.0f}",
            f"{bare / turn.timing.counted:.2f}",
            "-" if turn.processor is None else f"{turn.processor / case.uploads * 1e3:.2f}",
            f"{turn.timing.own / turn.timing.answered:.0%}",
        )
        for name, turn in best.items()
    ]
    columns = (
        "server",
        "answered/s",
        "counted/s",
        "records/s",
        "of bare",
        "processor ms each",
        "load busy",
    )
    title = f"{case.name}, k = {CLASSES}, connections: {connections} (best of turns)"
    show_table(title, columns, rows)


def figures_of(case: Case, connections: int, best: dict[str, Turn]) -> dict[str, float]:
    """The figures of one table."""
    figures: dict[str, float] = {}
    for name, turn in best.items():
        place = f"{case.name}, connections={connections}: {name}"
        figures[f"{place}, uploads/s"] = case.uploads / turn.timing.counted
        figures[f"{place}, answered/s"] = case.uploads / turn.timing.answered
        if turn.processor is not None:
            figures[f"{place}, processor ms/upload"] = turn.processor / case.uploads * 1e3
    return figures


def measure(quick: bool) -> Report:
    """Measure every case at every number of connections, and check what came out."""
    figures: dict[str, float] = {}
    bars: list[Bar] = []
    with Scene.running() as scene:
        for full in CASES:
            case = replace(full, uploads=20) if quick else full
            with scene.case(case) as (servers, site):
                for connections in CONNECTIONS:
                    progress(f"{case.name}, connections: {connections}")
                    best = best_turns(scene, servers, site, connections, 1 if quick else TURNS)
                    show(case, connections, best)
                    figures |= figures_of(case, connections, best)
                    if connections == BUSY:
                        ratio = _seconds(best[BARE]) / _seconds(best[TACIT])
                        bars.append(Bar(f"{case.name}: {TACIT} / {BARE}", ratio, case.at_least))
                site.check(scene.owner)
                rate = figures[f"{case.name}: client, records/s"] = site.records / site.seconds
            each = 1e6 / rate
            print(f"\n  The client, before it sends: {rate:,.0f} records/s ({each:.2f} µs each)")
    return Report("ingest", figures, tuple(bars))


if __name__ == "__main__":
    main(measure)
