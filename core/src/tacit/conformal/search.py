"""LDP-CP-S: the quantile of scores that nobody sends, by bisection over disjoint batches.

A search is a pure state machine: `start()` gives the first question, "is your score at most t?",
and `advance(question, answers)` the next question or the result. Each record answers in one round
only, through binary randomized response. The whole state is in the question, so a search can be
stopped, stored and replayed from its answers.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.conformal.corrections import delta_scores, n_for_scores
from tacit.conformal.results import (
    EVERY_CLASS,
    EXCHANGEABLE,
    POPULATION,
    Calibration,
    Guarantee,
    NotCertifiable,
)
from tacit.errors import InvalidBits, InvalidParameter
from tacit.exact import count, exactly, finite, level
from tacit.mechanisms import (
    BinaryChannel,
    BinaryRandomizedResponse,
    Coins,
    FreshCoins,
)
from tacit.scores import Score

PROTECTED = "ε protects the whole record: nothing but one randomized bit of it is sent."
DISJOINT = "Every record answers in one round, a random share of every site in each."


@dataclass(frozen=True)
class Answers:
    """The randomized bits of one round: how many said yes, of how many."""

    ones: int
    count: int

    def __post_init__(self) -> None:
        if not 0 <= self.ones <= self.count:
            raise InvalidBits("Between none and all of the answers can be ones.")

    @classmethod
    def of(cls, bits: ArrayLike) -> "Answers":
        """Count randomized bits."""
        given = np.asarray(bits)
        if given.ndim != 1 or (given.size and not np.isin(given, (0, 1)).all()):
            raise InvalidBits
        return cls(int(np.count_nonzero(given)), given.size)


@dataclass(frozen=True)
class Question:
    """The state of a search before a round: "is your score at most `threshold`?"."""

    round: int
    """Rounds answered so far."""
    threshold: float
    low: float
    high: float
    found: float
    """The threshold that the search would return without further answers: S_max to begin with."""
    coverage: float = 1.0
    """The estimated coverage at `found`."""
    answered: int = 0
    """Answers counted so far."""


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
        level(self.alpha, "α")
        self.score.range(self.k)
        if count(self.n, "n") < count(self.rounds, "The number of rounds"):
            raise InvalidParameter("A search needs at least one record per round.")

    @property
    def batch(self) -> int:
        """Records that answer in each round."""
        return self.n // self.rounds

    def batches(self, generator: np.random.Generator) -> list[NDArray[np.int64]]:
        """The rows of each round, at random, for records held in one place.

        Whatever order the records are in, by site or by class, every batch is a random share.
        """
        rows = generator.permutation(self.n)[: self.batch * self.rounds]
        return [rows[start :: self.rounds] for start in range(self.rounds)]

    def estimate(self, answers: Answers) -> Fraction:
        """Z, the unbiased estimate of F(t): (mean - r)/(1-2r), r the channel's flip probability."""
        flip = self.channel.flip
        return (Fraction(int(answers.ones), int(answers.count)) - flip) / (1 - 2 * flip)

    def _first(self) -> Question:
        low, high = self.score.range(self.k)
        return Question(round=0, threshold=(low + high) / 2, low=low, high=high, found=high)

    def _after(self, question: Question, answers: Answers) -> Question:
        """The next question, if the answers decide nothing."""
        counted = question.answered + answers.count
        return replace(question, round=question.round + 1, answered=counted)

    def _result(self, last: Question, method: str, guarantee: Guarantee) -> Calibration:
        """The result of a search that would have gone on with the question `last`."""
        moved = last.found < self.score.range(self.k).high
        return Calibration(
            method=method,
            score=self.score,
            k=self.k,
            threshold=last.found,
            n=last.answered,
            alpha=self.alpha,
            guarantee=guarantee,
            coverage=last.coverage,
            epsilon=self.channel.epsilon,
            assumptions=(EXCHANGEABLE, POPULATION, PROTECTED, DISJOINT),
            notes=() if moved else (EVERY_CLASS,),
        )

    @abstractmethod
    def start(self) -> Question | NotCertifiable:
        """The first question, or that no answer could certify a threshold."""

    @abstractmethod
    def advance(self, question: Question, answers: Answers) -> Question | Calibration:
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
        if finite(self.tolerance, "The tolerance") < 0:
            raise InvalidParameter("The tolerance must be at least 0.")

    def start(self) -> Question:
        """Ask at the middle of the range."""
        return self._first()

    def advance(self, question: Question, answers: Answers) -> Question | Calibration:
        """Halve the bracket, or stop at this question."""
        following = self._after(question, answers)
        stop = False
        if answers.count:
            estimate, asked = self.estimate(answers), question.threshold
            excess = estimate - (1 - level(self.alpha, "α"))
            stop = abs(excess) <= exactly(self.tolerance) / 2
            following = replace(
                _halved(following, at_most=excess > 0), found=asked, coverage=float(estimate)
            )
        if not stop and following.round < self.rounds:
            return following
        return self._result(following, "ldp-cp-s", Guarantee.NOMINAL)


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
        level(self.delta, "δ")

    @property
    def correction(self) -> float:
        """Δ_S of a full batch."""
        return self._delta_of(self.batch)

    def start(self) -> Question | NotCertifiable:
        """Ask at the middle of the range, unless Δ_S ≥ α: then no threshold can be certified."""
        if self.correction < self.alpha:
            return self._first()
        return NotCertifiable(
            method="ldp-cp-s*",
            n=self.n,
            needed=n_for_scores(self.alpha, self.channel.flip, self.rounds, self.delta),
            alpha=self.alpha,
            delta=self.delta,
            correction=self.correction,
            epsilon=self.channel.epsilon,
        )

    def advance(self, question: Question, answers: Answers) -> Question | Calibration:
        """Move the upper end only where the answers prove it."""
        following = self._after(question, answers)
        if answers.count:
            estimate, margin = self.estimate(answers), exactly(self._delta_of(answers.count))
            proved = estimate >= 1 - level(self.alpha, "α") + margin
            following = _halved(following, at_most=proved)
            if proved:
                found = question.threshold
                following = replace(following, found=found, coverage=float(estimate))
        if following.round < self.rounds:
            return following
        result = self._result(following, "ldp-cp-s*", Guarantee.CERTIFIED)
        return replace(result, delta=self.delta, correction=self.correction)

    def _delta_of(self, batch: int) -> float:
        return delta_scores(batch, self.channel.flip, self.rounds, self.delta)


def _halved(question: Question, *, at_most: bool) -> Question:
    """Go on below the threshold asked for, or above it."""
    asked = question.threshold
    low, high = (question.low, asked) if at_most else (asked, question.high)
    return replace(question, threshold=(low + high) / 2, low=low, high=high)


def run(
    search: BinarySearch | CertifiedSearch, ask: Callable[[Question], Answers]
) -> Calibration | NotCertifiable:
    """Put questions to `ask` until the search has its result."""
    step: Question | Calibration | NotCertifiable = search.start()
    while isinstance(step, Question):
        step = search.advance(step, ask(step))
    return step


def ldp_cp_s(
    probabilities: ArrayLike,
    labels: ArrayLike,
    *,
    mechanism: BinaryRandomizedResponse,
    score: Score,
    alpha: float,
    delta: float | None = None,
    rounds: int = 10,
    uniforms: ArrayLike | None = None,
    coins_for: Callable[[NDArray[np.int64]], Coins] = lambda _: FreshCoins(),
    generator: np.random.Generator | None = None,
) -> Calibration | NotCertifiable:
    """LDP-CP-S on records held in one place; with δ, the certified LDP-CP-S*.

    For trying the method out: in a campaign the records answer at their sites. `coins_for` gives
    the coins of a batch of rows; `generator` deals the records out to the rounds, and without one
    they are dealt out differently every time.
    """
    scores = score.of_labels(probabilities, labels, uniforms)
    plan = (score, np.shape(probabilities)[1], mechanism.channel, alpha, len(scores), rounds)
    search = BinarySearch(*plan) if delta is None else CertifiedSearch(*plan, delta)
    batches = search.batches(generator or np.random.default_rng())

    def ask(question: Question) -> Answers:
        rows = batches[question.round]
        bits: NDArray[np.bool_] = scores[rows] <= question.threshold
        return Answers.of(mechanism.privatize(bits, coins_for(rows)))

    return run(search, ask)
