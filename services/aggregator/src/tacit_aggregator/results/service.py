"""Thresholds: the nominal one of what is counted so far, the starred one once, at the end."""

import threading
from collections import OrderedDict

from sqlalchemy import Connection

from tacit.protocol import CampaignState, ClosedBy, Problems, Signed, Tally, ThresholdKind
from tacit_aggregator.campaigns.documents import Documents, Terms
from tacit_aggregator.campaigns.queries import sites_of
from tacit_aggregator.campaigns.service import visible
from tacit_aggregator.campaigns.standing import (
    progress,
    state_of,
    tally,
    waiting_to_be_scored,
)
from tacit_aggregator.clock import moment
from tacit_aggregator.database.engine import Database
from tacit_aggregator.database.rows import AnyRow
from tacit_aggregator.errors import Refusal
from tacit_aggregator.keys.service import key_by_fingerprint
from tacit_aggregator.results import queries
from tacit_aggregator.results.searches import threshold_of_search
from tacit_aggregator.results.statement import threshold_of
from tacit_aggregator.tokens.service import Identity

_SCORING_SECONDS = 2.0
_WAITING_SECONDS = 30.0
_MOST_REMEMBERED = 64
_ONE_IS_ENOUGH = "No record is counted yet; this threshold is there from the first one on."


class Thresholds:
    """Finds, makes and signs thresholds; the same counts give the same bytes."""

    def __init__(self, database: Database, documents: Documents, secret: bytes) -> None:
        self._database = database
        self._documents = documents
        self._secret = secret
        self._lock = threading.Lock()
        self._remembered: OrderedDict[tuple[str, int, bool], Signed] = OrderedDict()

    def get(self, caller: Identity, digest: str, which: ThresholdKind) -> Signed:
        """The signed threshold, or a refusal that says what is missing."""
        terms = self._documents.get(digest)
        with self._database.read() as connection:
            campaign = visible(connection, caller, digest)
            if terms is None:
                raise Refusal(Problems.NOT_FOUND)
            if terms.campaign.method == "scores":
                now = self._database.now(connection)
                return threshold_of_search(connection, terms, which, now)
            if which is ThresholdKind.STARRED:
                return self._starred(connection, terms, campaign)
            return self._nominal(connection, terms, campaign)

    def _starred(self, connection: Connection, terms: Terms, campaign: AnyRow) -> Signed:
        stored = queries.signed(connection, terms.digest, ThresholdKind.STARRED)
        if stored is not None:
            return Signed.model_validate_json(stored)
        if terms.campaign.delta is None:
            raise _never("The campaign has no δ.")
        if campaign.closed_by == ClosedBy.HAND:
            raise _never("The campaign was closed by hand.")
        records = tally(sites_of(connection, [terms.digest]))
        raise _missing(campaign, records, self._database.now(connection), at_the_end=True)

    def _nominal(self, connection: Connection, terms: Terms, campaign: AnyRow) -> Signed:
        records = tally(sites_of(connection, [terms.digest]))
        if not records.counted or campaign.state == CampaignState.ABANDONED:
            raise _missing(campaign, records, self._database.now(connection), at_the_end=False)
        final = campaign.state == CampaignState.CLOSED
        key = (terms.digest, records.counted, final)
        with self._lock:
            known = self._remembered.get(key)
        if known is None:
            known = _signed(
                connection, terms, campaign.key, self._secret, ThresholdKind.NOMINAL, final=final
            )
            with self._lock:
                self._remembered[key] = known
                while len(self._remembered) > _MOST_REMEMBERED:
                    self._remembered.popitem(last=False)
        return known


def store_starred(
    connection: Connection, terms: Terms, key: str, secret: bytes, now: float
) -> None:
    """Make the starred threshold of a campaign that has counted everything, if it has a δ."""
    if terms.campaign.delta is None or not queries.sketches(connection, terms.digest):
        return
    which = ThresholdKind.STARRED
    signed = _signed(connection, terms, key, secret, which, final=True)
    queries.store(connection, terms.digest, which.value, signed.model_dump_json(), now)


def _signed(
    connection: Connection,
    terms: Terms,
    key: str,
    secret: bytes,
    which: ThresholdKind,
    *,
    final: bool,
) -> Signed:
    threshold = threshold_of(
        terms.labels, terms.digest, queries.sketches(connection, terms.digest), which, final
    )
    return key_by_fingerprint(connection, secret, key).sign(threshold)


def _missing(campaign: AnyRow, records: Tally, now: float, *, at_the_end: bool) -> Refusal:
    state = state_of(campaign, now)
    if state is CampaignState.ABANDONED:
        return _never("The campaign was abandoned.")
    if state is CampaignState.CLOSED:
        return _never("The campaign closed without a counted record.")
    if state is CampaignState.CLOSING or (records.pending and not at_the_end):
        return Refusal(
            Problems.NOT_READY,
            f"{_are_counted(records)}; {waiting_to_be_scored(records)}",
            retry_after=_SCORING_SECONDS,
        )
    awaited = progress(campaign, records) if at_the_end else _ONE_IS_ENOUGH
    next_event = campaign.closes_at
    if state is CampaignState.WAITING:
        next_event = campaign.opens_at
        awaited += f" The campaign opens on {moment(next_event)}."
    wait = min(_WAITING_SECONDS, max(1.0, next_event - now))
    return Refusal(Problems.NOT_READY, awaited, retry_after=wait)


def _never(detail: str) -> Refusal:
    return Refusal(Problems.NO_THRESHOLD, detail)


def _are_counted(records: Tally) -> str:
    one = records.counted == 1
    return f"{records.counted} {'record is' if one else 'records are'} counted"
