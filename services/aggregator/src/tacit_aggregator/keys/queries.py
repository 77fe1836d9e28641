"""Every statement about signing keys."""

from collections.abc import Sequence

from sqlalchemy import Connection, insert, select, update

from tacit_aggregator.database.rows import AnyRow
from tacit_aggregator.database.tables import signing_keys

# The one in use has not been retired; NULL comes first, on every database.
_NEWEST_FIRST = (
    signing_keys.c.retired_at.is_not(None),
    signing_keys.c.created_at.desc(),
    signing_keys.c.fingerprint,
)


def current(connection: Connection) -> bytes | None:
    """The encrypted key in use, if there is one."""
    statement = select(signing_keys.c.private_pem).where(signing_keys.c.retired_at.is_(None))
    pem: bytes | None = connection.execute(statement).scalar_one_or_none()
    return pem


def by_fingerprint(connection: Connection, fingerprint: str) -> bytes | None:
    """The encrypted key with this fingerprint, if there is one."""
    statement = select(signing_keys.c.private_pem).where(signing_keys.c.fingerprint == fingerprint)
    pem: bytes | None = connection.execute(statement).scalar_one_or_none()
    return pem


def everything(connection: Connection) -> Sequence[AnyRow]:
    """Fingerprint and dates of all keys, the one in use first, then newest first."""
    columns = (signing_keys.c.fingerprint, signing_keys.c.created_at, signing_keys.c.retired_at)
    return connection.execute(select(*columns).order_by(*_NEWEST_FIRST)).all()


def retire_current(connection: Connection, now: float) -> None:
    """Take the key in use out of use; campaigns that it signed keep it."""
    statement = update(signing_keys).where(signing_keys.c.retired_at.is_(None))
    connection.execute(statement.values(retired_at=now))


def store(connection: Connection, fingerprint: str, private_pem: bytes, now: float) -> None:
    """A new key, in use from now."""
    connection.execute(
        insert(signing_keys).values(
            fingerprint=fingerprint, private_pem=private_pem, created_at=now
        )
    )
