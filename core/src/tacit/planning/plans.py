"""What n records are worth to LDP-CP-L* and to LDP-CP-S*."""

import math
from dataclasses import dataclass
from typing import ClassVar

from tacit.conformal.corrections import (
    delta_labels,
    delta_scores,
    n_for_labels,
    n_for_scores,
    rounds_for,
)
from tacit.conformal.labels import PROTECTED as LABEL_PROTECTED
from tacit.conformal.search import PROTECTED as RECORD_PROTECTED
from tacit.exact import count, level
from tacit.mechanisms import BinaryChannel, UniformChannel


@dataclass(frozen=True)
class Plan:
    """What both methods have in common."""

    protects: ClassVar[str]
    """What ε protects."""
    shuffling: ClassVar[str]
    """What a shuffler changes."""

    n: int
    epsilon: float
    """The exact ε of the realized channel, never above the one asked for."""
    alpha: float
    delta: float
    correction: float
    """Δ at n; infinite where n is too small to ask every question once."""
    needed: int
    """The smallest n with Δ < α."""

    @property
    def certifiable(self) -> bool:
        """Whether 1-α+Δ, the coverage to aim at, is below 1."""
        return self.correction < self.alpha


@dataclass(frozen=True)
class LabelPlan(Plan):
    """LDP-CP-L*: features as they are, labels through k-ary randomized response.

    Its Δ rests on a constant that is not proved (see `delta_labels`): a comparison, no certificate.
    """

    protects = LABEL_PROTECTED
    shuffling = "Shuffling does not amplify ε: every message carries its features or probabilities."

    k: int
    beta: float
    """Probability that a label is replaced by a uniform one of all k."""


@dataclass(frozen=True)
class ScorePlan(Plan):
    """LDP-CP-S*: one randomized yes or no per record, in T rounds over disjoint batches."""

    protects = RECORD_PROTECTED
    shuffling = (
        "ε/√m for a shuffled round of m answers is a rule of thumb without a δ, not a guarantee."
    )

    rounds: int
    batch: int
    """m = ⌊n/T⌋, the records that answer in each round."""
    flip: float
    """Probability that an answer is flipped."""

    @property
    def shuffled_epsilon(self) -> float:
        """The thesis's rule of thumb ε/√m for what a shuffler leaves of ε: no δ, no guarantee.

        m is what the shuffler releases at once, a round; the thesis writes n. Infinite at m = 0.
        """
        return self.epsilon / math.sqrt(self.batch) if self.batch else math.inf


def plan_labels(n: int, k: int, epsilon: float, alpha: float, delta: float) -> LabelPlan:
    """Δ_L of n records with k classes at ε, and the n from which L* is certifiable."""
    channel = UniformChannel.for_epsilon(k, epsilon)
    return LabelPlan(
        n=count(n, "n"),
        epsilon=channel.epsilon,
        alpha=float(level(alpha, "α")),
        delta=float(level(delta, "δ")),
        correction=delta_labels(n, channel.beta, delta),
        needed=n_for_labels(alpha, channel.beta, delta),
        k=channel.k,
        beta=float(channel.beta),
    )


def plan_scores(
    n: int, epsilon: float, alpha: float, delta: float, *, tau: float = 0.001, width: float = 1.0
) -> ScorePlan:
    """Δ_S of n records at ε, and the n from which S* is certifiable.

    The search halves an interval of scores of the given width (1 for HPS and APS) down to τ.
    """
    channel = BinaryChannel.for_epsilon(epsilon)
    rounds = rounds_for(width, tau)
    batch = count(n, "n") // rounds
    return ScorePlan(
        n=count(n, "n"),
        epsilon=channel.epsilon,
        alpha=float(level(alpha, "α")),
        delta=float(level(delta, "δ")),
        correction=delta_scores(batch, channel.flip, rounds, delta) if batch else math.inf,
        needed=n_for_scores(alpha, channel.flip, rounds, delta),
        rounds=rounds,
        batch=batch,
        flip=float(channel.flip),
    )
