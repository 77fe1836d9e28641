"""Statements about rounds; several rows are locked in the order campaign, round, site."""

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Integer,
    Select,
    bindparam,
    case,
    exists,
    func,
    insert,
    literal,
    select,
    update,
)

from tacit_aggregator.database.rows import AnyRow
from tacit_aggregator.database.tables import campaigns, rounds, sites, tallies

_TAKES_PART = (
    (sites.c.campaign == campaigns.c.digest) & sites.c.left_at.is_(None) & (sites.c.enrolled > 0)
)
_HAS_DONE = (
    exists()
    .where(
        tallies.c.campaign == rounds.c.campaign,
        tallies.c.round == rounds.c.round,
        tallies.c.site == sites.c.site,
        tallies.c.done_at.is_not(None),
    )
    .correlate(rounds, sites)  # or it would look through all rounds that there ever were
)
_OPEN_ROUND = (rounds.c.campaign == campaigns.c.digest) & (rounds.c.state == "open")


def _count(what: ColumnElement[Any], *where: ColumnElement[bool]) -> ColumnElement[Any]:
    # PostgreSQL's sums of integers are none.
    whole = func.coalesce(what, 0).cast(BigInteger)
    return select(whole).where(*where).scalar_subquery()


_ANSWERS = _count(
    func.sum(tallies.c.answers),
    tallies.c.campaign == rounds.c.campaign,
    tallies.c.round == rounds.c.round,
)
_SEARCHES: Select[Any] = (
    select(
        campaigns.c.digest,
        campaigns.c.key,
        campaigns.c.state,
        campaigns.c.closed_by,
        campaigns.c.opens_at,
        campaigns.c.closes_at,
        campaigns.c.planned_n,
        campaigns.c.asked_n,
        campaigns.c.enrol_until,
        campaigns.c.least,
        rounds.c.round,
        rounds.c.question,
        rounds.c.signed,
        rounds.c.ends_at,
        rounds.c.extensions,
        _count(func.sum(sites.c.enrolled), _TAKES_PART).label("enrolled"),
        _count(func.count(), _TAKES_PART).label("sites"),
        _count(func.count(), _TAKES_PART, ~_HAS_DONE).label("waiting_sites"),
        _ANSWERS.label("answers"),
    )
    .select_from(campaigns.outerjoin(rounds, _OPEN_ROUND))
    .where(campaigns.c.method == "scores")
    .order_by(campaigns.c.digest)
)
_UNFINISHED = _SEARCHES.where(campaigns.c.state.in_(("open", "closing")))
_THESE = _SEARCHES.where(campaigns.c.digest.in_(bindparam("digests", expanding=True)))
_LOCK_CAMPAIGN = (
    select(campaigns.c.digest)
    .where(campaigns.c.digest == bindparam("campaign"))
    .with_for_update(key_share=True)
)
_LOCK_ROUND = (
    select(rounds.c.round)
    .where(rounds.c.campaign == bindparam("campaign"), rounds.c.state == "open")
    .with_for_update(key_share=True)
)
_LOCK_ROUNDS = (
    select(rounds.c.round)
    .where(rounds.c.campaign == bindparam("campaign"))
    .order_by(rounds.c.round)
    .with_for_update(key_share=True)
)
_HOLD_ROUND = (
    select(rounds.c.state, rounds.c.digest)
    .where(rounds.c.campaign == bindparam("campaign"), rounds.c.round == bindparam("number"))
    .with_for_update(read=True)
)
_LOCK_SITE = (
    select(sites.c.enrolled, sites.c.left_at)
    .where(sites.c.campaign == bindparam("campaign"), sites.c.site == bindparam("name"))
    .with_for_update(key_share=True)
)
_OF_ROUND = (tallies.c.campaign == bindparam("of_campaign")) & (
    tallies.c.round == bindparam("of_round")
)
_BY_SITE = (
    select(tallies.c.site, tallies.c.answers, tallies.c.ones)
    .where(_OF_ROUND, tallies.c.answers > 0)
    .order_by(tallies.c.site)
)
_SITE = (sites.c.campaign == bindparam("of_campaign")) & (sites.c.site == bindparam("of_site"))
_COUNT_SITE = (
    update(sites)
    .where(_SITE)
    .values(counted=sites.c.counted + bindparam("more"), counted_at=bindparam("at"))
)
_DROP_SITE = update(sites).where(_SITE).values(dropped=sites.c.dropped + bindparam("more"))
_ROUND = (rounds.c.campaign == bindparam("of_campaign")) & (rounds.c.round == bindparam("of_round"))
_CLOSE = (
    update(rounds)
    .where(_ROUND)
    .values(
        state=bindparam("how"),
        closed_at=bindparam("at"),
        ones=bindparam("all_ones"),
        answers=bindparam("all_answers"),
        sites=bindparam("all_sites"),
    )
)
_INSERT_ROUND = insert(rounds)
_EXTEND = (
    update(rounds)
    .where(_ROUND)
    .values(ends_at=bindparam("until"), extensions=rounds.c.extensions + 1)
)
_ASK = (
    update(campaigns)
    .where(campaigns.c.digest == bindparam("of_campaign"))
    .values(asked_n=bindparam("asked"), least=bindparam("at_least"))
)
# Nobody enrols once there is a question, so all that can answer it are here.
_OPEN_TALLIES = insert(tallies).from_select(
    ["campaign", "round", "site", "answers", "ones"],
    select(
        sites.c.campaign, bindparam("of_round", type_=Integer), sites.c.site, literal(0), literal(0)
    ).where(sites.c.campaign == bindparam("of_campaign"), sites.c.enrolled > 0),
)
_TALLY = _OF_ROUND & (tallies.c.site == bindparam("of_site"))
_ANSWERS_OF_SITE = select(tallies.c.answers).where(_TALLY)
_MARK_DONE = update(tallies).where(_TALLY).values(done_at=bindparam("at"))


def unfinished(connection: Connection) -> Sequence[AnyRow]:
    """Every search that is not over: its open round, and what it waits for."""
    return connection.execute(_UNFINISHED).all()


def searches(connection: Connection, digests: Collection[str]) -> Sequence[AnyRow]:
    """The same of these campaigns, over or not."""
    return connection.execute(_THESE, {"digests": list(digests)}).all()


def lock(connection: Connection, campaign: str) -> None:
    """Keep answers, done marks and other processes from a campaign and its open round."""
    connection.execute(_LOCK_CAMPAIGN, {"campaign": campaign})
    connection.execute(_LOCK_ROUND, {"campaign": campaign})


def lock_all(connection: Connection, campaign: str) -> None:
    """Keep answers, late ones too, and done marks from all rounds of a campaign that is locked."""
    connection.execute(_LOCK_ROUNDS, {"campaign": campaign})


def hold(connection: Connection, campaign: str, number: int) -> AnyRow | None:
    """A round, which nobody closes until this transaction has ended."""
    return connection.execute(_HOLD_ROUND, {"campaign": campaign, "number": number}).one_or_none()


def lock_site(connection: Connection, campaign: str, name: str) -> AnyRow | None:
    """A site, of which nothing else is stored until this transaction has ended."""
    return connection.execute(_LOCK_SITE, {"campaign": campaign, "name": name}).one_or_none()


def of_campaigns(connection: Connection, digests: Collection[str]) -> Sequence[AnyRow]:
    """All rounds of these campaigns in their order; of open ones, the answers so far."""
    answers = case((rounds.c.state == "open", _ANSWERS), else_=rounds.c.answers)
    statement = select(
        rounds.c.campaign,
        rounds.c.round,
        rounds.c.question,
        rounds.c.state,
        rounds.c.ends_at,
        rounds.c.extensions,
        rounds.c.ones,
        rounds.c.sites,
        answers.label("answers"),
    ).where(rounds.c.campaign.in_(digests))
    return connection.execute(statement.order_by(rounds.c.campaign, rounds.c.round)).all()


def done_with_open(connection: Connection, digests: Collection[str]) -> Sequence[AnyRow]:
    """Which sites have marked the open rounds of these campaigns done."""
    of_round = (rounds.c.campaign == tallies.c.campaign) & (rounds.c.round == tallies.c.round)
    statement = (
        select(tallies.c.campaign, tallies.c.site)
        .join(rounds, of_round)
        .where(
            tallies.c.campaign.in_(digests),
            tallies.c.done_at.is_not(None),
            rounds.c.state == "open",
        )
    )
    return connection.execute(statement).all()


def ask(connection: Connection, campaign: str, asked_n: int, least: int) -> None:
    """From now on nobody enrols: the search is for so many records, and rounds take `least`."""
    values = {"of_campaign": campaign, "asked": asked_n, "at_least": least}
    connection.execute(_ASK, values)


def store(connection: Connection, values: dict[str, Any]) -> None:
    """A round that is opened, with a tally for each site."""
    connection.execute(_INSERT_ROUND, values)
    of = {"of_campaign": values["campaign"], "of_round": values["round"]}
    connection.execute(_OPEN_TALLIES, of)


def extend(connection: Connection, campaign: str, number: int, until: float) -> None:
    """Have a round wait longer."""
    connection.execute(_EXTEND, {"of_campaign": campaign, "of_round": number, "until": until})


def count(connection: Connection, campaign: str, number: int, now: float) -> None:
    """Close a round with the answers that it has, and count them."""
    by_site = _close(connection, campaign, number, "closed", now)
    if by_site:
        connection.execute(_COUNT_SITE, [{**one, "at": now} for one in by_site])


def drop(connection: Connection, campaign: str, now: float) -> None:
    """Close the open round of a campaign, if there is one, without counting its answers."""
    number = connection.execute(_LOCK_ROUND, {"campaign": campaign}).scalar_one_or_none()
    if number is None:
        return
    by_site = _close(connection, campaign, number, "dropped", now)
    if by_site:
        connection.execute(_DROP_SITE, by_site)


def answers_of_site(connection: Connection, campaign: str, number: int, site: str) -> int:
    """How many answers of a site to an open round are stored."""
    of = {"of_campaign": campaign, "of_round": number, "of_site": site}
    return int(connection.execute(_ANSWERS_OF_SITE, of).scalar_one_or_none() or 0)


def mark_done(connection: Connection, campaign: str, number: int, site: str, now: float) -> None:
    """Note that a site has given all its answers."""
    of = {"of_campaign": campaign, "of_round": number, "of_site": site}
    connection.execute(_MARK_DONE, {**of, "at": now})


def _close(
    connection: Connection, campaign: str, number: int, how: str, now: float
) -> list[dict[str, Any]]:
    """Close a round: by how much the numbers of each site that answered grow."""
    of = {"of_campaign": campaign, "of_round": number}
    by_site = connection.execute(_BY_SITE, of).all()
    counted = by_site if how == "closed" else ()
    connection.execute(
        _CLOSE,
        {
            **of,
            "how": how,
            "at": now,
            "all_ones": sum(row.ones for row in counted),
            "all_answers": sum(row.answers for row in counted),
            "all_sites": len(counted),
        },
    )
    return [{"of_campaign": campaign, "of_site": row.site, "more": row.answers} for row in by_site]
