"""Statements of ingest; each is compiled once, and none is run per record."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, case, insert, literal, select, update

from tacit_aggregator.campaigns.queries import ABANDONED
from tacit_aggregator.database.rows import AnyRow
from tacit_aggregator.database.tables import (
    campaigns,
    counters,
    pending,
    rounds,
    sites,
    tallies,
    uploads,
)

_MOST_IDS = 500

# Answers that were accepted share the fate of their round; closing it touches none of their rows.
_WITH_ROUND = uploads.outerjoin(
    rounds, (rounds.c.campaign == uploads.c.campaign) & (rounds.c.round == uploads.c.round)
)
_IS_COUNTED = (uploads.c.state == "accepted") & (rounds.c.state == "closed")
_IS_DROPPED = (uploads.c.state == "accepted") & (rounds.c.state == "dropped")
_STATE = case(
    (_IS_COUNTED, literal("counted")), (_IS_DROPPED, literal("dropped")), else_=uploads.c.state
).label("state")
_REASON = case((_IS_DROPPED, literal(ABANDONED)), else_=uploads.c.reason).label("reason")
_STORED = (
    select(uploads.c.upload, uploads.c.body_hash, _STATE, _REASON)
    .select_from(_WITH_ROUND)
    .where(
        uploads.c.campaign == bindparam("campaign"),
        uploads.c.site == bindparam("site"),
        uploads.c.upload.in_(bindparam("ids", expanding=True)),
    )
)
_CAMPAIGNS = (
    select(
        campaigns.c.digest,
        campaigns.c.state,
        campaigns.c.opens_at,
        campaigns.c.closes_at,
        campaigns.c.planned_n,
        campaigns.c.received,
    )
    .where(campaigns.c.digest.in_(bindparam("digests", expanding=True)))
    .order_by(campaigns.c.digest)
    .with_for_update(key_share=True)
)
_SITES = (
    select(sites.c.site, sites.c.enrolled, sites.c.left_at, sites.c.received)
    .where(
        sites.c.campaign == bindparam("campaign"),
        sites.c.site.in_(bindparam("names", expanding=True)),
    )
    .order_by(sites.c.site)
    .with_for_update(key_share=True)
)
_ANSWERING = (
    select(
        sites.c.site,
        sites.c.enrolled,
        sites.c.left_at,
        sites.c.received,
        sites.c.late,
        campaigns.c.state,
        campaigns.c.closes_at,
    )
    .join(campaigns, campaigns.c.digest == sites.c.campaign)
    .where(
        sites.c.campaign == bindparam("campaign"),
        sites.c.site.in_(bindparam("names", expanding=True)),
    )
    .order_by(sites.c.site)
    .with_for_update(key_share=True, of=sites)
)
_TALLY = (
    update(tallies)
    .where(
        tallies.c.campaign == bindparam("of_campaign"),
        tallies.c.round == bindparam("of_round"),
        tallies.c.site == bindparam("of_site"),
    )
    .values(
        answers=tallies.c.answers + bindparam("more_answers"),
        ones=tallies.c.ones + bindparam("more_ones"),
    )
)
_NUMBERS = (
    update(counters)
    .where(counters.c.name == "uploads")
    .values(value=counters.c.value + bindparam("more"))
    .returning(counters.c.value)
)
_RECEIVE_SITE = (
    update(sites)
    .where(sites.c.campaign == bindparam("of_campaign"), sites.c.site == bindparam("of_site"))
    .values(received=bindparam("now_received"))
)
_RECEIVE_ANSWERS = _RECEIVE_SITE.values(late=bindparam("now_late"))
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
    select(uploads.c.upload, uploads.c.records, _STATE, _REASON)
    .select_from(_WITH_ROUND)
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


def lock_campaigns(connection: Connection, digests: Collection[str]) -> Sequence[AnyRow]:
    """State and numbers of these campaigns, which stay as they are until the commit."""
    return connection.execute(_CAMPAIGNS, {"digests": list(digests)}).all()


def lock_sites(connection: Connection, campaign: str, names: Collection[str]) -> Sequence[AnyRow]:
    """The numbers of these sites of a campaign, those that enrolled.

    Until the commit they stay as they are, and no other transaction stores uploads of these sites.
    """
    return connection.execute(_SITES, {"campaign": campaign, "names": list(names)}).all()


def lock_answering(
    connection: Connection, campaign: str, names: Collection[str]
) -> Sequence[AnyRow]:
    """The same of a score campaign, with the campaign's state and end beside each."""
    return connection.execute(_ANSWERING, {"campaign": campaign, "names": list(names)}).all()


def next_number(connection: Connection, uploads_: int) -> int:
    """The first of the numbers of so many new uploads.

    Nobody else gets numbers until the commit, so call this when little is left to do.
    """
    last: int = connection.execute(_NUMBERS, {"more": uploads_}).scalar_one()
    return last - uploads_ + 1


def store(connection: Connection, new_uploads: Rows, new_pending: Rows) -> None:
    """Uploads and what is to be counted of them."""
    connection.execute(_INSERT_UPLOADS, new_uploads)
    connection.execute(_INSERT_PENDING, new_pending)


def store_answers(connection: Connection, new_uploads: Rows) -> None:
    """Uploads of answers, whose bits are in the tallies."""
    connection.execute(_INSERT_UPLOADS, new_uploads)


def tally(connection: Connection, more: Rows) -> None:
    """Add to what sites have answered in rounds."""
    connection.execute(_TALLY, more)


def receive_answers(connection: Connection, of_sites: Rows) -> None:
    """The numbers of answers received and late, as they are now."""
    connection.execute(_RECEIVE_ANSWERS, of_sites)


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
