"""Answers in the transaction of ingest: each accepted, late, replayed or refused by itself."""

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import Connection

from tacit.protocol import (
    AnswerUpload,
    CampaignState,
    FieldError,
    Problems,
    RoundState,
    UploadState,
)
from tacit_aggregator.database.rows import AnyRow
from tacit_aggregator.errors import Refusal
from tacit_aggregator.ingest import queries
from tacit_aggregator.ingest.submission import Stored
from tacit_aggregator.messages import read_model
from tacit_aggregator.rounds import queries as rounds

Outcome = Stored | Refusal
"""What became of an upload; late ones are stored and refused."""


@dataclass(frozen=True, eq=False, repr=False)
class AnswerSubmission:
    """Checked answers; of their bits only the number of ones is kept."""

    campaign: str
    site: str
    upload: str
    body_hash: bytes
    records: int
    round: int
    question: str
    ones: int

    @property
    def size(self) -> int:
        """The bytes that wait to be counted: none, they are."""
        return 0

    @classmethod
    def of(cls, body: bytes, *, campaign: str, site: str, upload: str) -> "AnswerSubmission":
        """Check a body against its address."""
        content = read_model(AnswerUpload, body)
        if content.campaign != campaign:
            raise Refusal(Problems.WRONG_DIGEST)
        if content.upload != upload:
            wrong = FieldError(field="upload", message="must be the upload of the address")
            raise Refusal(Problems.INVALID_REQUEST, errors=(wrong,))
        bits = content.answers()
        return cls(
            campaign=campaign,
            site=site,
            upload=upload,
            body_hash=hashlib.sha256(body).digest(),
            records=len(bits),
            round=content.round,
            question=content.question,
            ones=int(np.count_nonzero(bits)),
        )


@dataclass
class _SiteNow:
    enrolled: int
    left: bool
    received: int
    late: int
    campaign_state: str
    closes_at: float


@dataclass
class _More:
    answers: int = 0
    ones: int = 0


class StoringAnswers:
    """The answers of one transaction, decided in the order they came.

    Their rounds are held while it lasts: none closes between the decision and the commit.
    """

    def __init__(self, connection: Connection, now: float) -> None:
        self._connection = connection
        self._now = now
        self._rounds: dict[tuple[str, int], AnyRow] = {}
        self._sites: dict[tuple[str, str], _SiteNow] = {}
        self._stored: dict[tuple[str, str, str], tuple[bytes, Stored]] = {}
        self._more: defaultdict[tuple[str, int, str], _More] = defaultdict(_More)
        self._new: list[tuple[AnswerSubmission, UploadState]] = []

    def decide(self, batch: Sequence[AnswerSubmission]) -> list[Outcome]:
        """Decide about each, with everything locked that this rests on."""
        if batch:
            self._read(batch)
        return [self._decide(submission) for submission in batch]

    def records(self, state: UploadState) -> int:
        """How many new answers there are of this state."""
        return sum(submission.records for submission, given in self._new if given is state)

    def _read(self, batch: Sequence[AnswerSubmission]) -> None:
        """Hold rounds, then lock sites; what is stored is read when no other process adds to it."""
        ids: defaultdict[str, defaultdict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        numbers: defaultdict[str, set[int]] = defaultdict(set)
        for submission in batch:
            ids[submission.campaign][submission.site].append(submission.upload)
            numbers[submission.campaign].add(submission.round)
        for campaign in sorted(numbers):
            for number in sorted(numbers[campaign]):
                held = rounds.hold(self._connection, campaign, number)
                if held is not None:
                    self._rounds[campaign, number] = held
        for campaign in sorted(ids):
            for row in queries.lock_answering(self._connection, campaign, ids[campaign]):
                self._sites[campaign, row.site] = _SiteNow(
                    row.enrolled,
                    row.left_at is not None,
                    row.received,
                    row.late,
                    row.state,
                    row.closes_at,
                )
            for site, of_site in ids[campaign].items():
                self._read_stored(campaign, site, of_site)

    def _read_stored(self, campaign: str, site: str, ids: Sequence[str]) -> None:
        for row in queries.stored(self._connection, campaign, site, ids):
            known = Stored(UploadState(row.state), row.reason)
            self._stored[campaign, site, row.upload] = (row.body_hash, known)

    def _decide(self, submission: AnswerSubmission) -> Outcome:
        key = (submission.campaign, submission.site, submission.upload)
        if key not in self._stored:
            refusal = self._refusal(submission)
            if refusal is not None:
                return refusal
            self._stored[key] = (submission.body_hash, Stored(self._take(submission)))
        body_hash, known = self._stored[key]
        if body_hash != submission.body_hash:
            return Refusal(Problems.UPLOAD_CONFLICT)
        return Refusal(Problems.ROUND_CLOSED) if known.state is UploadState.LATE else known

    def _refusal(self, submission: AnswerSubmission) -> Refusal | None:
        site = self._sites.get((submission.campaign, submission.site))
        if site is not None and site.campaign_state == CampaignState.ABANDONED:
            return Refusal(Problems.CAMPAIGN_CLOSED)
        if site is None or site.left:
            return Refusal(Problems.NOT_ENROLLED, "The site has not enrolled, or it has left.")
        asked = self._rounds.get((submission.campaign, submission.round))
        if asked is None or asked.digest != submission.question:
            return Refusal(Problems.WRONG_QUESTION)
        if site.received + submission.records > site.enrolled:
            return Refusal(
                Problems.NOT_ENROLLED,
                f"The site enrolled {site.enrolled} records and has sent {site.received};"
                f" there is no room for {submission.records} more.",
            )
        return None

    def _take(self, submission: AnswerSubmission) -> UploadState:
        """Accept answers to an open round; of any other they are late."""
        asked = self._rounds[submission.campaign, submission.round]
        site = self._sites[submission.campaign, submission.site]
        in_time = site.campaign_state == CampaignState.OPEN and self._now < site.closes_at
        site.received += submission.records
        state = UploadState.ACCEPTED
        if asked.state != RoundState.OPEN or not in_time:
            state = UploadState.LATE
            site.late += submission.records
        else:
            self._tally(submission)
        self._new.append((submission, state))
        return state

    def _tally(self, submission: AnswerSubmission) -> None:
        more = self._more[submission.campaign, submission.round, submission.site]
        more.answers += submission.records
        more.ones += submission.ones

    def write(self) -> None:
        """Write all that are accepted or late."""
        if not self._new:
            return
        if self._more:
            queries.tally(
                self._connection,
                [
                    {
                        "of_campaign": campaign,
                        "of_round": number,
                        "of_site": site,
                        "more_answers": more.answers,
                        "more_ones": more.ones,
                    }
                    for (campaign, number, site), more in self._more.items()
                ],
            )
        changed = sorted({(one.campaign, one.site) for one, _ in self._new})
        queries.receive_answers(
            self._connection,
            [
                {
                    "of_campaign": campaign,
                    "of_site": site,
                    "now_received": self._sites[campaign, site].received,
                    "now_late": self._sites[campaign, site].late,
                }
                for campaign, site in changed
            ],
        )
        first = queries.next_number(self._connection, len(self._new))
        queries.store_answers(
            self._connection,
            [
                _row(number, submission, state, self._now)
                for number, (submission, state) in enumerate(self._new, first)
            ],
        )


def _row(
    number: int, submission: AnswerSubmission, state: UploadState, now: float
) -> dict[str, Any]:
    return {
        "number": number,
        "campaign": submission.campaign,
        "site": submission.site,
        "upload": submission.upload,
        "body_hash": submission.body_hash,
        "records": submission.records,
        "state": state.value,
        "received_at": now,
        "round": submission.round,
        "ones": submission.ones,
    }
