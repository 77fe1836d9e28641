"""Statements of the counting."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from sqlalchemy import Connection, Double, bindparam, delete, exists, func, or_, select, update

from tacit_aggregator.database.rows import AnyRow
from tacit_aggregator.database.tables import campaigns, pending, sites, uploads
from tacit_aggregator.scoring.batches import MOST_BYTES, MOST_UPLOADS

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
# Not all that waits may be in memory at once, and some drivers fetch whatever a query finds.
_FIRST = (
    select(pending.c.number, _SIZE.label("size"))
    .where(
        pending.c.number > bindparam("after"),
        pending.c.campaign.not_in(bindparam("but", expanding=True)),
    )
    .order_by(pending.c.number)
    .limit(bindparam("most"))
    .subquery()
)
_REACH = select(
    _FIRST.c.number,
    (func.sum(_FIRST.c.size).over(order_by=_FIRST.c.number) - _FIRST.c.size).label("before"),
).subquery()
_AFTER = (
    select(*_COLUMNS)
    .join(_REACH, _REACH.c.number == pending.c.number)
    .where(_REACH.c.before < bindparam("bytes"))
    .order_by(pending.c.number)
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
_LOCK_SITES = (
    select(sites.c.site)
    .where(
        sites.c.campaign == bindparam("of_campaign"),
        sites.c.site.in_(bindparam("names", expanding=True)),
    )
    .order_by(sites.c.site)
    .with_for_update(key_share=True)
)
_LOCK_CAMPAIGNS = (
    select(campaigns.c.digest)
    .where(campaigns.c.digest.in_(bindparam("digests", expanding=True)))
    .order_by(campaigns.c.digest)
    .with_for_update(key_share=True)
)
_SKETCH = select(sites.c.noisy, sites.c.every).where(_SITE)
_TALLY = (
    update(sites)
    .where(_SITE)
    .values(
        noisy=bindparam("new_noisy"),
        every=bindparam("new_every"),
        counted=sites.c.counted + bindparam("more_counted"),
        dropped=sites.c.dropped + bindparam("more_dropped"),
        counted_at=func.coalesce(bindparam("at", type_=Double), sites.c.counted_at),
    )
)
_TRY = (
    update(pending)
    .where(pending.c.number == bindparam("of_number"))
    .values(attempts=pending.c.attempts + 1)
)
_LOST = select(uploads.c.number, uploads.c.campaign, uploads.c.site, uploads.c.records).where(
    uploads.c.state == "accepted",
    uploads.c.round.is_(None),  # answers of score campaigns never wait
    ~exists().where(pending.c.number == uploads.c.number),
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
        campaigns.c.digest.in_(bindparam("digests", expanding=True)),
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


def after(connection: Connection, number: int, but: Collection[str]) -> Iterator[AnyRow]:
    """What waits, oldest first, but not of these campaigns, and about as much as a batch takes.

    Read as it is asked for.
    """
    values = {"after": number, "but": list(but), "most": MOST_UPLOADS, "bytes": MOST_BYTES}
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


def lock_sites(connection: Connection, places: Iterable[tuple[str, str]]) -> None:
    """Have these sites, by campaign and name, change in nobody else's hands until the commit."""
    names: dict[str, list[str]] = {}
    for campaign, site in places:
        names.setdefault(campaign, []).append(site)
    for campaign in sorted(names):
        values = {"of_campaign": campaign, "names": names[campaign]}
        connection.execute(_LOCK_SITES, values)


def lock_campaigns(connection: Connection, digests: Collection[str]) -> None:
    """Have these campaigns change in nobody else's hands until the commit."""
    connection.execute(_LOCK_CAMPAIGNS, {"digests": list(digests)})


def sketch(connection: Connection, campaign: str, site: str) -> AnyRow:
    """The counts of a site."""
    return connection.execute(_SKETCH, {"of_campaign": campaign, "of_site": site}).one()


def fold(
    connection: Connection,
    group: dict[str, Any],
    tally: dict[str, Any],
    dropped: Sequence[dict[str, Any]],
) -> None:
    """Store a site's new counts, and say so of the uploads."""
    connection.execute(_TALLY, tally)
    if dropped:
        connection.execute(_MARK_DROPPED, dropped)
    connection.execute(_MARK, group)


def erase(connection: Connection, group: dict[str, Any]) -> int:
    """Erase what waits of a group: how many uploads that were."""
    return connection.execute(_ERASE, group).rowcount


def to_finish(connection: Connection, now: float) -> Sequence[str]:
    """Label campaigns whose date has passed, and those that close with nothing left to count."""
    something = exists().where(pending.c.campaign == campaigns.c.digest)
    statement = select(campaigns.c.digest).where(
        campaigns.c.method == "labels",
        or_(
            (campaigns.c.state == "open") & (campaigns.c.closes_at <= now),
            (campaigns.c.state == "closing") & ~something,
        ),
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
    connection.execute(_OPEN_AGAIN, {"digests": list({row.campaign for row in uploads_lost})})
