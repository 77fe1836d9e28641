"""The privacy ledger: what was joined, drawn, sent and spent. It never forgets a drawing.

A record's state is that of its upload: drawn → accepted → counted, or late, dropped or refused.
Triggers in the file itself let no state go back and no drawing or spending disappear.
"""

from tacit_client.ledger.campaigns import (
    JoinedCampaign,
    Membership,
    find_campaign,
    joined_campaigns,
)
from tacit_client.ledger.ledger import Ledger
from tacit_client.ledger.spending import Spending, spending

__all__ = [
    "JoinedCampaign",
    "Ledger",
    "Membership",
    "Spending",
    "find_campaign",
    "joined_campaigns",
    "spending",
]
