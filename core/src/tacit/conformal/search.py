"""LDP-CP-S: the quantile of scores that nobody sends, by bisection over disjoint batches.

A search is a pure state machine: `start()` gives the first question, "is your score at most t?",
and `advance(question, answers)` the next question or the result. Each record answers in one round
only, through binary randomized response. The whole state is in the question, so a search can be
stopped, stored and replayed from its answers.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from tacit.checks import check_class_count
from tacit.conformal.corrections import delta_scores, n_for_scores
from tacit.conformal.questions import Answers, Question, deal
from tacit.conformal.results import Calibration, Guarantee, NotCertifiable
from tacit.errors import InvalidParameter
from tacit.exact import count, exactly, finite, level
from tacit.mechanisms import BinaryChannel
from tacit.scores import Score

EXCHANGEABLE_THERE = "New records are exchangeable with those that answered the round that decided."
POPULATION_THERE = (
    "The population is the mixture that answered the round that decided, weighted by its answers"
    " there; who answered other rounds only is not in it."
)
PROTECTED = "ε protects the whole record: nothing but one randomized bit of it is sent."
DISJOINT = "Every record answers in one round, drawn at random before any question."
WHOEVER = "Whether a record answers does not depend on what it would answer."
INDEPENDENT = "Records are independent of each other."


@dataclass(frozen=True)
class _Bisection(ABC):
    """What both searches share: a plan of rounds over [S_min, S_max]."""

    score: Score
    k: int
    channel: BinaryChannel
    alpha: float
    n: int
    """Records planned for; each round asks n // rounds of them."""
    rounds: int = 10

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", float(level(self.alpha, "α")))
        object.__setattr__(self, "k", check_class_count(self.k))
        object.__setattr__(self, "n", count(self.n, "n"))
        object.__setattr__(self, "rounds", count(self.rounds, "The number of rounds"))
        self.score.range(self.k)

    @property
    def batch(self) -> int:
        """Records that answer in each round."""
        return self.n // self.rounds

    def batches(self) -> list[NDArray[np.int64]]:
        """The rows of each round, for records held in one place."""
        return deal(self.n, self.rounds)

    def estimate(self, answers: Answers) -> Fraction:
        """Z, the unbiased estimate of F(t): (mean - r)/(1-2r), r the channel's flip probability."""
        flip = self.channel.flip
        return (Fraction(int(answers.ones), int(answers.count)) - flip) / (1 - 2 * flip)

    def _first(self) -> Question:
        low, high = self.score.range(self.k)
        return Question(round=0, threshold=(low + high) / 2, low=low, high=high, found=high)

    def _after(self, question: Question, answers: Answers) -> Question:
        """The next question, if the answers decide nothing."""
        if not 0 <= question.round < self.rounds:
            raise InvalidParameter(f"This search has {self.rounds} rounds and no other question.")
        counted = question.answered + answers.count
        return replace(question, round=question.round + 1, answered=counted)

    def _nominal(self, last: Question, method: str) -> Calibration:
        """The result of a search that would have gone on with the question `last`."""
        return Calibration(
            method=method,
            score=self.score,
            k=self.k,
            threshold=last.found,
            n=last.answered,
            alpha=self.alpha,
            guarantee=Guarantee.NOMINAL,
            coverage=last.coverage,
            epsilon=self.channel.epsilon,
            assumptions=(EXCHANGEABLE_THERE, POPULATION_THERE, PROTECTED, DISJOINT, WHOEVER),
        )

    @abstractmethod
    def decides(self, answers: Answers) -> bool:
        """Whether a round with these answers puts the result at its own question.

        The last round that does is the one that decided.
        """

    @abstractmethod
    def start(self) -> Question | NotCertifiable:
        """The first question, or that no answer could certify a threshold."""

    @abstractmethod
    def advance(
        self, question: Question, answers: Answers
    ) -> Question | Calibration | NotCertifiable:
        """The next question, or the result after the last round.

        A round that nobody answered decides nothing: its question is asked again in the next.
        """


@dataclass(frozen=True)
class BinarySearch(_Bisection):
    """The thesis's LDP-CP-S, nominal: returns the last question's threshold.

    s_high = t if Z > 1-α+Δ/2, s_low = t if Z < 1-α-Δ/2, else stop. Not certified: scores that crowd
    at one end, or an atom at the quantile, can leave the coverage far from 1-α.
    """

    tolerance: float = 0.0
    """Δ: stop as soon as an estimate is within half of it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n < self.rounds:
            raise InvalidParameter("A search needs at least one record per round.")
        if finite(self.tolerance, "The tolerance") < 0:
            raise InvalidParameter("The tolerance must be at least 0.")

    def start(self) -> Question:
        """Ask at the middle of the range."""
        return self._first()

    def decides(self, answers: Answers) -> bool:
        """Every round that somebody answered does."""
        return bool(answers.count)

    def advance(self, question: Question, answers: Answers) -> Question | Calibration:
        """Halve the bracket, or stop at this question."""
        following = self._after(question, answers)
        stop = False
        if self.decides(answers):
            estimate, asked = self.estimate(answers), question.threshold
            excess = estimate - (1 - level(self.alpha, "α"))
            stop = abs(excess) <= exactly(self.tolerance) / 2
            following = replace(
                _halved(following, at_most=excess > 0), found=asked, coverage=float(estimate)
            )
        if not stop and following.round < self.rounds:
            return following
        return self._nominal(following, "ldp-cp-s")


@dataclass(frozen=True)
class CertifiedSearch(_Bisection):
    """LDP-CP-S*, certified: s_high = t iff Z ≥ 1-α+Δ_S, else s_low = t; returns s_high.

    With probability ≥ 1-δ every one of the T estimates is within its Δ of F(t) (Hoeffding and a
    union over rounds; a question depends on earlier batches only), so s_high only ever moves to a t
    with F(t) ≥ 1-α, and F(S_max) = 1. Δ is computed from the answers a round really got.
    """

    delta: float = 0.05

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "delta", float(level(self.delta, "δ")))

    def start(self) -> Question | NotCertifiable:
        """Ask at the middle of the range, unless Δ_S ≥ α: then no threshold can be certified."""
        return self._first() if self._certifiable(self.n) else self._not_certifiable(self.n)

    def decides(self, answers: Answers) -> bool:
        """Whether they prove their question: Z ≥ 1-α+Δ."""
        if not answers.count:
            return False
        margin = exactly(self._delta_of(answers.count))
        return self.estimate(answers) >= 1 - level(self.alpha, "α") + margin

    def advance(
        self, question: Question, answers: Answers
    ) -> Question | Calibration | NotCertifiable:
        """Move the upper end only where the answers prove it.

        Where it never moved and the answers that came are too few to move it, none is certified.
        """
        following = self._after(question, answers)
        if answers.count:
            proved = self.decides(answers)
            following = _halved(following, at_most=proved)
            if proved:
                following = replace(
                    following,
                    found=question.threshold,
                    coverage=float(self.estimate(answers)),
                    margin=self._delta_of(answers.count),
                )
        if following.round < self.rounds:
            return following
        if following.margin is None and not self._certifiable(following.answered):
            return self._not_certifiable(following.answered)
        return self._certified(following)

    def _certified(self, last: Question) -> Calibration:
        result = self._nominal(last, "ldp-cp-s*")
        return replace(
            result,
            guarantee=Guarantee.CERTIFIED,
            delta=self.delta,
            correction=last.margin or self._delta_of(last.answered // self.rounds),
            assumptions=(*result.assumptions, INDEPENDENT),
        )

    def _certifiable(self, n: int) -> bool:
        return n >= self.rounds and self._delta_of(n // self.rounds) < self.alpha

    def _not_certifiable(self, n: int) -> NotCertifiable:
        batch = n // self.rounds
        return NotCertifiable(
            method="ldp-cp-s*",
            n=n,
            needed=n_for_scores(self.alpha, self.channel.flip, self.rounds, self.delta),
            alpha=self.alpha,
            delta=self.delta,
            correction=self._delta_of(batch) if batch else None,
            epsilon=self.channel.epsilon,
        )

    def _delta_of(self, batch: int) -> float:
        return delta_scores(batch, self.channel.flip, self.rounds, self.delta)


def _halved(question: Question, *, at_most: bool) -> Question:
    """Go on below the threshold asked for, or above it."""
    asked = question.threshold
    low, high = (question.low, asked) if at_most else (asked, question.high)
    return replace(question, threshold=(low + high) / 2, low=low, high=high)
