"""The sites: each with its own folder, file, policy, ledger and processes."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tacit_client import Contributor, Home, Membership, Policy, ReportState
from tacit_client.demo.data import Records
from tacit_client.demo.errors import DemoFailed
from tacit_client.demo.processes import Command, Killed, Processes, private_file
from tacit_client.demo.wire import Exchange


class Site:
    """A site on this machine that shares nothing with the others but the server's address."""

    def __init__(self, name: str, records: Records, folder: Path, processes: Processes) -> None:
        self.name = name
        self.records = records
        self.home = Home(folder / "home")
        self._file = folder / "records.npz"
        self._invitation = folder / "invitation.txt"
        self._processes = processes

    def settle(self, most_epsilon: float) -> None:
        """Write the site's file of records, and its policy: features may leave, up to this ε."""
        self.home.create()
        self.home.save_policy(Policy(may_leave=frozenset({"features"}), max_epsilon=most_epsilon))
        names = [f"{self.name}-{number:04d}" for number in range(len(self.records))]
        np.savez(self._file, ids=names, labels=self.records.labels, features=self.records.images)

    def receive(self, invitation: str) -> None:
        """Keep an invitation that was handed over."""
        private_file(self._invitation, invitation)

    def join(self) -> dict[str, Any]:
        """`tacit join`, as a process."""
        return self._processes.start("join", str(self._invitation), *self._at_home).finish()

    def contribute(self, *options: str) -> Command:
        """`tacit contribute`, as a process that has been started."""
        return self._processes.start("contribute", str(self._file), *options, *self._at_home)

    def settled(self) -> bool:
        """`tacit status`: writes down what was counted, and then erases the campaign's key."""
        (campaign,) = self._processes.start("status", *self._at_home).finish()["campaigns"]
        return bool(campaign["membership"] == Membership.ENDED)

    def ledger(self) -> dict[ReportState, int]:
        """How many records are in each state, by the site's own ledger."""
        with Contributor.open(home=self.home) as contributor:
            return contributor.outbox.counts()

    @property
    def _at_home(self) -> tuple[str, str]:
        return "--home", str(self.home.path)


@dataclass(frozen=True)
class Crash:
    """A contribution that was killed in the middle, and what its second run did. In records."""

    site: str
    drawn: int
    """In the ledger when the process was dead."""
    acknowledged: int
    """Of these, with a receipt."""
    stored_unseen: int
    """Stored by the server, and the site died before the receipt reached it."""
    drawn_again: int
    """Drawn by the second run: must be none."""
    already: int
    """Found in the ledger by the second run."""
    resent_alike: bool
    """Whether the upload without a receipt was sent again byte for byte."""
    drawn_in_all: int
    """In the ledger at the end."""

    @property
    def unsent(self) -> int:
        """Drawn, and not sent when the process died."""
        return self.drawn - self.acknowledged - self.stored_unseen


class CrashingSite:
    """Ends its site's process when the answer to its second upload is on the way."""

    UPLOADS_BEFORE = 2
    RECORDS_PER_UPLOAD = 100

    def __init__(self, site: Site) -> None:
        self.site = site
        self._process: Command | None = None
        self._uploads: list[Exchange] = []

    def cut(self, exchange: Exchange) -> bool:
        """Kill the process just before it would learn that its upload was stored."""
        if not exchange.is_upload:
            return False
        self._uploads.append(exchange)
        if len(self._uploads) != self.UPLOADS_BEFORE or self._process is None:
            return False
        self._process.kill()
        return True

    def contribute(self) -> Crash:
        """Contribute, die, and run the same command again."""
        options = ("--records-per-upload", str(self.RECORDS_PER_UPLOAD))
        self._process = self.site.contribute(*options)
        try:
            self._process.finish()
        except Killed:
            pass
        else:
            raise DemoFailed(f"{self.site.name} had finished before it could be killed.")
        before = self.site.ledger()
        lost = self._uploads[-1]
        again = self.site.contribute(*options).finish()
        resent = [seen for seen in self._uploads if seen.path == lost.path][1:]
        return Crash(
            site=self.site.name,
            drawn=sum(before.values()),
            acknowledged=before[ReportState.ACCEPTED],
            stored_unseen=self.RECORDS_PER_UPLOAD,
            drawn_again=again["drawn"],
            already=again["already"],
            resent_alike=[seen.body for seen in resent] == [lost.body],
            drawn_in_all=sum(self.site.ledger().values()),
        )
