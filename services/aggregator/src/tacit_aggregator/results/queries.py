"""Statements about thresholds and the sketches they come from."""

from collections.abc import Collection, Sequence

from sqlalchemy import Connection, insert, select

from tacit_aggregator.database.rows import AnyRow
from tacit_aggregator.database.tables import sites, thresholds


def sketches(connection: Connection, campaign: str) -> Sequence[AnyRow]:
    """The counts of every site that has some."""
    statement = select(sites.c.noisy, sites.c.every, sites.c.counted, sites.c.counted_at).where(
        sites.c.campaign == campaign, sites.c.counted > 0, sites.c.noisy.is_not(None)
    )
    return connection.execute(statement).all()


def signed(connection: Connection, campaign: str, which: str) -> str | None:
    """A stored threshold, as JSON."""
    statement = select(thresholds.c.signed).where(
        thresholds.c.campaign == campaign, thresholds.c.which == which
    )
    return connection.execute(statement).scalar_one_or_none()


def store(connection: Connection, campaign: str, which: str, text: str, now: float) -> None:
    """A threshold, once and for all."""
    connection.execute(
        insert(thresholds).values(campaign=campaign, which=which, signed=text, created_at=now)
    )


def with_threshold(connection: Connection, digests: Collection[str]) -> set[str]:
    """Those of these campaigns that have a stored threshold."""
    statement = select(thresholds.c.campaign).where(thresholds.c.campaign.in_(digests))
    return set(connection.execute(statement).scalars())
