"""Bearer tokens: 256 random bits, of which only the SHA-256 is stored."""

import hashlib
import secrets
from dataclasses import dataclass, field

from sqlalchemy import Connection

from tacit.protocol import Role
from tacit_aggregator.errors import OperatorError
from tacit_aggregator.names import check_name
from tacit_aggregator.tokens import queries

PREFIX = "tacit_"


@dataclass(frozen=True)
class Identity:
    """Who a token speaks for: an operator, an owner, or one site in one campaign."""

    role: Role
    name: str
    campaign: str | None
    expires_at: float | None


@dataclass(frozen=True)
class MintedToken:
    """A new token, which is shown once, and the id that it is revoked by."""

    id: str
    token: str = field(repr=False)


@dataclass(frozen=True)
class StoredToken:
    """What is known of a token; not the token itself, which is nowhere."""

    id: str
    role: Role
    name: str
    campaign: str | None
    created_at: float
    expires_at: float | None
    revoked_at: float | None


def identify(connection: Connection, token: str, now: float) -> Identity | None:
    """Who this token speaks for; None if it is unknown, expired or revoked.

    Found by its hash, so how long it takes says nothing about tokens that exist.
    """
    row = queries.valid(connection, _hashed(token), now)
    if row is None:
        return None
    return Identity(Role(row.role), row.name, row.campaign, row.expires_at)


def mint(
    connection: Connection,
    role: Role,
    name: str,
    *,
    campaign: str | None,
    expires_at: float | None,
    now: float,
) -> str:
    """A new token; this is the only time that it can be seen."""
    return create(connection, role, name, campaign=campaign, expires_at=expires_at, now=now).token


def create(
    connection: Connection,
    role: Role,
    name: str,
    *,
    campaign: str | None,
    expires_at: float | None,
    now: float,
) -> MintedToken:
    """A new token with its id. A contributor's is for one campaign, an admin's for none."""
    _check(role, name, campaign)
    if expires_at is not None and expires_at <= now:
        raise OperatorError("A token must expire in the future.")
    minted = MintedToken(secrets.token_hex(8), PREFIX + secrets.token_urlsafe(32))
    queries.store(
        connection,
        {
            "id": minted.id,
            "token_hash": _hashed(minted.token),
            "role": role.value,
            "name": name,
            "campaign": campaign,
            "created_at": now,
            "expires_at": expires_at,
        },
    )
    return minted


def list_tokens(connection: Connection) -> tuple[StoredToken, ...]:
    """All tokens that were ever minted, oldest first."""
    return tuple(
        StoredToken(
            row.id,
            Role(row.role),
            row.name,
            row.campaign,
            row.created_at,
            row.expires_at,
            row.revoked_at,
        )
        for row in queries.everything(connection)
    )


def revoke(connection: Connection, token_id: str, now: float) -> None:
    """Make a token worthless; revoking it again changes nothing."""
    if not queries.exists(connection, token_id):
        raise OperatorError("There is no token with this id; see: tacit-aggregator token list")
    queries.revoke(connection, token_id, now)


def _hashed(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def _check(role: Role, name: str, campaign: str | None) -> None:
    check_name(name)
    if role is Role.CONTRIBUTOR and campaign is None:
        raise OperatorError("A contributor's token is for one campaign: name it with --campaign.")
    if role is not Role.CONTRIBUTOR and campaign is not None:
        raise OperatorError("Only a contributor's token is for one campaign; leave --campaign out.")
