"""Statements about campaigns."""

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select, update

from tacit_aggregator.database.rows import AnyRow
from tacit_aggregator.database.tables import campaigns, pending, sites, uploads

ABANDONED = "The campaign was abandoned."
"""Why what was accepted is dropped."""

_STANDING = (
    campaigns.c.digest,
    campaigns.c.key,
    campaigns.c.title,
    campaigns.c.owner,
    campaigns.c.planned_n,
    campaigns.c.opens_at,
    campaigns.c.closes_at,
    campaigns.c.state,
    campaigns.c.closed_by,
    campaigns.c.received,
    campaigns.c.method,
    campaigns.c.asked_n,
)
_SITE = (
    sites.c.campaign,
    sites.c.site,
    sites.c.enrolled,
    sites.c.left_at,
    sites.c.received,
    sites.c.counted,
    sites.c.dropped,
    sites.c.late,
)


def payload(connection: Connection, digest: str) -> str | None:
    """The document's text."""
    statement = select(campaigns.c.payload).where(campaigns.c.digest == digest)
    return connection.execute(statement).scalar_one_or_none()


def signed(connection: Connection, digest: str) -> str | None:
    """The signed document, as JSON."""
    statement = select(campaigns.c.signed).where(campaigns.c.digest == digest)
    return connection.execute(statement).scalar_one_or_none()


def standing(connection: Connection, digest: str, *, lock: bool = False) -> AnyRow | None:
    """Everything of a campaign but its document; locked, it stays so until the commit."""
    statement = select(*_STANDING).where(campaigns.c.digest == digest)
    if lock:
        statement = statement.with_for_update(key_share=True)
    return connection.execute(statement).one_or_none()


def standings(
    connection: Connection,
    methods: Collection[str],
    *,
    owner: str | None = None,
    digest: str | None = None,
) -> Sequence[AnyRow]:
    """All campaigns of these methods, or those of an owner, or one; newest first."""
    statement = select(*_STANDING).order_by(campaigns.c.created_at.desc(), campaigns.c.digest)
    statement = statement.where(campaigns.c.method.in_(methods))
    if owner is not None:
        statement = statement.where(campaigns.c.owner == owner)
    if digest is not None:
        statement = statement.where(campaigns.c.digest == digest)
    return connection.execute(statement).all()


def sites_of(connection: Connection, digests: Sequence[str]) -> Sequence[AnyRow]:
    """The sites of these campaigns with their tallies, in the order they enrolled."""
    statement = select(*_SITE).where(sites.c.campaign.in_(digests))
    return connection.execute(statement.order_by(sites.c.enrolled_at, sites.c.site)).all()


def store(connection: Connection, values: dict[str, Any]) -> None:
    """A new campaign."""
    connection.execute(insert(campaigns).values(**values))


def set_state(
    connection: Connection, digest: str, state: str, closed_by: str | None, now: float
) -> None:
    """Move a campaign on."""
    connection.execute(
        update(campaigns)
        .where(campaigns.c.digest == digest)
        .values(state=state, closed_by=closed_by, closed_at=now)
    )


def has_pending(connection: Connection, digest: str) -> bool:
    """Whether anything accepted is not counted yet."""
    statement = select(pending.c.number).where(pending.c.campaign == digest).limit(1)
    return connection.execute(statement).first() is not None


def lock_sites(connection: Connection, digest: str) -> None:
    """Have all sites of a campaign change in nobody else's hands until the commit."""
    every = select(sites.c.site).where(sites.c.campaign == digest).order_by(sites.c.site)
    connection.execute(every.with_for_update(key_share=True))


def drop_pending(connection: Connection, digest: str) -> tuple[int, int, int]:
    """Erase all that waits to be counted, and tally it as dropped: (uploads, records, bytes).

    The campaign's sites must be locked.
    """
    waiting = pending.c.campaign == digest
    size = (
        func.length(pending.c.labels)
        + func.length(pending.c.evidence)
        + func.coalesce(func.length(pending.c.uniforms), 0)
    )
    by_site = select(
        pending.c.site, func.count(), func.sum(pending.c.records), func.sum(size)
    ).where(waiting)
    rows = connection.execute(by_site.group_by(pending.c.site)).all()
    numbers = select(pending.c.number).where(waiting)
    connection.execute(
        update(uploads)
        .where(uploads.c.number.in_(numbers))
        .values(state="dropped", reason=ABANDONED)
    )
    connection.execute(delete(pending).where(waiting))
    for site, _, records, _ in rows:
        one = (sites.c.campaign == digest) & (sites.c.site == site)
        connection.execute(update(sites).where(one).values(dropped=sites.c.dropped + records))
    return (
        sum(uploads_ for _, uploads_, _, _ in rows),
        sum(int(records) for _, _, records, _ in rows),
        sum(int(size) for _, _, _, size in rows),
    )


def erase_sketches(connection: Connection, digest: str) -> None:
    """Erase the counts of every site."""
    connection.execute(
        update(sites).where(sites.c.campaign == digest).values(noisy=None, every=None)
    )
