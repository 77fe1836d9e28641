"""Where a joined campaign stands: by the ledger's word, and by the server's if it answers."""

from dataclasses import asdict, dataclass
from typing import Any

from rich.console import RenderableType

from tacit.protocol import CampaignStatus
from tacit_client import Contributor, Home, Ledger, Membership, Outbox
from tacit_client.api import Api
from tacit_client.cli.exits import sentence
from tacit_client.cli.output import many, short, table
from tacit_client.cli.own_part import OwnPart, own_part
from tacit_client.cli.registering import Run
from tacit_client.cli.round_words import rounds_of
from tacit_client.cli.words import as_fields
from tacit_client.errors import LedgerInUse, TacitClientError
from tacit_client.ledger import JoinedCampaign, find_campaign, joined_campaigns
from tacit_client.ledger.campaigns import not_joined
from tacit_client.ledger.dealt import RoundHere, rounds_here
from tacit_client.transport import Network


@dataclass(frozen=True)
class Standing:
    """One joined campaign: what the ledger says, and the server, if it could be asked."""

    digest: str
    title: str
    membership: Membership
    records: dict[str, int]
    status: CampaignStatus | None
    error: TacitClientError | None
    site: str
    busy: bool
    """Whether another process holds the ledger, and sends or waits."""
    here: tuple[RoundHere, ...] = ()
    """The rounds as the ledger knows them, if the campaign asks in rounds."""

    @property
    def dealt(self) -> int:
        """Records that have a round."""
        return sum(each.dealt for each in self.here)

    @property
    def unanswered(self) -> int:
        """Records that have a round and have not answered in it."""
        return self.dealt - sum(each.answered for each in self.here)

    def server(self) -> str:
        """How the campaign is by the server's word."""
        if self.status is not None:
            return self.status.state
        return "?" if self.membership is Membership.JOINED else "over"

    def waits_for(self) -> str:
        """What is missing, in a sentence."""
        if self.error is not None:
            return sentence(self.error)
        if self.status is None:
            never = f"; {many(self.unanswered, 'record')} never answered" if self.unanswered else ""
            return f"nothing: over for this site{never}"
        if self.records["drawn"] and not self.busy:
            return "what was drawn to be sent: tacit contribute --resend"
        own = self.own_part()
        server = " ".join(self.status.waiting_for) or "nothing"
        return " ".join(part for part in (own.needed, server, own.to_answer) if part)

    def own_part(self) -> OwnPart:
        """What there is to say of this site, if the server could be asked."""
        if self.status is None:
            return OwnPart()
        return own_part(self.status, self.site, self.here, busy=self.busy)

    def rounds(self) -> list[RenderableType]:
        """The rounds of a score campaign as they narrow; unasked, as the ledger knows them."""
        shown = rounds_of(self.status)[1:]
        if self.status is None and self.here:
            shown = [_table(self.here)]
        return ["", f"{short(self.digest)} {self.title}:", *shown] if shown else []

    def fields(self) -> dict[str, Any]:
        """The same for a program."""
        return {
            **(self._rounds_here() if self.here else {}),
            "campaign": self.digest,
            "title": self.title,
            "membership": self.membership,
            "records": self.records,
            "server": None if self.status is None else as_fields(self.status),
            "problem": None if self.error is None else sentence(self.error),
            "waits_for": self.waits_for(),
        }

    def _rounds_here(self) -> dict[str, Any]:
        rounds = [asdict(each) for each in self.here]
        return {"dealt": self.dealt, "unanswered": self.unanswered, "rounds": rounds}


def looking(home: Home) -> Ledger:
    """The ledger, or a look into it while another process holds it."""
    try:
        return Ledger.open(home)
    except LedgerInUse:
        return Ledger.reading(home)


def digests_of(run: Run, beginning: str | None) -> list[str]:
    """The joined campaigns whose digests begin so."""
    with looking(run.home) as ledger:
        found = joined_campaigns(ledger, beginning or "")
        if beginning and not found:
            raise not_joined(ledger)
    return [each.digest for each in found]


def standing_of(run: Run, digest: str) -> Standing:
    """Ask the server of one campaign, and mark in the ledger what it says.

    While another process holds the ledger, it is that one's part to mark.
    """
    network = Network(attempts=2, ca_bundle=run.ca_bundle)
    try:
        contributor = Contributor.open(digest, run.home, network=network)
    except LedgerInUse:
        return _meanwhile(run.home, digest, network)
    with contributor:
        found: CampaignStatus | None = None
        failed: TacitClientError | None = None
        if contributor.membership is Membership.JOINED:
            try:
                found = contributor.refresh()
            except TacitClientError as error:
                failed = error
        joined = find_campaign(contributor.ledger, digest)
        return _stands(contributor.ledger, joined, found, failed, busy=False)


def _meanwhile(home: Home, digest: str, network: Network) -> Standing:
    with Ledger.reading(home) as ledger:
        joined = find_campaign(ledger, digest)
        found: CampaignStatus | None = None
        failed: TacitClientError | None = None
        if joined.token is not None:
            try:
                with Api(joined.url, joined.token, network) as api:
                    found = api.status(digest)
            except TacitClientError as error:
                failed = error
        return _stands(ledger, joined, found, failed, busy=True)


def _stands(
    ledger: Ledger,
    joined: JoinedCampaign,
    status: CampaignStatus | None,
    error: TacitClientError | None,
    *,
    busy: bool,
) -> Standing:
    counts = Outbox(ledger, joined.number).counts()
    return Standing(
        digest=joined.digest,
        title=joined.document().title,
        membership=joined.state,
        records={state.value: count for state, count in counts.items()},
        status=status,
        error=error,
        site=joined.site,
        busy=busy,
        here=rounds_here(ledger, joined.number),
    )


def _table(rounds: tuple[RoundHere, ...]) -> RenderableType:
    headings = ("round", "asked: at most", "records", "answered", "late", "unanswered")
    rows = [
        (
            each.round + 1,
            "-" if each.threshold is None else f"{each.threshold:.6g}",
            f"{each.dealt:,}",
            f"{each.answered:,}",
            f"{each.late:,}",
            f"{each.dealt - each.answered:,}",
        )
        for each in rounds
    ]
    return table(headings, rows, numbers=",".join(headings))
