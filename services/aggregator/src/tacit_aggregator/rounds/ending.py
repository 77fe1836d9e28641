"""Asking, counting, and ending a search with its signed threshold, in a transaction of others."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from tacit.conformal import Answers, NotCertifiable, Question
from tacit.protocol import (
    CampaignState,
    ClosedBy,
    RoundQuestion,
    RoundResult,
    RoundState,
    SigningKey,
)
from tacit_aggregator.campaigns import queries as campaigns
from tacit_aggregator.campaigns.documents import Terms
from tacit_aggregator.database.rows import AnyRow
from tacit_aggregator.keys.service import key_by_fingerprint
from tacit_aggregator.results import queries as results
from tacit_aggregator.results.score_statement import score_threshold_of
from tacit_aggregator.rounds import queries


@dataclass(frozen=True, repr=False)
class Turn:
    """One step of a search, whose campaign and open round are locked."""

    connection: Connection
    terms: Terms
    search: AnyRow
    secret: bytes
    now: float

    def ask_first(self) -> bool:
        """Ask the first question of those who are enrolled: whether there is one.

        Where they are too few the campaign ends, and nobody spends any privacy.
        """
        terms, asked_n = self.terms.scores, int(self.search.enrolled)
        queries.ask(self.connection, self.terms.digest, asked_n, terms.least(asked_n))
        if asked_n and (terms.delta is not None or asked_n >= terms.round_count):
            first = terms.state_machine(asked_n).start()
            if not isinstance(first, NotCertifiable):
                self._ask(first)
                return True
            self._store_threshold(asked_n, ())
        self._close(ClosedBy.DATE)
        return False

    def count_and_go_on(self) -> bool:
        """Count the open round and ask the next question: whether there is one."""
        queries.count(self.connection, self.terms.digest, self.search.round, self.now)
        last = queries.of_campaigns(self.connection, [self.terms.digest])[-1]
        machine = self.terms.scores.state_machine(self.search.asked_n)
        asked = Question.from_json(self.search.question)
        following = machine.advance(asked, Answers(last.ones, last.answers))
        if isinstance(following, Question):
            self._ask(following)
            return True
        self._end(ClosedBy.PLAN)
        return False

    def extend(self) -> None:
        """Have the open round wait for as long again."""
        until = self.now + self.terms.scores.rounds.seconds
        queries.extend(self.connection, self.terms.digest, self.search.round, until)

    def count_and_end(self) -> None:
        """End the search with what the open round has, if there is one."""
        if self.search.round is not None:
            queries.count(self.connection, self.terms.digest, self.search.round, self.now)
        self._end(ClosedBy(self.search.closed_by or ClosedBy.DATE))

    def _ask(self, question: Question) -> None:
        document = RoundQuestion(
            campaign=self.terms.digest, round=question.round, threshold=question.threshold
        )
        queries.store(
            self.connection,
            {
                "campaign": self.terms.digest,
                "round": question.round,
                "question": question.to_json(),
                "signed": self._key().sign(document).model_dump_json(),
                "digest": document.digest,
                "state": RoundState.OPEN.value,
                "opened_at": self.now,
                "ends_at": self.now + self.terms.scores.rounds.seconds,
                "extensions": 0,
            },
        )

    def _end(self, closed_by: ClosedBy) -> None:
        """Close the campaign, with its threshold if one is due.

        Closed by hand there is no certificate: whoever closes could wait for a result they like.
        """
        rounds = _results(queries.of_campaigns(self.connection, [self.terms.digest]))
        certified = self.terms.scores.delta is not None
        if any(one.answers for one in rounds) and not (certified and closed_by is ClosedBy.HAND):
            self._store_threshold(self.search.asked_n, rounds)
        self._close(closed_by)

    def _close(self, closed_by: ClosedBy) -> None:
        state = CampaignState.CLOSED.value
        campaigns.set_state(self.connection, self.terms.digest, state, closed_by.value, self.now)

    def _store_threshold(self, asked_n: int, rounds: tuple[RoundResult, ...]) -> None:
        """What these rounds lead to, signed, once and for all."""
        digest = self.terms.digest
        sites = campaigns.sites_of(self.connection, [digest])
        answered = sum(site.counted > 0 for site in sites)
        threshold = score_threshold_of(self.terms.scores, asked_n, rounds, answered, self.now)
        signed = self._key().sign(threshold).model_dump_json()
        results.store(self.connection, digest, threshold.which.value, signed, self.now)

    def _key(self) -> SigningKey:
        return key_by_fingerprint(self.connection, self.secret, self.search.key)


def _results(rows: Sequence[AnyRow]) -> tuple[RoundResult, ...]:
    """Closed rounds, as a threshold states them."""
    return tuple(
        RoundResult(
            threshold=Question.from_json(row.question).threshold,
            ones=row.ones,
            answers=row.answers,
            sites=row.sites,
        )
        for row in rows
    )
