"""Ending campaigns: those whose date has passed, and those that have counted all they took."""

from tacit.protocol import CampaignState, ClosedBy
from tacit_aggregator.campaigns import queries as campaigns
from tacit_aggregator.campaigns.documents import Documents
from tacit_aggregator.database.engine import Database
from tacit_aggregator.results.service import store_starred
from tacit_aggregator.scoring import queries


def finish_due(database: Database, documents: Documents, secret: bytes) -> None:
    """Move every campaign on that can be; with its end comes the starred threshold, if due.

    Once for each campaign, however many servers do this at the same time.
    """
    with database.read() as connection:
        due = queries.to_finish(connection, database.now(connection))
    for digest in due:
        _finish(database, documents, secret, digest)


def _finish(database: Database, documents: Documents, secret: bytes, digest: str) -> None:
    terms = documents.get(digest)
    with database.transaction("finish campaign") as connection:
        campaign = campaigns.standing(connection, digest, lock=True)
        now = database.now(connection)
        if terms is None or campaign is None:
            return
        state, closed_by = campaign.state, campaign.closed_by
        if state == CampaignState.OPEN and now >= campaign.closes_at:
            state, closed_by = CampaignState.CLOSING.value, ClosedBy.DATE.value
        if state != CampaignState.CLOSING:
            return
        if not campaigns.has_pending(connection, digest):
            state = CampaignState.CLOSED.value
            if closed_by != ClosedBy.HAND:
                store_starred(connection, terms, campaign.key, secret, now)
        if state != campaign.state:
            campaigns.set_state(connection, digest, state, closed_by, now)
