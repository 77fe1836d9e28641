"""The document of a score campaign (LDP-CP-S): one randomized bit per record, asked in rounds."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from tacit.conformal import BinarySearch, CertifiedSearch
from tacit.conformal.corrections import n_for_scores
from tacit.exact import level
from tacit.mechanisms import BinaryChannel
from tacit.protocol.campaign import Campaign, Extents, fresh_nonce
from tacit.protocol.columns import Dtype
from tacit.protocol.randomizers import RandomizedBits
from tacit.protocol.versions import ROUNDS
from tacit.protocol.wire import EXACT, Digest, Moment, Wire
from tacit.scores import Score

MOST_ROUNDS = 64
LONGEST_ROUND = 366 * 86_400


class Model(Wire):
    """The ONNX file that sites fetch from the aggregator and run on their features."""

    digest: Digest
    """SHA-256 of the file."""
    dtype: Dtype
    shape: Extents
    outputs: Literal["logits", "probabilities"]


class Search(Wire):
    """How the threshold is searched for: the thesis's bisection."""

    name: Literal["binary"] = "binary"
    tolerance: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Without δ: the search stops where an estimate is within half of it."""


class RoundPlan(Wire):
    """Who answers when, and how long a round waits."""

    shares: Annotated[
        tuple[Annotated[int, Field(ge=1, le=1000)], ...],
        Field(min_length=1, max_length=MOST_ROUNDS),
    ]
    """The weight of each round: every site deals its records out to the rounds in this proportion,
    at random and before any question."""
    seconds: Annotated[int, Field(ge=1, le=LONGEST_ROUND)]
    """A round closes when every enrolled site is done, or so long after it was opened."""
    least: Annotated[int, Field(ge=1)]
    """With fewer answers at its end a round is extended, by the same time again; in proportion
    if fewer than planned are enrolled."""
    enrol_until: Moment
    """The first question is asked when `planned_n` records are enrolled, and then at the latest;
    from then on nobody can enrol."""


class ScoreCampaign(Campaign):
    """A campaign that asks each record once: is your score at most t? Nothing else leaves."""

    version: Literal["1.1"] = ROUNDS
    method: Literal["scores"] = "scores"
    mechanism: RandomizedBits
    model: Model | None
    search: Search
    rounds: RoundPlan
    guarantee: Literal["nominal", "certified"]

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        if (self.delta is None) != (self.guarantee == "nominal"):
            raise ValueError("the guarantee is nominal without δ and certified with δ")
        self._check_terms()
        if not self.opens <= self.rounds.enrol_until < self.closes:
            raise ValueError("enrol_until must lie between opens and closes")
        if self.planned_n < self.round_count:
            raise ValueError("planned_n must be at least one record per round")
        if self.rounds.least * self.round_count > self.planned_n:
            raise ValueError("least must be at most planned_n divided by the number of rounds")
        if max(map(abs, self.conformity_score().range(self.k))) > EXACT:
            raise ValueError("scores must lie from -(2^53 - 1) to 2^53 - 1, for others to read")
        self._can_be_certified()
        return self

    def _can_be_certified(self) -> None:
        """Refuse a δ that the planned records cannot reach."""
        if self.delta is None:
            return
        level(self.delta, "δ")
        if self.search.tolerance:
            raise ValueError("only a nominal search stops early: with δ, tolerance is 0")
        needed = self._certifiable_from(self.delta)
        if self.planned_n < needed:
            raise ValueError(f"with this α, δ, ε and these rounds S* needs {needed} records")

    def _certifiable_from(self, delta: float) -> int:
        """The fewest records of which every round, the smallest too, can prove something.

        A round that cannot would only push the threshold up.
        """
        rounds, shares = self.round_count, self.rounds.shares
        smallest = n_for_scores(self.alpha, self.channel.flip, rounds, delta) // rounds
        return -(-smallest * sum(shares) // min(shares))

    @classmethod
    def of(  # noqa: PLR0913 -- the terms of a campaign are that many
        cls,
        *,
        title: str,
        owner: str,
        classes: Sequence[str],
        epsilon: float,
        score: Score,
        alpha: float,
        planned_n: int,
        opens: datetime,
        enrol_until: datetime,
        closes: datetime,
        round_seconds: int,
        shares: Sequence[int] = (1,) * 10,
        least: int | None = None,
        tolerance: float = 0.0,
        delta: float | None = None,
        model: Model | None = None,
    ) -> Self:
        """A new campaign with a fresh nonce and the channel that this ε is realized by.

        `least` is by default half of what the smallest round expects.
        """
        channel = BinaryChannel.for_epsilon(epsilon)
        expected = planned_n * min(shares, default=1) // max(1, sum(shares))
        return cls(
            nonce=fresh_nonce(),
            title=title,
            owner=owner,
            classes=tuple(classes),
            mechanism=RandomizedBits(threshold=str(channel.threshold)),
            epsilon=channel.epsilon,
            model=model,
            score=score.to_dict(),
            search=Search(tolerance=float(tolerance)),
            rounds=RoundPlan(
                shares=tuple(shares),
                seconds=round_seconds,
                least=max(1, expected // 2) if least is None else least,
                enrol_until=enrol_until,
            ),
            alpha=float(alpha),
            delta=None if delta is None else float(delta),
            guarantee="nominal" if delta is None else "certified",
            planned_n=planned_n,
            opens=opens,
            closes=closes,
        )

    def least(self, asked_n: int) -> int:
        """The answers that a round takes if so many are enrolled: no more than it can get."""
        return -(-self.rounds.least * min(asked_n, self.planned_n) // self.planned_n)

    @property
    def channel(self) -> BinaryChannel:
        """What a bit goes through; every ε that is shown or spent comes from here."""
        return self.mechanism.channel(self.k)

    @property
    def round_count(self) -> int:
        """How many rounds there are at most."""
        return len(self.rounds.shares)

    def state_machine(self, n: int) -> BinarySearch | CertifiedSearch:
        """The core's search for n enrolled records."""
        plan = (self.conformity_score(), self.k, self.channel, self.alpha, n, self.round_count)
        if self.delta is None:
            return BinarySearch(*plan, self.search.tolerance)
        return CertifiedSearch(*plan, self.delta)
