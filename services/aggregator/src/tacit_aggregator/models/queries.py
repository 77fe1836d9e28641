"""Every statement about models."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, delete, insert, select

from tacit_aggregator.database.rows import AnyRow
from tacit_aggregator.database.tables import campaigns, models


def by_digest(connection: Connection, digest: str) -> AnyRow | None:
    """The model with this digest, if there is one."""
    return connection.execute(select(models).where(models.c.digest == digest)).one_or_none()


def like(connection: Connection, prefix: str) -> Sequence[AnyRow]:
    """The models whose digest begins like this, at most two."""
    statement = select(models).where(models.c.digest.startswith(prefix, autoescape=True))
    return connection.execute(statement.limit(2)).all()


def everything(connection: Connection) -> Sequence[AnyRow]:
    """All models, oldest first."""
    order = (models.c.registered_at, models.c.digest)
    return connection.execute(select(models).order_by(*order)).all()


def store(connection: Connection, values: dict[str, Any]) -> None:
    """A new model."""
    connection.execute(insert(models).values(**values))


def remove(connection: Connection, digest: str) -> None:
    """Forget a model."""
    connection.execute(delete(models).where(models.c.digest == digest))


def unfinished_campaigns(connection: Connection) -> Sequence[AnyRow]:
    """Title and document of the campaigns that may still have something to score."""
    statement = select(campaigns.c.title, campaigns.c.payload)
    return connection.execute(statement.where(campaigns.c.state.in_(("open", "closing")))).all()


def naming(connection: Connection, digest: str, owner: str) -> Sequence[AnyRow]:
    """The documents of an owner's score campaigns in which this digest stands somewhere."""
    statement = select(campaigns.c.payload).where(
        campaigns.c.owner == owner,
        campaigns.c.method == "scores",
        campaigns.c.payload.contains(digest, autoescape=True),
    )
    return connection.execute(statement).all()
