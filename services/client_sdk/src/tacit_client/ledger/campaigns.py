"""The campaigns that a site has joined."""

import os
import sqlite3
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any

from tacit.mechanisms.record_coins import KEY_BYTES
from tacit.protocol import Campaign, Invitation, Signed
from tacit_client.errors import AlreadyLeft, CampaignEnded, NotJoined
from tacit_client.ledger.ledger import Ledger
from tacit_client.policy import spent_nano


class Membership(StrEnum):
    """A site's part in a campaign: joined, left, or ended by the server's word."""

    JOINED = "joined"
    LEFT = "left"
    ENDED = "ended"


@dataclass(frozen=True)
class JoinedCampaign:
    """A campaign as the ledger holds it; token and campaign key are never shown."""

    number: int
    digest: str
    signed: str = field(repr=False)
    url: str
    key: str
    token: str | None = field(repr=False)
    site: str
    campaign_key: bytes | None = field(repr=False)
    state: Membership
    joined_at: float
    epsilon_nano: int

    def document(self) -> Campaign:
        """The campaign document, its signature and digest verified again."""
        signed = Signed.model_validate_json(self.signed)
        return signed.open(Campaign, key=self.key, digest=self.digest).document

    def usable_key(self) -> bytes:
        """The campaign key, unless the campaign is over for this site."""
        if self.state is Membership.LEFT:
            raise AlreadyLeft
        if self.campaign_key is None:
            raise CampaignEnded
        return self.campaign_key


_COLUMNS = tuple(column.name for column in fields(JoinedCampaign))


def joined_campaigns(ledger: Ledger, prefix: str = "") -> list[JoinedCampaign]:
    """Those whose digest begins with the prefix, oldest first."""
    columns = ", ".join(_COLUMNS)
    rows = ledger.read(
        f"SELECT {columns} FROM campaigns"  # noqa: S608 -- names of columns
        " WHERE substr(digest, 1, ?) = ? ORDER BY number",
        (len(prefix), prefix),
    )
    return [_joined(row) for row in rows]


def _joined(row: tuple[Any, ...]) -> JoinedCampaign:
    values = dict(zip(_COLUMNS, row, strict=True))
    return JoinedCampaign(**{**values, "state": Membership(values["state"])})


def find_campaign(ledger: Ledger, prefix: str | None) -> JoinedCampaign:
    """The one whose digest begins with the prefix; without one, the only one not over."""
    found = joined_campaigns(ledger, prefix or "")
    if prefix is None and len(found) > 1:
        found = [campaign for campaign in found if campaign.state is Membership.JOINED]
    if len(found) == 1:
        return found[0]
    if not found:
        raise not_joined(ledger)
    raise NotJoined(
        f"{len(found)} campaigns of this ledger are meant by that; name one by the beginning of"
        " its digest: " + ", ".join(campaign.digest[:12] for campaign in found) + "."
    )


def not_joined(ledger: Ledger) -> NotJoined:
    """Why no campaign of the ledger was found, and what to do about it."""
    joined = joined_campaigns(ledger)
    if not joined:
        return NotJoined("No campaign is joined yet: tacit join INVITATION.")
    if any(campaign.state is Membership.JOINED for campaign in joined):
        return NotJoined()
    return NotJoined(
        "All campaigns of this ledger are over for this site. Join another, or name one of them by"
        " the beginning of its digest."
    )


def add_campaign(
    connection: sqlite3.Connection,
    invitation: Invitation,
    signed: Signed,
    campaign: Campaign,
    joined_at: float,
) -> None:
    """Draw the campaign's key, once, and keep it with the verified document."""
    connection.execute(
        "INSERT INTO campaigns (digest, signed, url, key, token, site, campaign_key, state,"
        " joined_at, epsilon_nano) VALUES (?, ?, ?, ?, ?, ?, ?, 'joined', ?, ?)",
        (
            invitation.campaign,
            signed.model_dump_json(),
            invitation.url,
            invitation.key,
            invitation.token,
            invitation.site,
            os.urandom(KEY_BYTES),
            joined_at,
            spent_nano(campaign.channel.epsilon),
        ),
    )


def renew_access(connection: sqlite3.Connection, number: int, invitation: Invitation) -> None:
    """Another address and token for a campaign; its key stays the one that was drawn."""
    connection.execute(
        "UPDATE campaigns SET url = ?, token = ? WHERE number = ?",
        (invitation.url, invitation.token, number),
    )


def finish_campaign(connection: sqlite3.Connection, number: int, state: Membership) -> None:
    """Erase the campaign's key, token and bodies; records and spending stay.

    What was still waiting to be sent is dropped: without its body it can never be.
    """
    connection.execute(
        "UPDATE uploads SET state = 'dropped', body = NULL WHERE campaign = ? AND state = 'drawn'",
        (number,),
    )
    connection.execute("UPDATE uploads SET body = NULL WHERE campaign = ?", (number,))
    connection.execute(
        "UPDATE campaigns SET state = ?, campaign_key = NULL, token = NULL WHERE number = ?",
        (state.value, number),
    )
