"""One site's part in one campaign: what drawing and sending for it need."""

import sqlite3
from dataclasses import dataclass
from typing import Generic, TypeVar

from tacit.protocol import Campaign, CampaignStatus
from tacit_client.dates import check_dates
from tacit_client.errors import AlreadyLeft, AnotherLedger
from tacit_client.ledger import JoinedCampaign, Ledger
from tacit_client.ledger.records import check_persons
from tacit_client.ledger.spending import check_budget
from tacit_client.policy import Policy
from tacit_client.transport import Network

AnyCampaign_co = TypeVar("AnyCampaign_co", bound=Campaign, covariant=True)


@dataclass(frozen=True)
class Participation(Generic[AnyCampaign_co]):
    """The ledger that is held, the campaign in it, and what the site allows."""

    ledger: Ledger
    joined: JoinedCampaign
    campaign: AnyCampaign_co
    policy: Policy
    network: Network

    def check_allowed(self) -> None:
        """Refuse a campaign that the policy, as it is now, does not let anything leave for."""
        self.policy.check_key(self.joined.key)
        self.policy.check(self.campaign)

    def key_for_drawing(self) -> bytes:
        """The campaign key, if policy and ledger allow to draw for the campaign."""
        self.check_allowed()
        self.ledger.check_not_restored(self.campaign)
        return self.joined.usable_key()

    def check_not_left(self, status: CampaignStatus) -> None:
        """Refuse to go on where this site has left, by the server's word."""
        if any(site.left for site in status.sites if site.site == self.joined.site):
            raise AlreadyLeft

    def check_alone(self, status: CampaignStatus, known: int) -> None:
        """Refuse to go on where more records are enrolled than this ledger knows of.

        What it draws or deals out is written down before it is enrolled, so others did that, or it
        is an old copy.
        """
        self.ledger.check_not_restored(self.campaign)
        enrolled = (site.enrolled for site in status.sites if site.site == self.joined.site)
        if max(enrolled, default=0) > known:
            raise AnotherLedger

    def check_candidates(self, connection: sqlite3.Connection) -> None:
        """Refuse to draw the candidates, if there are any and one of them must not be drawn."""
        if connection.execute("SELECT 1 FROM temp.candidates LIMIT 1").fetchone():
            check_dates(self.campaign, self.ledger.clock())
        check_persons(connection)
        check_budget(connection, self.joined.number, self.joined.epsilon_nano, self.policy)
