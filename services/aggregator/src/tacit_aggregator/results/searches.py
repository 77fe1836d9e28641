"""Thresholds of score campaigns: there is one, stored when the search has ended, or none."""

from sqlalchemy import Connection

from tacit.protocol import CampaignState, Problems, Signed, ThresholdKind
from tacit_aggregator.campaigns.documents import Terms
from tacit_aggregator.campaigns.queries import ABANDONED
from tacit_aggregator.database.rows import AnyRow
from tacit_aggregator.errors import Refusal
from tacit_aggregator.results import queries
from tacit_aggregator.rounds import queries as rounds
from tacit_aggregator.rounds import sentences

_LONGEST_WAIT = 30.0
_ENDING_SECONDS = 1.0


def threshold_of_search(
    connection: Connection, terms: Terms, which: ThresholdKind, now: float
) -> Signed:
    """The stored threshold, or a refusal that says what it waits for or why there is none."""
    stored = queries.signed(connection, terms.digest, which)
    if stored is not None:
        return Signed.model_validate_json(stored)
    kind = ThresholdKind.NOMINAL if terms.scores.delta is None else ThresholdKind.STARRED
    if which is not kind:
        has = "no δ" if which is ThresholdKind.STARRED else "δ"
        detail = f"The campaign has {has}, and so its threshold is {kind.value}."
        raise Refusal(Problems.NO_THRESHOLD, detail)
    (search,) = rounds.searches(connection, [terms.digest])
    if search.state == CampaignState.ABANDONED:
        raise Refusal(Problems.NO_THRESHOLD, ABANDONED)
    if search.state == CampaignState.CLOSED:
        reason = sentences.no_result(search.asked_n, search.closed_by, terms.scores)
        raise Refusal(Problems.NO_THRESHOLD, reason)
    raise Refusal(
        Problems.NOT_READY,
        sentences.waits(search, terms.scores, now),
        retry_after=_seconds_to_wait(search, terms, now),
    )


def _seconds_to_wait(search: AnyRow, terms: Terms, now: float) -> float:
    """Until something may happen, but not for long: everybody may be done before."""
    if search.state == CampaignState.CLOSING or now >= search.closes_at:
        return _ENDING_SECONDS
    next_event = search.ends_at
    if search.round is None:
        next_event = max(search.opens_at, terms.scores.rounds.enrol_until.timestamp())
    return float(min(_LONGEST_WAIT, max(_ENDING_SECONDS, next_event - now)))
