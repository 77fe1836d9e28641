"""What a search waits for, and why it found nothing, in sentences."""

import math

from tacit.protocol import CampaignState, ClosedBy, ScoreCampaign
from tacit_aggregator.clock import moment
from tacit_aggregator.database.rows import AnyRow

ABANDONED = "The campaign was abandoned: there will be no result."
ENDED = "The search has ended."
ENDING = "The search has ended, and the campaign is being closed."


def enrolling(search: AnyRow, terms: ScoreCampaign, now: float) -> str:
    """What is missing before the first question."""
    latest = moment(terms.rounds.enrol_until.timestamp())
    said = (
        f"{search.enrolled} of {search.planned_n} planned records enrolled; the first question is"
        f" asked on {latest} at the latest."
    )
    if now < search.opens_at:
        said = f"The campaign opens on {moment(search.opens_at)}. {said}"
    return said


def round_open(search: AnyRow, terms: ScoreCampaign, now: float) -> str:
    """Whom the open round waits for, and why it waits longer than planned."""
    this = f"Round {search.round + 1} of {terms.round_count}"
    left = search.ends_at - now
    if not search.waiting_sites or (left <= 0 and search.answers >= search.least):
        return f"{this} is being closed."
    if left <= 0:
        return f"{this} is being extended."
    said = (
        f"{this} waits for {search.waiting_sites} of {_many(search.sites, 'site')};"
        f" it may close in {math.ceil(left)} s."
    )
    if search.extensions:
        times = "once" if search.extensions == 1 else f"{search.extensions} times"
        said += (
            f" It was extended {times}: {_many(search.answers, 'answer')},"
            f" at least {search.least} needed."
        )
    return said


def waits(search: AnyRow, terms: ScoreCampaign, now: float) -> str:
    """Why nothing else is asked yet."""
    if search.state == CampaignState.ABANDONED:
        said = ABANDONED
    elif search.state == CampaignState.CLOSED:
        said = ENDED
    elif search.state == CampaignState.CLOSING or now >= search.closes_at:
        said = ENDING
    elif search.round is None:
        said = enrolling(search, terms, now)
    else:
        said = round_open(search, terms, now)
    return said


def no_result(asked_n: int | None, closed_by: str | None, terms: ScoreCampaign) -> str:
    """Why a campaign that closed without a threshold has none."""
    if asked_n is None:
        return "The campaign ended before its first question."
    if not asked_n:
        return "Nobody had enrolled when the first question was due."
    if terms.delta is None and asked_n < terms.round_count:
        return (
            f"{_many(asked_n, 'record')} enrolled, fewer than the {terms.round_count} rounds of"
            " the search."
        )
    if terms.delta is not None and closed_by == ClosedBy.HAND:
        return "The campaign was closed by hand."
    return "The campaign closed without a counted answer."


def _many(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
