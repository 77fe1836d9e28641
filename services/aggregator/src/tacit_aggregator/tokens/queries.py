"""Every statement about tokens."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, insert, select, update

from tacit_aggregator.database.rows import AnyRow
from tacit_aggregator.database.tables import campaigns, sites, tokens

# Built once: these run with every request.
_VALID = select(tokens.c.role, tokens.c.name, tokens.c.campaign, tokens.c.expires_at).where(
    tokens.c.token_hash == bindparam("token_hash"),
    tokens.c.revoked_at.is_(None),
    (tokens.c.expires_at.is_(None)) | (tokens.c.expires_at > bindparam("now")),
)
_SHOWN = select(
    tokens.c.id,
    tokens.c.role,
    tokens.c.name,
    tokens.c.campaign,
    tokens.c.created_at,
    tokens.c.expires_at,
    tokens.c.revoked_at,
).order_by(tokens.c.created_at, tokens.c.id)


def valid(connection: Connection, token_hash: bytes, now: float) -> AnyRow | None:
    """The token with this hash, if it is neither revoked nor expired."""
    return connection.execute(_VALID, {"token_hash": token_hash, "now": now}).one_or_none()


def store(connection: Connection, values: dict[str, Any]) -> None:
    """A new token."""
    connection.execute(insert(tokens).values(**values))


def everything(connection: Connection) -> Sequence[AnyRow]:
    """All tokens without their hashes, oldest first."""
    return connection.execute(_SHOWN).all()


def exists(connection: Connection, token_id: str) -> bool:
    """Whether there is a token with this id."""
    found = connection.execute(select(tokens.c.id).where(tokens.c.id == token_id))
    return found.one_or_none() is not None


def revoke(connection: Connection, token_id: str, now: float) -> None:
    """Revoke a token; the time of the first revocation stays."""
    connection.execute(
        update(tokens)
        .where(tokens.c.id == token_id, tokens.c.revoked_at.is_(None))
        .values(revoked_at=now)
    )


def of_site(connection: Connection, campaign: str, site: str, now: float) -> int:
    """How many valid tokens a site has for a campaign."""
    found = connection.execute(
        select(tokens.c.id).where(
            tokens.c.campaign == campaign,
            tokens.c.name == site,
            tokens.c.role == "contributor",
            tokens.c.revoked_at.is_(None),
            (tokens.c.expires_at.is_(None)) | (tokens.c.expires_at > now),
        )
    )
    return len(found.all())


def has_left(connection: Connection, campaign: str, site: str) -> bool:
    """Whether a site has left a campaign."""
    found = connection.execute(
        select(sites.c.site).where(
            sites.c.campaign == campaign, sites.c.site == site, sites.c.left_at.is_not(None)
        )
    )
    return found.one_or_none() is not None


def campaigns_like(connection: Connection, prefix: str) -> Sequence[AnyRow]:
    """Digest, key, title and state of the campaigns whose digest begins like this; at most two."""
    statement = select(campaigns.c.digest, campaigns.c.key, campaigns.c.title, campaigns.c.state)
    return connection.execute(
        statement.where(campaigns.c.digest.startswith(prefix, autoescape=True)).limit(2)
    ).all()
