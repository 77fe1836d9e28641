"""Done marks, and the rounds that a caller may look at."""

from sqlalchemy import Connection

from tacit.protocol import Problems, Role, RoundState, RoundStatus
from tacit_aggregator.campaigns.documents import Documents, Terms
from tacit_aggregator.campaigns.queries import sites_of
from tacit_aggregator.errors import Refusal
from tacit_aggregator.rounds import queries
from tacit_aggregator.rounds.standing import searches_now
from tacit_aggregator.tokens.service import Identity


def check_visible(terms: Terms | None, caller: Identity) -> None:
    """Refuse a caller who may not see this campaign, and a campaign that has no rounds."""
    if terms is None or terms.campaign.method != "scores":
        raise Refusal(Problems.NOT_FOUND)
    if caller.role is Role.CONTRIBUTOR and caller.campaign != terms.digest:
        raise Refusal(Problems.NOT_FOUND)
    if caller.role is Role.OWNER and caller.name != terms.campaign.owner:
        raise Refusal(Problems.NOT_FOUND)


def mark_done(
    connection: Connection, campaign: str, number: int, site: str, answers: int, now: float
) -> None:
    """Note that a site has given all its answers of a round; of a closed one: no effect."""
    found = queries.hold(connection, campaign, number)
    if found is None:
        raise Refusal(Problems.WRONG_QUESTION, "The question of this round was not asked yet.")
    if found.state != RoundState.OPEN:
        return
    row = queries.lock_site(connection, campaign, site)
    if row is None or row.left_at is not None:
        raise Refusal(Problems.NOT_ENROLLED, "The site has not enrolled, or it has left.")
    stored = queries.answers_of_site(connection, campaign, number, site)
    if stored != answers:
        raise Refusal(
            Problems.ANSWERS_MISSING,
            f"{stored} answers of this site are stored in this round, not {answers}.",
        )
    queries.mark_done(connection, campaign, number, site, now)


def round_status(
    connection: Connection, documents: Documents, campaign: str, number: int, site: str, now: float
) -> RoundStatus:
    """One round as a site sees it."""
    search = searches_now(connection, documents, [campaign])[campaign]
    sites = sites_of(connection, [campaign])
    return search.round_statuses(sites, now, only=site)[number]
