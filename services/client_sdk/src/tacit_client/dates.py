"""A campaign's own dates by this site's clock: they are signed, and a server's word is not."""

from tacit.protocol import Campaign
from tacit_client.errors import CampaignEnded, NotYetOpen

SLACK = 300.0
"""Seconds by which this site's clock may differ from the owner's."""


def check_dates(campaign: Campaign, now: float) -> None:
    """Refuse to draw for a campaign before it opens and after it closes, whoever says it is open.

    After a restored copy, its dates decide which campaigns may be drawn for: so nothing may have
    been drawn outside of them.
    """
    opens_in = campaign.opens.timestamp() - now
    if opens_in > SLACK:
        raise NotYetOpen(opens_in=opens_in)
    check_not_past(campaign, now)


def check_not_past(campaign: Campaign, now: float) -> None:
    """Refuse to draw for a campaign after it closes."""
    if is_past(campaign, now):
        raise CampaignEnded(
            "The campaign's closing date has passed, by this machine's clock: nothing was drawn."
            " If the clock is wrong, set it; tacit doctor compares it with the server's."
        )


def is_past(campaign: Campaign, now: float) -> bool:
    """Whether the closing date has passed, for every clock that is nearly right."""
    return now - SLACK >= campaign.closes.timestamp()
