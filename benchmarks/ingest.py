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

from benchmarks.contestants import Bare, Body, Server, enrolled, processor_seconds, running_bare
from benchmarks.harness import Bar, Report, main, progress, show_table
from benchmarks.load import Timing, drive
from benchmarks.peers.environment import CACHE
from benchmarks.synthetic import EPSILON, make_labelled
from tacit.conformal import CoverageSketch
from tacit.protocol import Campaign, Reports, Upload
from tacit_client import Contributor, Owner, Policy
from tacit_client.drawing import draw
from tacit_client.ledger import find_campaign
from tacit_client.records import Records
from tacit_client.testing import RunningAggregator

CLASSES = 10
ALPHA = 0.1
PLENTY = 10**9
TURNS = 5
TACIT = "tacit"
BARE = "bare endpoint"
BUSY = 16
CONNECTIONS = (BUSY, 4, 1)
"""Many sites at once, which the bars are about; few; and one alone, which waits for each commit."""


@dataclass(frozen=True)
class Case:
    """Uploads of one size, how many of them a turn takes, and the bar of the busy server."""

    name: str
    records: int
    uploads: int
    at_least: float


CASES = (Case("uploads of 1000", 1000, 1000, 0.4), Case("lone reports", 1, 5000, 0.5))


@dataclass(frozen=True)
class Turn:
    """One server's turn: the load's timing, and the server's seconds of processor."""

    timing: Timing
    processor: float | None


@dataclass(frozen=True)
class Drawn:
    """What a site has drawn: its bodies, the sketch they belong in, and the client's seconds."""

    bodies: list[Body]
    sketch: CoverageSketch
    seconds: float


@dataclass(frozen=True)
class Stage:
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

    def campaign(self, title: str) -> str:
        """A new campaign, by its digest."""
        created = self.owner.create(
            title=title,
            classes=[f"class {number}" for number in range(CLASSES)],
            epsilon=EPSILON,
            alpha=ALPHA,
            planned_n=PLENTY,
            closes=timedelta(days=1),
        )
        return created.digest

    def draw(self, campaign: str, case: Case) -> Drawn:
        """The bodies of a case, as a site that joined the campaign draws them."""
        invitation = self.aggregator.invitation(campaign, "drawing")
        policy = Policy(may_leave={"probabilities"}, max_epsilon=EPSILON)
        home = self.folder / f"site-{case.records}"
        with Contributor.join(invitation, home, policy) as contributor:
            return draw_bodies(contributor, case)

    def turn(self, server: Server, bodies: Sequence[Body], connections: int) -> Turn:
        """One server's turn."""
        load = server.load(bodies, connections)
        before = processor_seconds(server.pid)
        timing = self.loader.submit(drive, load).result()
        after = processor_seconds(server.pid)
        return Turn(timing, None if before is None or after is None else after - before)


class Trial:
    """One case: a campaign of its own, and the same bodies for both servers turn by turn."""

    def __init__(self, stage: Stage, case: Case) -> None:
        self._stage = stage
        self._campaign = stage.campaign(case.name)
        self._sites = 0
        self.case = case
        self.drawn = stage.draw(self._campaign, case)

    def turn(self, connections: int) -> dict[str, Turn]:
        """A turn of each; on our side it is a new site's, so that nothing was seen before."""
        n = self.drawn.sketch.n
        site, before = f"site {self._sites}", self._sites * n
        tacit = enrolled(self._stage.aggregator, self._campaign, site, records=n, before=before)
        self._sites += 1
        servers: dict[str, Server] = {TACIT: tacit, BARE: self._stage.bare}
        return {
            name: self._stage.turn(server, self.drawn.bodies, connections)
            for name, server in servers.items()
        }

    def best(self, connections: int, turns: int) -> dict[str, Turn]:
        """The best turn of each."""
        taken = [self.turn(connections) for _ in range(turns)]
        return {
            name: min((turn[name] for turn in taken), key=lambda turn: turn.timing.counted)
            for name in (TACIT, BARE)
        }

    def check(self) -> None:
        """See that the server's threshold is the library's for the very reports it was sent."""
        campaign = self._stage.owner.campaign(self._campaign).document
        sketch = sum([self.drawn.sketch] * self._sites, start=campaign.empty_sketch())
        found = self._stage.owner.threshold(self._campaign).calibration
        if found != sketch.calibrate(campaign.channel, campaign.alpha):
            raise RuntimeError("The server's threshold is not that of the reports it was sent.")


def draw_bodies(contributor: Contributor, case: Case) -> Drawn:
    """Check, randomize, write out and note down records, as `contribute` does before it sends."""
    count = case.uploads * case.records
    probabilities, labels = make_labelled(count, CLASSES, np.random.default_rng(count))
    ids = np.arange(count)
    ledger, campaign = contributor.ledger, contributor.campaign
    began = time.perf_counter()
    records = Records.of(campaign, labels, ids, probabilities=probabilities)
    joined = find_campaign(ledger, contributor.digest)
    draw(ledger, joined, campaign, contributor.policy, records, per_upload=case.records)
    seconds = time.perf_counter() - began
    outbox = contributor.outbox
    bodies = [Body(entry.upload, outbox.body(entry.upload)) for entry in outbox.waiting()]
    return Drawn(bodies, sketch_of(bodies, campaign), seconds)


def sketch_of(bodies: Sequence[Body], campaign: Campaign) -> CoverageSketch:
    """The library's sketch of these uploads."""
    uploads = [Upload.model_validate_json(body.content) for body in bodies]
    reports = [Reports.of(upload, campaign) for upload in uploads]
    probabilities = np.concatenate([one.evidence for one in reports])
    labels = np.concatenate([one.labels for one in reports])
    return campaign.empty_sketch().add(probabilities, labels)


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
            "-" if turn.processor is None else f"{turn.processor / case.uploads * 1e3:.2f} ms",
            f"{turn.timing.own / turn.timing.answered:.0%}",
        )
        for name, turn in best.items()
    ]
    columns = ("server", "answered/s", "done/s", "records/s", "of bare", "processor", "load busy")
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
    with Stage.running() as stage:
        for full in CASES:
            case = replace(full, uploads=20) if quick else full
            progress(f"{case.name}: drawing")
            trial = Trial(stage, case)
            trial.turn(BUSY)  # warms up
            for connections in CONNECTIONS:
                progress(f"{case.name}: connections: {connections}")
                best = trial.best(connections, 1 if quick else TURNS)
                show(case, connections, best)
                figures |= figures_of(case, connections, best)
                if connections == BUSY:
                    ratio = best[BARE].timing.counted / best[TACIT].timing.counted
                    bars.append(Bar(f"{case.name}: {TACIT} / {BARE}", ratio, case.at_least))
            trial.check()
            rate = trial.drawn.sketch.n / trial.drawn.seconds
            figures[f"{case.name}: client, records/s"] = rate
            print(f"\n  The client, before it sends: {rate:,.0f} records/s")
    return Report("ingest", figures, tuple(bars))


if __name__ == "__main__":
    main(measure)
