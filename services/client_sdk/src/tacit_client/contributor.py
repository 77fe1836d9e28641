"""A site's side of a campaign: join, contribute, resume, leave."""

from pathlib import Path
from typing import Self, TypeVar, Unpack

from numpy.typing import ArrayLike

from tacit.protocol import (
    Campaign,
    CampaignStatus,
    Invitation,
    LabelCampaign,
    ScoreCampaign,
    Signed,
)
from tacit_client import airgap, joining, reporting, rounds, sending
from tacit_client.api import Api
from tacit_client.contribution import Contribution
from tacit_client.drawing import draw
from tacit_client.errors import AlreadyLeft, CampaignEnded, NeedsNetwork
from tacit_client.home import Home
from tacit_client.ledger import JoinedCampaign, Ledger, Membership, find_campaign
from tacit_client.notice import notice
from tacit_client.outbox import Outbox, ReportState
from tacit_client.participation import Participation
from tacit_client.policy import Policy
from tacit_client.preview import Preview, preview
from tacit_client.progress import OnProgress, silent
from tacit_client.records import GivenEvidence, Names, Records
from tacit_client.transport import Network

AnyCampaign = TypeVar("AnyCampaign", bound=Campaign)


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
        labels: ArrayLike | None = None,
        ids: Names = (),
        persons: Names | None = None,
        *,
        wait: float | bool = True,
        absent_ok: bool = False,
        on_progress: OnProgress | None = None,
        **evidence: Unpack[GivenEvidence],
    ) -> Contribution:
        """Check all records, draw those never drawn, and send everything that waits.

        Labels are class indices or class names; ids name the records, persons whose they are. With
        them go `probabilities=` or `features=`, as the campaign asks; to a score campaign `scores=`
        may be given instead. After a crash call it again with the same records, or `resend`:
        nothing is drawn twice.

        In a score campaign it answers round after round until the search is over, or for `wait`
        seconds; with `wait=False` it answers what is asked now. Call it again with the same
        records to go on. Records can be added until the first question is asked: with
        `wait=False`, and then all of them given together. Those that were enrolled, have not
        answered and are not given are `RecordsAbsent`, unless `absent_ok`.
        """
        tell = on_progress or silent
        if isinstance(self.campaign, ScoreCampaign):
            given = rounds.ScoreRecords.of(self.campaign, labels, ids, persons, **evidence)
            with self._api() as api:
                done = rounds.contribute(
                    self._part(self.campaign), api, given, wait, tell, absent_ok=absent_ok
                )
            self._reread()
            return done
        records = Records.of(self._labels(), labels, ids, persons, **evidence)
        with self._api() as api:
            return reporting.contribute(self._part(self._labels()), api, records, tell)

    def resend(self, on_progress: OnProgress | None = None) -> Contribution:
        """Send what waits in the outbox, byte for byte as it was drawn."""
        tell = on_progress or silent
        with self._api() as api:
            if isinstance(self.campaign, ScoreCampaign):
                return rounds.resend(self._part(self.campaign), api, tell)
            return reporting.resend(self._part(self._labels()), api, tell)

    def preview(
        self,
        labels: ArrayLike | None = None,
        ids: Names = (),
        persons: Names | None = None,
        **evidence: Unpack[GivenEvidence],
    ) -> Preview:
        """Exactly what `contribute` would send; nothing is drawn, stored or sent."""
        if isinstance(self.campaign, ScoreCampaign):
            given = rounds.ScoreRecords.of(self.campaign, labels, ids, persons, **evidence)
            return rounds.preview(self._part(self.campaign), given)
        records = Records.of(self._labels(), labels, ids, persons, **evidence)
        return preview(self._part(self._labels()), records)

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
        """Draw as `contribute` does, and write all that waits to a file for `submit` elsewhere.

        Label campaigns only: `NeedsNetwork` for those that ask in rounds.
        """
        records = Records.of(self._labels(), labels, ids, persons, **evidence)
        drawn = draw(self._part(self._labels()), records)
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

    def _part(self, campaign: AnyCampaign) -> Participation[AnyCampaign]:
        network = self._network or Network()
        return Participation(self._ledger, self._joined, campaign, self.policy, network)

    def _labels(self) -> LabelCampaign:
        """The campaign, if it is one of labels."""
        if not isinstance(self.campaign, LabelCampaign):
            raise NeedsNetwork
        return self.campaign

    def _api(self) -> Api:
        if self._joined.token is None:
            raise AlreadyLeft if self.membership is Membership.LEFT else CampaignEnded
        return Api(self.url, self._joined.token, self._network)

    def _reread(self) -> None:
        self._joined = find_campaign(self._ledger, self.digest)
