"""Real processes on one stage: an aggregator that may die, sites with ledgers, an owner."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.protocol import Invitation, LabelCampaign, Opened, Role
from tacit_client import Contributor, Network, Owner, Policy
from tests.support.aggregator import PATIENCE, AggregatorProcess, migrated
from tests.support.exactly_once import CLASSES, DrawnUpload, drawn_uploads, markers
from tests.support.killable import Kill
from tests.support.postgres import fresh_url
from tests.support.relay import Faults, Relay

ROOT = Path(__file__).parents[2]
KILLED = -9
PATIENT = Network(attempts=100, longest_wait=0.5)
POLICY = Policy(may_leave=frozenset({"probabilities"}))


def command(module: str, *arguments: str, kill: Kill | None = None) -> tuple[str, ...]:
    """The arguments of Python that run a module, ended at a point if one is given."""
    if kill is None:
        return ("-m", module, *arguments)
    return ("-m", "tests.support.killable", str(kill), "--", module, *arguments)


def environment(**variables: str) -> dict[str, str]:
    """This process's environment without the settings of whoever runs the tests."""
    others = {k: v for k, v in os.environ.items() if not k.startswith("TACIT_")}
    return {**others, "PYTHONPATH": str(ROOT), **variables}


def run(
    module: str, *arguments: str, kill: Kill | None = None, variables: Mapping[str, str] = {}
) -> "subprocess.CompletedProcess[str]":
    """Run a command of the product to its end, whichever that is."""
    return subprocess.run(
        [sys.executable, *command(module, *arguments, kill=kill)],
        env=environment(**variables),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


@dataclass
class Service:
    """An aggregator behind a relay: it can be killed and come back, and clients find it."""

    folder: Path
    relay: Relay
    backend: str = "sqlite"
    aggregator: AggregatorProcess = field(init=False)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        settings = migrated(self.folder, database_url=fresh_url(self.backend, self.folder))
        self.aggregator = AggregatorProcess(settings, environment=environment())
        self.key = self.aggregator.key

    @property
    def url(self) -> str:
        """Where clients find it."""
        return self.relay.url

    @property
    def database(self) -> Path:
        """Its SQLite file."""
        return self.aggregator.database_file

    @property
    def database_url(self) -> str:
        """Where its database is, of whichever kind."""
        return self.aggregator.settings.database_url

    def start(self, kill: Kill | None = None) -> None:
        """Start it, to be killed at a point if one is given."""
        self.aggregator.port = 0
        self.aggregator.command = command("tacit_aggregator", "serve", kill=kill)
        self.aggregator.start()
        self.relay.target = self.aggregator.port
        self.aggregator.url = self.relay.url

    def wait_for_death(self) -> None:
        """It must reach its point."""
        process = self.aggregator.process
        assert process is not None
        assert process.wait(PATIENCE) == KILLED
        self.relay.target = None

    @contextmanager
    def revived(self) -> Iterator[None]:
        """While this lasts, an aggregator that is killed at its point comes back, once.

        At the end it must have been killed.
        """
        over = threading.Event()
        revival = threading.Thread(target=self._revive, args=(over,))
        revival.start()
        try:
            yield
        except BaseException:
            over.set()
            self.stop()
            raise
        finally:
            revival.join(PATIENCE)
        assert not revival.is_alive(), "the aggregator never reached the point"
        process = self.aggregator.process
        assert process is not None
        assert process.poll() is None, "the aggregator did not come back"

    def _revive(self, over: threading.Event) -> None:
        self.wait_for_death()
        if not over.is_set():
            self.start()

    def stop(self) -> None:
        """End it, if it runs."""
        if self.aggregator.process is not None:
            self.aggregator.kill()

    def owner(self) -> Owner:
        """The owner of the campaigns, who waits for an aggregator that is away."""
        token = self.aggregator.token(Role.OWNER, "owner")
        return Owner(self.url, token, self.key, network=PATIENT)

    def operate(
        self, *arguments: str, kill: Kill | None = None
    ) -> "subprocess.CompletedProcess[str]":
        """Run one of the operator's commands on its database."""
        variables = {"TACIT_DATABASE_URL": f"sqlite:///{self.database}", "TACIT_PORT": "0"}
        return run("tacit_aggregator", *arguments, kill=kill, variables=variables)


@contextmanager
def service(
    folder: Path, faults: Faults | None = None, backend: str = "sqlite"
) -> Iterator[Service]:
    """A migrated service that is not started yet; it is gone afterwards."""
    with Relay(faults) as relay:
        made = Service(folder, relay, backend)
        try:
            yield made
        finally:
            made.stop()


def create_campaign(owner: Owner, planned_n: int, **terms: Any) -> Opened[LabelCampaign]:
    """A campaign of two classes for markers."""
    return owner.create(
        title="markers",
        classes=CLASSES,
        epsilon=1.0,
        alpha=0.1,
        planned_n=planned_n,
        **{"closes": timedelta(days=1), "delta": 0.1, **terms},
    )


@dataclass
class Site:
    """A site with a home of its own, that runs `tacit` as a process."""

    folder: Path
    invitation: Invitation
    first: int = 0
    """The number of its first record, and so of its first marker."""
    seen: dict[str, bytes] = field(default_factory=dict)
    """Every upload that was ever seen in its ledger: none may change or come again."""

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.invitation_file = self.folder / "invitation.txt"
        self.invitation_file.write_text(self.invitation.to_text(), encoding="utf-8")

    @property
    def home(self) -> Path:
        """Its home."""
        return self.folder / "home"

    @property
    def ledger(self) -> Path:
        """Its ledger's file."""
        return self.home / "ledger.db"

    @property
    def bundle(self) -> Path:
        """All that waits, as `draw_here` wrote it last."""
        return self.folder / "bundle.zip"

    def markers(self, count: int) -> NDArray[np.float64]:
        """The evidence of its first records."""
        return markers(self.first, count)

    def file(self, start: int, stop: int) -> Path:
        """A file with its records from start to stop."""
        path = self.folder / f"records-{start}-{stop}.npz"
        np.savez(path, **self._columns(start, stop))
        return path

    def tacit(
        self, *arguments: str, kill: Kill | None = None
    ) -> "subprocess.CompletedProcess[str]":
        """Run a command of the client in this home."""
        return run("tacit_client.cli", *arguments, "--home", str(self.home), kill=kill)

    def begin(self, *arguments: str, kill: Kill | None = None) -> "subprocess.Popen[bytes]":
        """Start a command of the client in this home, and do not wait for it.

        What it says is in output.txt of the site's folder.
        """
        asked = command("tacit_client.cli", *arguments, "--home", str(self.home), kill=kill)
        with (self.folder / "output.txt").open("ab") as output:
            return subprocess.Popen(
                [sys.executable, *asked],
                env=environment(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def join(self, kill: Kill | None = None) -> "subprocess.CompletedProcess[str]":
        """Join by command."""
        options = ("--may-leave", "probabilities")
        return self.tacit("join", str(self.invitation_file), *options, kill=kill)

    def contribute(
        self, start: int, stop: int, kill: Kill | None = None
    ) -> "subprocess.CompletedProcess[str]":
        """Contribute records by command."""
        return self.tacit("contribute", str(self.file(start, stop)), kill=kill)

    def join_here(self) -> None:
        """Join without a process of its own."""
        with Contributor.join(self.invitation, self.home, POLICY, network=PATIENT) as contributor:
            contributor.ledger.home.save_policy(POLICY)

    def contribute_here(self, start: int, stop: int) -> None:
        """Contribute without a process of its own."""
        with Contributor.open(home=self.home, network=PATIENT) as contributor:
            contributor.contribute(**self._columns(start, stop))

    def draw_here(self, start: int, stop: int) -> None:
        """Draw records without sending them: one upload more that waits."""
        with Contributor.open(home=self.home) as contributor:
            contributor.export(self.bundle, **self._columns(start, stop))

    def bodies(self) -> list[bytes]:
        """All uploads ever drawn; those seen before must be unchanged and still there."""
        for upload in self.uploads():
            if upload.body is not None:
                assert self.seen.setdefault(upload.upload, upload.body) == upload.body
        assert {upload.upload for upload in self.uploads()} == set(self.seen)
        return list(self.seen.values())

    def uploads(self) -> list[DrawnUpload]:
        """The uploads in its ledger."""
        return drawn_uploads(self.ledger, self.invitation.campaign)

    def _columns(self, start: int, stop: int) -> dict[str, Any]:
        labels = np.arange(start, stop) % len(CLASSES)
        ids = [f"record-{number}" for number in range(start, stop)]
        return {
            "labels": labels,
            "ids": ids,
            "probabilities": markers(self.first + start, stop - start),
        }


def finished(run_again: Any, most: int = 5) -> None:
    """Run a command until it succeeds, no more often than `most` times."""
    endings = []
    for _ in range(most):
        ended = run_again()
        if ended.returncode == 0:
            return
        endings.append((ended.returncode, ended.stderr))
    raise AssertionError(f"the command never succeeded: {endings}")
