"""The sites: each with its own folder, file, policy, ledger and processes."""

from pathlib import Path
from typing import Any

import numpy as np

from tacit_client import Contributor, Home, Ledger, Membership, OutboxEntry, Policy
from tacit_client.demo.data import Records
from tacit_client.demo.processes import Command, Processes, private_file
from tacit_client.ledger import spending


class Site:
    """A site on this machine that shares nothing with the others but the server's address."""

    def __init__(self, name: str, records: Records, folder: Path, processes: Processes) -> None:
        self.name = name
        self.records = records
        self.home = Home(folder / "home")
        self._folder = folder
        self._file = folder / "records.npz"
        self._processes = processes

    def settle(self, most_epsilon: float) -> None:
        """Write the site's file of records, and its policy: features may leave, up to this ε."""
        self.home.create()
        self.home.save_policy(Policy(may_leave=frozenset({"features"}), max_epsilon=most_epsilon))
        names = [f"{self.name}-{number:04d}" for number in range(len(self.records))]
        np.savez(self._file, ids=names, labels=self.records.labels, features=self.records.images)

    def receive(self, campaign: str, invitation: str) -> None:
        """Keep an invitation that was handed over."""
        private_file(self._invitation(campaign), invitation)

    def join(self, campaign: str) -> dict[str, Any]:
        """`tacit join`, as a process."""
        invitation = str(self._invitation(campaign))
        return self._processes.start("join", invitation, *self._at_home).finish()

    def contribute(self, campaign: str, *options: str) -> Command:
        """`tacit contribute`, as a process that has been started."""
        asked = ("--campaign", campaign, *options)
        return self._processes.start("contribute", str(self._file), *asked, *self._at_home)

    def settled(self) -> bool:
        """`tacit status`: writes down what was counted, and then erases the campaigns' keys."""
        campaigns = self._processes.start("status", *self._at_home).finish()["campaigns"]
        return all(campaign["membership"] == Membership.ENDED for campaign in campaigns)

    def outbox(self, campaign: str) -> list[OutboxEntry]:
        """The uploads of a campaign, by the site's own ledger."""
        with Contributor.open(campaign, home=self.home) as contributor:
            return contributor.outbox.entries()

    def spent(self) -> float:
        """The most ε of one person over all campaigns, by the site's own ledger."""
        with Ledger.open(self.home) as ledger:
            return spending(ledger).most_epsilon

    def _invitation(self, campaign: str) -> Path:
        return self._folder / f"{campaign[:12]}.invitation"

    @property
    def _at_home(self) -> tuple[str, str]:
        return "--home", str(self.home.path)
