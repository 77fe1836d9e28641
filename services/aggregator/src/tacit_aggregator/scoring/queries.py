"""Statements of the counting."""

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, delete, exists, func, or_, select, update

from tacit_aggregator.database.rows import AnyRow
from tacit_aggregator.database.tables import campaigns, pending, sites, uploads

_COLUMNS = (
    pending.c.number,
    pending.c.campaign,
    pending.c.site,
    pending.c.records,
    pending.c.labels,
    pending.c.evidence,
    pending.c.evidence_dtype,
    pending.c.uniforms,
    pending.c.attempts,
)
_SIZE = (
    func.length(pending.c.labels)
    + func.length(pending.c.evidence)
    + func.coalesce(func.length(pending.c.uniforms), 0)
)
_AMOUNT = select(
    func.count(), func.coalesce(func.sum(pending.c.records), 0), func.coalesce(func.sum(_SIZE), 0)
)
_AFTER = (
    select(*_COLUMNS)
    .where(
        pending.c.number > bindparam("after"),
        pending.c.campaign.not_in(bindparam("but", expanding=True)),
    )
    .order_by(pending.c.number)
    .limit(bindparam("most"))
)
_OF_GROUP = (
    pending.c.number.between(bindparam("first"), bindparam("last"))
    & (pending.c.campaign == bindparam("of_campaign"))
    & (pending.c.site == bindparam("of_site"))
)
_STILL = select(func.count()).where(_OF_GROUP)
_ERASE = delete(pending).where(_OF_GROUP)
_MARK = (
    update(uploads)
    .where(
        uploads.c.number.between(bindparam("first"), bindparam("last")),
        uploads.c.campaign == bindparam("of_campaign"),
        uploads.c.site == bindparam("of_site"),
        uploads.c.state == "accepted",
    )
    .values(state="counted")
)
_MARK_DROPPED = (
    update(uploads)
    .where(uploads.c.number == bindparam("of_number"))
    .values(state="dropped", reason=bindparam("why"))
)
_SITE = (sites.c.campaign == bindparam("of_campaign")) & (sites.c.site == bindparam("of_site"))
_SKETCH = select(sites.c.noisy, sites.c.every).where(_SITE)
_TALLY = (
    update(sites)
    .where(_SITE)
    .values(
        noisy=bindparam("new_noisy"),
        every=bindparam("new_every"),
        counted=sites.c.counted + bindparam("more_counted"),
        dropped=sites.c.dropped + bindparam("more_dropped"),
        counted_at=func.coalesce(bindparam("at"), sites.c.counted_at),
    )
)
_TRY = (
    update(pending)
    .where(pending.c.number == bindparam("of_number"))
    .values(attempts=pending.c.attempts + 1)
)
_LOST = select(uploads.c.number, uploads.c.campaign, uploads.c.site, uploads.c.records).where(
    uploads.c.state == "accepted", ~exists().where(pending.c.number == uploads.c.number)
)
_FORGET = delete(uploads).where(uploads.c.number == bindparam("of_number"))
_TAKE_BACK_SITE = update(sites).where(_SITE).values(received=sites.c.received - bindparam("fewer"))
_TAKE_BACK_CAMPAIGN = (
    update(campaigns)
    .where(campaigns.c.digest == bindparam("of_campaign"))
    .values(received=campaigns.c.received - bindparam("fewer"))
)
_OPEN_AGAIN = (
    update(campaigns)
    .where(
        campaigns.c.state == "closing",
        campaigns.c.closed_by == "plan",
        campaigns.c.received < campaigns.c.planned_n,
    )
    .values(state="open", closed_by=None, closed_at=None)
)


def waiting(connection: Connection) -> tuple[int, int, int]:
    """Uploads, records and bytes that wait to be counted."""
    uploads_, records, size = connection.execute(_AMOUNT).one()
    return int(uploads_), int(records), int(size)


def after(connection: Connection, number: int, but: Collection[str], most: int) -> Iterator[AnyRow]:
    """What waits, oldest first, but not of these campaigns; read as it is asked for."""
    values = {"after": number, "but": list(but), "most": most}
    yield from connection.execute(_AFTER, values)


def one(connection: Connection, number: int) -> AnyRow | None:
    """One upload that waits."""
    return connection.execute(select(*_COLUMNS).where(pending.c.number == number)).one_or_none()


def try_again(connection: Connection, number: int) -> None:
    """One more attempt at an upload."""
    connection.execute(_TRY, {"of_number": number})


def still_waiting(connection: Connection, group: dict[str, Any]) -> int:
    """How many of a group's uploads still wait."""
    return int(connection.execute(_STILL, group).scalar_one())


def sketch(connection: Connection, campaign: str, site: str) -> AnyRow:
    """The counts of a site."""
    return connection.execute(_SKETCH, {"of_campaign": campaign, "of_site": site}).one()


def fold(
    connection: Connection,
    group: dict[str, Any],
    tally: dict[str, Any],
    dropped: Sequence[dict[str, Any]],
) -> None:
    """Store a site's new counts, erase what they came from, and say so of the uploads."""
    connection.execute(_TALLY, tally)
    if dropped:
        connection.execute(_MARK_DROPPED, dropped)
    connection.execute(_MARK, group)
    connection.execute(_ERASE, group)


def to_finish(connection: Connection, now: float) -> Sequence[str]:
    """Campaigns whose date has passed, and those that close and have nothing left to count."""
    something = exists().where(pending.c.campaign == campaigns.c.digest)
    statement = select(campaigns.c.digest).where(
        or_(
            (campaigns.c.state == "open") & (campaigns.c.closes_at <= now),
            (campaigns.c.state == "closing") & ~something,
        )
    )
    return connection.execute(statement).scalars().all()


def lost(connection: Connection) -> Sequence[AnyRow]:
    """Uploads that were accepted, and of which nothing is left to count."""
    return connection.execute(_LOST).all()


def forget(connection: Connection, uploads_lost: Sequence[AnyRow]) -> None:
    """Have these never been received; a campaign that they completed is open again."""
    of = [{"of_campaign": row.campaign, "fewer": row.records} for row in uploads_lost]
    connection.execute(_FORGET, [{"of_number": row.number} for row in uploads_lost])
    connection.execute(_TAKE_BACK_CAMPAIGN, of)
    connection.execute(
        _TAKE_BACK_SITE,
        [{**one, "of_site": row.site} for one, row in zip(of, uploads_lost, strict=True)],
    )
    connection.execute(_OPEN_AGAIN)
