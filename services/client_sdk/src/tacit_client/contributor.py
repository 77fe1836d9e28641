"""A site's side of a campaign: join, contribute, resume, leave."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self, Unpack

from numpy.typing import ArrayLike

from tacit.protocol import Campaign, CampaignState, CampaignStatus, Invitation, Signed
from tacit_client import airgap, joining, sending
from tacit_client.api import Api
from tacit_client.drawing import Drawn, check_allowed, count_fresh, draw
from tacit_client.errors import AlreadyLeft, CampaignEnded, NotYetOpen
from tacit_client.home import Home
from tacit_client.ledger import JoinedCampaign, Ledger, Membership, find_campaign
from tacit_client.notice import notice
from tacit_client.outbox import Outbox, ReportState
from tacit_client.policy import Policy
from tacit_client.preview import Preview, preview
from tacit_client.progress import OnProgress, silent
from tacit_client.records import GivenEvidence, Names, Records
from tacit_client.transport import Network


@dataclass(frozen=True)
class Contribution:
    """What a call did, in records; `uploads` is how many were sent."""

    records: int
    """Given to this call."""
    drawn: int
    """Randomized now, for the first and only time."""
    already: int
    """Drawn by an earlier call; not drawn again."""
    accepted: int
    """Sent by this call and stored by the server."""
    late: int
    """Sent by this call after the campaign took no more."""
    uploads: int


class Contributor:
    """One campaign, as one site. It holds the ledger until `close`; use it in a `with` block."""

    def __init__(
        self, ledger: Ledger, joined: JoinedCampaign, policy: Policy, network: Network | None
    ) -> None:
        self._ledger = ledger
        self._joined = joined
        self._network = network
        self.policy = policy
        self.campaign: Campaign = joined.document()

    @classmethod
    def join(
        cls,
        invitation: Invitation | str,
        home: Home | str | Path | None = None,
        policy: Policy | None = None,
        *,
        document: Signed | str | Path | None = None,
        network: Network | None = None,
    ) -> Self:
        """Join a campaign: verify it against invitation and policy, then draw its key and store it.

        If anything is refused, nothing is drawn. Joining again keeps the key and takes the newer
        token. `document` is a signed campaign that was carried here (`fetch_campaign`): then
        nothing is sent. Without `policy` it is the one in the home.
        """
        asked = joining.read_invitation(invitation)
        carried = None if document is None else joining.read_signed(document)
        place = Home.of(home)
        chosen = place.policy() if policy is None else policy
        ledger = Ledger.open(place)
        try:
            joined = joining.join(ledger, asked, chosen, document=carried, network=network)
            return cls(ledger, joined, chosen, network)
        except BaseException:
            ledger.close()
            raise

    @classmethod
    def open(
        cls,
        campaign: str | None = None,
        home: Home | str | Path | None = None,
        policy: Policy | None = None,
        *,
        network: Network | None = None,
    ) -> Self:
        """A campaign joined before, by its digest or the beginning of it; None: the only one."""
        place = Home.of(home)
        chosen = place.policy() if policy is None else policy
        ledger = Ledger.open(place)
        try:
            return cls(ledger, find_campaign(ledger, campaign), chosen, network)
        except BaseException:
            ledger.close()
            raise

    def close(self) -> None:
        """Let others have the ledger."""
        self._ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Contributor(campaign={self.digest}, site={self.site!r})"

    @property
    def digest(self) -> str:
        """The campaign's digest."""
        return self._joined.digest

    @property
    def site(self) -> str:
        """The name this site contributes under."""
        return self._joined.site

    @property
    def membership(self) -> Membership:
        """Joined, left or ended."""
        return self._joined.state

    @property
    def url(self) -> str:
        """The server's address."""
        return self._joined.url

    @property
    def notice(self) -> str:
        """What leaves the site and what ε protects, in sentences; to be read before sending."""
        return notice(self.campaign, self.url)

    @property
    def ledger(self) -> Ledger:
        """The ledger that this contributor holds."""
        return self._ledger

    @property
    def outbox(self) -> Outbox:
        """The campaign's uploads: what was drawn and what became of it."""
        return Outbox(self._ledger, self._joined.number)

    def contribute(
        self,
        labels: ArrayLike,
        ids: Names,
        persons: Names | None = None,
        *,
        on_progress: OnProgress | None = None,
        **evidence: Unpack[GivenEvidence],
    ) -> Contribution:
        """Check all records, draw those never drawn, and send everything that waits.

        Labels are class indices or class names; ids name the records, persons whose they are. With
        them go `probabilities=` or `features=`, as the campaign asks. After a crash call it
        again with the same records, or `resend`: nothing is drawn twice.
        """
        records = Records.of(self.campaign, labels, ids, persons, **evidence)
        with self._api() as api:
            status = api.status(self.digest)
            if status.state is CampaignState.WAITING:
                raise NotYetOpen(opens_in=status.opens_in)
            if any(site.left for site in status.sites if site.site == self.site):
                raise AlreadyLeft
            if status.state is CampaignState.OPEN:
                drawn = self._draw(records)
                return self._send(api, len(records), drawn, on_progress or silent)
            return self._finish(api, records, on_progress or silent)

    def resend(self, on_progress: OnProgress | None = None) -> Contribution:
        """Send what waits in the outbox, byte for byte as it was drawn."""
        with self._api() as api:
            return self._send(api, 0, Drawn(0, 0), on_progress or silent)

    def preview(
        self,
        labels: ArrayLike,
        ids: Names,
        persons: Names | None = None,
        **evidence: Unpack[GivenEvidence],
    ) -> Preview:
        """Exactly what `contribute` would send; nothing is drawn, stored or sent."""
        records = Records.of(self.campaign, labels, ids, persons, **evidence)
        return preview(
            self._ledger,
            self._joined,
            self.campaign,
            self.policy,
            records,
            per_upload=self._per_upload,
        )

    def status(self) -> CampaignStatus:
        """Where the campaign stands, by the server's word."""
        with self._api() as api:
            return api.status(self.digest)

    def refresh(self) -> CampaignStatus:
        """Mark in the ledger what was counted or dropped; erase the key once all is over."""
        with self._api() as api:
            status = sending.refresh(self._ledger, self._joined, api)
        self._reread()
        return status

    def leave(self, *, offline: bool = False) -> None:
        """Take no further part: tell the server, then erase the campaign's key and bodies.

        What was accepted stays counted, and what was spent stays spent. It cannot be joined again.
        `offline` erases without telling the server, to which the site stays enrolled.
        """
        if self.membership is not Membership.JOINED:
            return
        if offline:
            sending.leave(self._ledger, self._joined, None)
        else:
            with self._api() as api:
                sending.leave(self._ledger, self._joined, api)
        self._reread()

    def export(
        self,
        path: str | Path,
        labels: ArrayLike,
        ids: Names,
        persons: Names | None = None,
        **evidence: Unpack[GivenEvidence],
    ) -> Contribution:
        """Draw as `contribute` does, and write all that waits to a file for `submit` elsewhere."""
        records = Records.of(self.campaign, labels, ids, persons, **evidence)
        drawn = self._draw(records)
        uploads = airgap.write_bundle(Path(path), self._ledger, self._joined)
        return Contribution(len(records), drawn.drawn, drawn.already, 0, 0, uploads)

    def acknowledge(self, receipt: str | Path) -> dict[ReportState, int]:
        """Mark what a receipt of `submit` tells; how many records are in each state now.

        Once the campaign's closing date has passed and nothing waits, its key is erased.
        """
        airgap.read_submission(Path(receipt)).mark(self.digest, self.outbox)
        sending.end_by_date(self._ledger, self._joined)
        self._reread()
        return self.outbox.counts()

    def _draw(self, records: Records) -> Drawn:
        return draw(
            self._ledger,
            self._joined,
            self.campaign,
            self.policy,
            records,
            per_upload=self._per_upload,
        )

    @property
    def _per_upload(self) -> int:
        return (self._network or Network()).records_per_upload

    def _send(self, api: Api, records: int, drawn: Drawn, on_progress: OnProgress) -> Contribution:
        # What was drawn under another policy stays here if today's does not let it leave.
        check_allowed(self._joined, self.campaign, self.policy)
        sent = sending.send_outbox(self._ledger, self._joined, api, on_progress)
        late = sum(entry.records for entry in sent if entry.state is ReportState.LATE)
        accepted = sum(entry.records for entry in sent) - late
        return Contribution(records, drawn.drawn, drawn.already, accepted, late, len(sent))

    def _finish(self, api: Api, records: Records, on_progress: OnProgress) -> Contribution:
        """Send what waits to a campaign that takes no new records; refuse to draw for it."""
        fresh = count_fresh(self._ledger, self._joined, records)
        sent = self._send(api, len(records), Drawn(0, len(records) - fresh), on_progress)
        if fresh:
            raise CampaignEnded
        return sent

    def _api(self) -> Api:
        if self._joined.token is None:
            raise AlreadyLeft if self.membership is Membership.LEFT else CampaignEnded
        return Api(self.url, self._joined.token, self._network)

    def _reread(self) -> None:
        self._joined = find_campaign(self._ledger, self.digest)
