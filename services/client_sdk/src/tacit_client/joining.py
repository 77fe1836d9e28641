"""Joining: everything is verified before the campaign's key is drawn and stored."""

from pathlib import Path

from pydantic import ValidationError

from tacit.errors import InvalidDocument
from tacit.protocol import Campaign, Invitation, Signed
from tacit_client.api import Api
from tacit_client.errors import CampaignError
from tacit_client.ledger import JoinedCampaign, Ledger, find_campaign, joined_campaigns
from tacit_client.ledger.campaigns import add_campaign, renew_access
from tacit_client.policy import Policy
from tacit_client.transport import Network


def read_invitation(invitation: Invitation | str) -> Invitation:
    """An invitation, or the line of text that is one."""
    return Invitation.from_text(invitation) if isinstance(invitation, str) else invitation


def read_signed(document: Signed | str | Path) -> Signed:
    """A signed document, or the file that holds one."""
    if isinstance(document, Signed):
        return document
    try:
        return Signed.model_validate_json(Path(document).read_bytes())
    except OSError as error:
        raise InvalidDocument(f"The document cannot be read: {error.strerror}.") from error
    except ValidationError:
        raise InvalidDocument("This file does not hold a signed document.") from None


def fetch_campaign(invitation: Invitation | str, network: Network | None = None) -> Signed:
    """The campaign of an invitation, verified: to carry to a site that has no network."""
    asked = read_invitation(invitation)
    with Api(asked.url, asked.token, network) as api:
        signed = api.campaign(asked.campaign)
    signed.open(Campaign, key=asked.key, digest=asked.campaign)
    return signed


def join(
    ledger: Ledger,
    invitation: Invitation,
    policy: Policy,
    *,
    document: Signed | None,
    network: Network | None,
) -> JoinedCampaign:
    """The campaign in the ledger, with its key; if anything is refused, nothing is stored."""
    policy.check_key(invitation.key)
    known = next(iter(joined_campaigns(ledger, invitation.campaign)), None)
    if known is not None:
        known.usable_key()
    signed = document or fetch_campaign(invitation, network)
    campaign = signed.open(Campaign, key=invitation.key, digest=invitation.campaign).document
    policy.check(campaign)
    ledger.check_not_restored(campaign)
    if known is None:
        with ledger.transaction("join campaign", advances=True) as connection:
            add_campaign(connection, invitation, signed, campaign, ledger.clock())
    else:
        if known.site != invitation.site:
            raise CampaignError(
                "This ledger has joined the campaign as another site. Use that site's home: what"
                " one site has drawn, another must not draw again."
            )
        with ledger.transaction("renew access") as connection:
            renew_access(connection, known.number, invitation)
    return find_campaign(ledger, invitation.campaign)
