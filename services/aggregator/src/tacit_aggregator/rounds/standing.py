"""Where searches stand, from their rows: for a campaign's status, and for whoever waits."""

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from tacit.conformal import Answers, Question
from tacit.protocol import (
    CampaignState,
    CurrentRound,
    RoundState,
    RoundStatus,
    ScoreCampaign,
    SearchState,
    Signed,
)
from tacit_aggregator.campaigns.documents import Documents
from tacit_aggregator.database.engine import Database
from tacit_aggregator.database.rows import AnyRow
from tacit_aggregator.results import queries as results
from tacit_aggregator.rounds import queries, sentences


@dataclass(frozen=True, eq=False)
class SearchNow:
    """A search as its campaign's status shows it."""

    terms: ScoreCampaign
    search: AnyRow
    rounds: Sequence[AnyRow]
    done: Collection[str]
    """The sites that are done with the open round."""
    has_result: bool

    @property
    def enrolled(self) -> int:
        """The records of those that take part."""
        return int(self.search.enrolled)

    def waiting_for(self, now: float) -> Iterable[str]:
        """Why there is no final result yet; nothing if there is one."""
        if self.search.state != CampaignState.CLOSED:
            yield sentences.waits(self.search, self.terms, now)
        elif not self.has_result:
            reason = sentences.no_result(self.search.asked_n, self.search.closed_by, self.terms)
            yield f"{reason} There will be no result."

    def round_statuses(
        self, sites: Sequence[AnyRow], now: float, only: str | None
    ) -> tuple[RoundStatus, ...]:
        """Every round that was opened; `only` is the one site that may be shown."""
        waiting = [
            site.site
            for site in sites
            if site.left_at is None and site.enrolled and site.site not in self.done
        ]
        return tuple(self._status(row, waiting, now, only) for row in self.rounds)

    def _status(
        self, row: AnyRow, waiting: Sequence[str], now: float, only: str | None
    ) -> RoundStatus:
        question = Question.from_json(row.question)
        is_open = row.state == RoundState.OPEN
        awaited = waiting if is_open else ()
        return RoundStatus(
            round=row.round,
            state=RoundState.OPEN if is_open else RoundState.CLOSED,
            threshold=question.threshold,
            low=question.low,
            high=question.high,
            answers=int(row.answers),
            sites=None if is_open else row.sites,
            coverage=None if is_open or not row.answers else self._coverage(row),
            ends_in=max(0.0, row.ends_at - now) if is_open else 0.0,
            extensions=row.extensions,
            waiting_sites=len(awaited),
            waiting_for=tuple(site for site in awaited if only in (None, site)),
        )

    def _coverage(self, row: AnyRow) -> float:
        machine = self.terms.state_machine(self.search.asked_n)
        return float(machine.estimate(Answers(row.ones, row.answers)))


def searches_now(
    connection: Connection, documents: Documents, digests: Collection[str]
) -> dict[str, SearchNow]:
    """Where the searches of these campaigns stand; label campaigns have none."""
    found = queries.searches(connection, digests)
    of_scores = [search.digest for search in found]
    if not of_scores:
        return {}
    rounds, done = defaultdict(list), defaultdict(set)
    for row in queries.of_campaigns(connection, of_scores):
        rounds[row.campaign].append(row)
    for row in queries.done_with_open(connection, of_scores):
        done[row.campaign].add(row.site)
    ended = results.with_threshold(connection, of_scores)
    return {
        search.digest: SearchNow(
            terms.scores, search, rounds[search.digest], done[search.digest], search.digest in ended
        )
        for search in found
        if (terms := documents.read(connection, search.digest)) is not None
    }


@dataclass(frozen=True, eq=False)
class Snapshot:
    """What is asked now, and when that was read."""

    current: CurrentRound
    read_at: float
    """When the reading began, by the clock that only counts on."""

    def is_news(self, after: int) -> bool:
        """Whether there is something to tell to whoever knows the rounds up to `after`."""
        asked = self.current.round
        return self.current.state is SearchState.OVER or (asked is not None and asked > after)

    def aged(self) -> CurrentRound:
        """The same with the seconds that remain now."""
        left = max(0.0, self.current.ends_in - (time.monotonic() - self.read_at))
        return self.current.model_copy(update={"ends_in": left})


def reader(
    database: Database, documents: Documents
) -> Callable[[Collection[str]], dict[str, Snapshot]]:
    """What reads snapshots of campaigns, all in one look at the database."""

    def read(digests: Collection[str]) -> dict[str, Snapshot]:
        read_at = time.monotonic()
        with database.read() as connection:
            now = database.now(connection)
            return {
                search.digest: Snapshot(_current(search, terms.scores, now), read_at)
                for search in queries.searches(connection, digests)
                if (terms := documents.read(connection, search.digest)) is not None
            }

    return read


def _current(search: AnyRow, terms: ScoreCampaign, now: float) -> CurrentRound:
    state, ends_at = SearchState.OVER, now
    if search.state == CampaignState.OPEN and now < search.closes_at:
        if search.round is not None:
            state, ends_at = SearchState.OPEN, search.ends_at
        else:
            state = SearchState.ENROLLING
            everybody = search.enrolled >= search.planned_n
            ends_at = search.opens_at if everybody else terms.rounds.enrol_until.timestamp()
    is_open = state is SearchState.OPEN
    return CurrentRound(
        campaign=search.digest,
        state=state,
        round=search.round if is_open else None,
        question=Signed.model_validate_json(search.signed) if is_open else None,
        ends_in=max(0.0, ends_at - now),
        waiting_for=sentences.waits(search, terms, now),
    )
