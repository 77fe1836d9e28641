"""What goes over the wire in rounds: questions, answers, done marks, and where a search stands."""

from enum import StrEnum
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from tacit.errors import InvalidColumn, InvalidDocument
from tacit.protocol.columns import Column
from tacit.protocol.score_campaign import MOST_ROUNDS, ScoreCampaign
from tacit.protocol.signatures import Signed
from tacit.protocol.uploads import MOST_RECORDS, Count
from tacit.protocol.versions import ROUNDS
from tacit.protocol.wire import Digest, Identifier, Name, Number, SignedDocument, Wire

LONGEST_POLL = 25.0
"""Seconds that a request for the current round waits at most; proxies cut at 30."""

RoundNumber = Annotated[int, Field(ge=0, lt=MOST_ROUNDS)]
"""Rounds are counted from 0."""


class RoundQuestion(SignedDocument):
    """The question of a round, "is your score at most `threshold`?", the same for all sites."""

    kind: ClassVar[str] = "question"

    tacit: Literal["question"] = "question"
    version: Literal["1.1"] = ROUNDS
    campaign: Digest
    round: RoundNumber
    threshold: Number

    def check(self, campaign: ScoreCampaign, digest: Digest) -> None:
        """Refuse a question of another campaign, or one that its plan and score do not have."""
        if self.campaign != digest:
            raise InvalidDocument("This question is of another campaign.")
        if self.round >= campaign.round_count:
            raise InvalidDocument("This question is of a round that the campaign does not have.")
        low, high = campaign.conformity_score().range(campaign.k)
        if not low <= self.threshold <= high:
            raise InvalidDocument("This question asks outside the range of the score.")


class AnswerUpload(Wire):
    """Answers of some records to the question of their round: one randomized bit each."""

    version: Literal["1.1"] = ROUNDS
    campaign: Digest
    upload: Identifier
    """Drawn by the site, once; the same upload may be sent again, byte for byte."""
    round: RoundNumber
    question: Digest
    """Of the question that was answered."""
    bits: Column
    """1 for "at most t", 0 for "above", randomized."""

    @property
    def records(self) -> int:
        """How many records these answers are of."""
        return self.bits.rows

    def to_bytes(self) -> bytes:
        """The body as it is sent, and sent again."""
        return self.model_dump_json().encode()

    def answers(self) -> NDArray[np.uint8]:
        """The bits, if they are; errors show no value."""
        n = self.records
        if not 1 <= n <= MOST_RECORDS:
            raise InvalidColumn(f"An upload has from 1 to {MOST_RECORDS} records.")
        if (self.bits.dtype, self.bits.shape) != ("uint8", (n,)):
            raise InvalidColumn(f"bits must be a column of uint8 of shape [{n}].")
        bits = np.frombuffer(self.bits.content(), dtype=np.uint8)
        if bits.max() > 1:
            raise InvalidColumn("bits must be 0 or 1.")
        return bits


class RoundDone(Wire):
    """A site has given all its answers of a round: so many."""

    answers: Count


class RoundState(StrEnum):
    """open: takes answers. closed: its answers are counted, and later ones are late."""

    OPEN = "open"
    CLOSED = "closed"


class RoundStatus(Wire):
    """One round of a campaign, as its status shows it."""

    round: RoundNumber
    state: RoundState
    threshold: float
    """What was asked: is your score at most this?"""
    low: float
    high: float
    """Where the search was when it asked."""
    answers: Count
    """Received so far; of a closed round, counted."""
    sites: Count | None
    """Of a closed round: how many sites they come from."""
    coverage: float | None
    """Of a closed round with answers: the estimated share of scores at most `threshold`."""
    ends_in: Annotated[float, Field(ge=0)]
    """Remaining seconds of an open round by the database's clock."""
    extensions: Count
    waiting_sites: Count
    """How many sites have not marked an open round done."""
    waiting_for: tuple[Name, ...]
    """Those of them that the asker may see."""


class SearchState(StrEnum):
    """enrolling: nothing was asked yet. open: a round waits for answers. over: nothing is asked."""

    ENROLLING = "enrolling"
    OPEN = "open"
    OVER = "over"


class CurrentRound(Wire):
    """What a site is asked now; the same for every site."""

    campaign: Digest
    state: SearchState
    round: RoundNumber | None
    """The open round, if there is one."""
    question: Signed | None
    ends_in: Annotated[float, Field(ge=0)]
    """Remaining seconds: until the open round may close, or until the first is opened."""
    waiting_for: str
    """Why nothing else is asked yet, in a sentence."""

    @model_validator(mode="after")
    def _asks_while_open(self) -> Self:
        asks = (self.round is not None, self.question is not None)
        if asks != (self.state is SearchState.OPEN,) * 2:
            raise ValueError("an open search has a round and its question, and no other has")
        return self
