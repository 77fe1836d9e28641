"""A site that dies in the middle of a contribution, and comes back."""

from collections.abc import Callable
from dataclasses import dataclass

from tacit_client import ReportState
from tacit_client.demo.errors import DemoFailed
from tacit_client.demo.processes import Command, Killed
from tacit_client.demo.sites import Site
from tacit_client.demo.wire import Exchange


@dataclass(frozen=True)
class Crash:
    """A contribution that was killed in the middle, and what its second run did. In records."""

    site: str
    round: int | None
    """Of score campaigns: in which it was killed, counted from 0."""
    drawn: int
    """In the ledger when the process was dead."""
    acknowledged: int
    """Of these, with a receipt."""
    stored_unseen: int
    """Stored by the server, and the site died before the receipt reached it."""
    drawn_again: int
    """Drawn by the second run: of labels it must be none, of answers those of later rounds."""
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


def nothing() -> None:
    """What happens while a site is dead, unless something is said."""


class CrashingSite:
    """Ends its site's process when the answer to one of its uploads is on the way."""

    def __init__(self, site: Site, at_upload: int, records_per_upload: int = 1000) -> None:
        self.site = site
        self._at_upload = at_upload
        self._options = ("--records-per-upload", str(records_per_upload))
        self._process: Command | None = None
        self._uploads: list[Exchange] = []

    def cut(self, exchange: Exchange) -> bool:
        """Kill the process just before it would learn that its upload was stored."""
        if not exchange.is_upload:
            return False
        self._uploads.append(exchange)
        if len(self._uploads) != self._at_upload or self._process is None:
            return False
        self._process.kill()
        return True

    def contribute(self, campaign: str, while_dead: Callable[[], None] = nothing) -> Crash:
        """Contribute, die, and run the same command again."""
        self._process = self.site.contribute(campaign, *self._options)
        try:
            self._process.finish()
        except Killed:
            pass
        else:
            raise DemoFailed(f"{self.site.name} had finished before it could be killed.")
        before = self.site.outbox(campaign)
        lost = self._uploads[-1]
        (unseen,) = [entry for entry in before if lost.path.endswith(entry.upload)]
        while_dead()
        again = self.site.contribute(campaign, *self._options).finish()
        resent = [seen for seen in self._uploads if seen.path == lost.path][1:]
        receipts = [entry.records for entry in before if entry.state is not ReportState.DRAWN]
        return Crash(
            site=self.site.name,
            round=unseen.round,
            drawn=sum(entry.records for entry in before),
            acknowledged=sum(receipts),
            stored_unseen=unseen.records,
            drawn_again=again["drawn"],
            already=again["already"],
            resent_alike=[seen.body for seen in resent] == [lost.body],
            drawn_in_all=sum(entry.records for entry in self.site.outbox(campaign)),
        )
