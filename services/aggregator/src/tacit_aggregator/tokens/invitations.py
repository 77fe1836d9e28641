"""Invitations: a token for one site in one campaign, with all that the site must know."""

from dataclasses import dataclass, field

from pydantic import ValidationError
from sqlalchemy import Connection

from tacit.protocol import Invitation, Role
from tacit.protocol.wire import described
from tacit_aggregator.database.rows import AnyRow
from tacit_aggregator.errors import OperatorError
from tacit_aggregator.settings import Settings
from tacit_aggregator.tokens import queries
from tacit_aggregator.tokens.service import create


@dataclass(frozen=True)
class Invited:
    """An invitation to hand over, the id its token is revoked by, and what there was before."""

    invitation: Invitation = field(repr=False)
    token_id: str
    title: str
    earlier_tokens: int
    """Valid tokens that the site has already, which stay valid."""


def invite(
    connection: Connection,
    campaign: str,
    site: str,
    *,
    url: str,
    expires_at: float | None,
    now: float,
) -> Invited:
    """Invite a site to a campaign, named by its digest or the beginning of it."""
    found = find_campaign(connection, campaign)
    if found.state != "open":
        raise OperatorError(f"The campaign {found.title!r} takes no more contributions.")
    if queries.has_left(connection, found.digest, site):
        raise OperatorError("This site has left the campaign; it can only join another one.")
    earlier = queries.of_site(connection, found.digest, site, now)
    minted = create(
        connection,
        Role.CONTRIBUTOR,
        site,
        campaign=found.digest,
        expires_at=expires_at,
        now=now,
    )
    try:
        invitation = Invitation(
            url=url, key=found.key, campaign=found.digest, site=site, token=minted.token
        )
    except ValidationError as error:
        raise OperatorError(f"This cannot be in an invitation: {described(error)}") from None
    return Invited(invitation, minted.id, found.title, earlier)


def find_campaign(connection: Connection, prefix: str) -> AnyRow:
    """Digest, key, title and state of the one campaign whose digest begins like this."""
    rows = queries.campaigns_like(connection, prefix) if prefix else ()
    if len(rows) != 1:
        many = "More than one campaign has" if rows else "No campaign has"
        raise OperatorError(f"{many} a digest that begins like this; the owner can list them.")
    return rows[0]


@dataclass(frozen=True)
class Address:
    """Where sites reach this server, and whether anyone said so."""

    url: str
    assumed: bool


def address_of(settings: Settings, url: str | None) -> Address:
    """Where sites reach this server: as given, as set, or on this machine in development."""
    chosen = url or settings.public_url
    assumed = chosen is None and settings.environment == "development" and settings.port != 0
    if assumed:
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        chosen = f"http://{host}:{settings.port}"
    if chosen is None:
        raise OperatorError("Say where sites reach this server: --url, or TACIT_PUBLIC_URL.")
    if settings.environment == "production" and not chosen.startswith("https://"):
        raise OperatorError("In production sites reach this server through https:// only.")
    return Address(chosen.rstrip("/"), assumed)
