"""Campaigns at a real aggregator, and sites that join them."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from tacit.protocol import CampaignState, CampaignStatus, LabelCampaign, Opened
from tacit_client import Contributor, Network, Owner
from tacit_client.testing import RunningAggregator
from tests.support.client_world import ALLOWING

HASTY = Network(attempts=3, longest_wait=0.05)
SMALL_UPLOADS = replace(HASTY, records_per_upload=10)


def create(owner: Owner, **changes: Any) -> Opened[LabelCampaign]:
    terms: dict[str, Any] = {
        "title": "three classes",
        "classes": ["c0", "c1", "c2"],
        "epsilon": 1.0,
        "alpha": 0.1,
        "planned_n": 10_000,
        "closes": timedelta(hours=1),
    }
    return owner.create(**(terms | changes))


def join(
    aggregator: RunningAggregator,
    campaign: Opened[LabelCampaign],
    home: Path,
    site: str = "a site",
    network: Network = HASTY,
) -> Contributor:
    invitation = aggregator.invitation(campaign.digest, site)
    return Contributor.join(invitation, home, ALLOWING, network=network)


def closed(owner: Owner, digest: str) -> CampaignStatus:
    """The status once everything is counted; bounded by a minute."""
    *_, last = owner.follow(digest, every=0.05, timeout=60)
    assert last.state is CampaignState.CLOSED
    return last


def counted(owner: Owner, digest: str, records: int) -> None:
    """Wait until so many records are counted; bounded by a minute."""
    statuses = owner.follow(digest, every=0.05, timeout=60)
    assert any(status.records.counted == records for status in statuses)
