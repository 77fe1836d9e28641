"""Statements of ingest; each is compiled once, and none is run per record."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, func, insert, select, update

from tacit_aggregator.database.rows import AnyRow
from tacit_aggregator.database.tables import campaigns, pending, sites, uploads

_MOST_IDS = 500

_STORED = select(uploads.c.upload, uploads.c.body_hash, uploads.c.state, uploads.c.reason).where(
    uploads.c.campaign == bindparam("campaign"),
    uploads.c.site == bindparam("site"),
    uploads.c.upload.in_(bindparam("ids", expanding=True)),
)
_STANDING = (
    select(
        campaigns.c.state,
        campaigns.c.opens_at,
        campaigns.c.closes_at,
        campaigns.c.planned_n,
        campaigns.c.received.label("campaign_received"),
        sites.c.enrolled,
        sites.c.left_at,
        sites.c.received.label("site_received"),
        select(func.coalesce(func.max(uploads.c.number), 0)).scalar_subquery().label("last"),
    )
    .select_from(
        campaigns.outerjoin(
            sites,
            (sites.c.campaign == campaigns.c.digest) & (sites.c.site == bindparam("site")),
        )
    )
    .where(campaigns.c.digest == bindparam("campaign"))
)
_RECEIVE_SITE = (
    update(sites)
    .where(sites.c.campaign == bindparam("of_campaign"), sites.c.site == bindparam("of_site"))
    .values(received=bindparam("now_received"))
)
_RECEIVE_CAMPAIGN = (
    update(campaigns)
    .where(campaigns.c.digest == bindparam("of_campaign"))
    .values(received=bindparam("now_received"))
)
_CLOSE_BY_PLAN = (
    update(campaigns)
    .where(campaigns.c.digest == bindparam("of_campaign"))
    .values(state="closing", closed_by="plan", closed_at=bindparam("at"))
)
_INSERT_UPLOADS = insert(uploads)
_INSERT_PENDING = insert(pending)
_RECEIPTS = (
    select(uploads.c.upload, uploads.c.records, uploads.c.state, uploads.c.reason)
    .where(
        uploads.c.campaign == bindparam("campaign"),
        uploads.c.site == bindparam("site"),
        uploads.c.number > bindparam("after"),
    )
    .order_by(uploads.c.number)
    .limit(bindparam("most"))
)
_NUMBER = select(uploads.c.number).where(
    uploads.c.campaign == bindparam("campaign"),
    uploads.c.site == bindparam("site"),
    uploads.c.upload == bindparam("upload"),
)

Rows = Sequence[Mapping[str, Any]]


def stored(
    connection: Connection, campaign: str, site: str, ids: Sequence[str]
) -> Iterator[AnyRow]:
    """Those of these uploads that are stored already."""
    for start in range(0, len(ids), _MOST_IDS):
        part = list(ids[start : start + _MOST_IDS])
        yield from connection.execute(_STORED, {"campaign": campaign, "site": site, "ids": part})


def standing(connection: Connection, campaign: str, site: str) -> AnyRow | None:
    """The campaign's state, the site's numbers and the newest upload of all.

    The site's are None if it has not enrolled.
    """
    return connection.execute(_STANDING, {"campaign": campaign, "site": site}).one_or_none()


def store(connection: Connection, new_uploads: Rows, new_pending: Rows) -> None:
    """Uploads and what is to be counted of them."""
    connection.execute(_INSERT_UPLOADS, new_uploads)
    connection.execute(_INSERT_PENDING, new_pending)


def receive(connection: Connection, of_sites: Rows, of_campaigns: Rows) -> None:
    """The numbers of records received, as they are now."""
    connection.execute(_RECEIVE_SITE, of_sites)
    connection.execute(_RECEIVE_CAMPAIGN, of_campaigns)


def close_by_plan(connection: Connection, campaign: str, now: float) -> None:
    """The plan is reached: take no more."""
    connection.execute(_CLOSE_BY_PLAN, {"of_campaign": campaign, "at": now})


def number_of(connection: Connection, campaign: str, site: str, upload: str) -> int | None:
    """The number of one upload of a site."""
    values = {"campaign": campaign, "site": site, "upload": upload}
    return connection.execute(_NUMBER, values).scalar_one_or_none()


def receipts(
    connection: Connection, campaign: str, site: str, *, after: int, most: int
) -> Sequence[AnyRow]:
    """Uploads of a site in the order they came."""
    values = {"campaign": campaign, "site": site, "after": after, "most": most}
    return connection.execute(_RECEIPTS, values).all()
