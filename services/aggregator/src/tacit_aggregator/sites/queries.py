"""Statements about sites."""

from typing import Any

from sqlalchemy import Connection, insert, select, update

from tacit_aggregator.database.rows import AnyRow
from tacit_aggregator.database.tables import sites

_TALLY = (
    sites.c.site,
    sites.c.enrolled,
    sites.c.left_at,
    sites.c.received,
    sites.c.counted,
    sites.c.dropped,
    sites.c.late,
)


def find(connection: Connection, campaign: str, site: str) -> AnyRow | None:
    """A site of a campaign, without its counts."""
    statement = select(*_TALLY).where(sites.c.campaign == campaign, sites.c.site == site)
    return connection.execute(statement).one_or_none()


def store(connection: Connection, values: dict[str, Any]) -> None:
    """A site that was not there before."""
    connection.execute(insert(sites).values(received=0, counted=0, dropped=0, late=0, **values))


def change(connection: Connection, campaign: str, site: str, **values: Any) -> None:
    """Change a site that is there."""
    one = (sites.c.campaign == campaign) & (sites.c.site == site)
    connection.execute(update(sites).where(one).values(**values))
