"""The coverage curve of the true labels, estimated from noisy ones, and its largest crossing.

With labels replaced by a uniform one with probability β,

    F̂^c(t) = (F̂^n(t) - β F̂^r(t)) / (1-β),

F̂^n(t) the fraction of noisy-label scores ≤ t and F̂^r(t) = mean |C_t(x)|/k the fraction of
all-class scores ≤ t. F̂^c is not monotone: it rises at noisy-label scores and falls at the others.
The threshold for a target g is its largest crossing, the smallest t with F̂^c(t') ≥ g for every
t' ≥ t.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidNoise
from tacit.exact import finite

UNDECIDED = 1e-12
"""Differences smaller than this, far above rounding, are decided with exact integers."""


@dataclass(frozen=True)
class CoverageCurve:
    """Counts of scores at candidate thresholds, in ascending order.

    Where F̂^n jumps and F̂^c may be below the target just before, there must be a candidate.
    """

    thresholds: NDArray[np.float64]
    noisy_below: NDArray[np.int64]
    """Noisy-label scores < each threshold."""
    noisy_within: NDArray[np.int64]
    """Noisy-label scores ≤ each threshold."""
    all_below: NDArray[np.int64]
    """All-class scores < each threshold."""
    all_within: NDArray[np.int64]
    """All-class scores ≤ each threshold."""
    n: int
    k: int

    def coverage(self, beta: Fraction) -> NDArray[np.float64]:
        """F̂^c at every candidate threshold."""
        return self._clean(self.noisy_within, self.all_within, beta)

    def coverage_before(self, beta: Fraction) -> NDArray[np.float64]:
        """F̂^c just before every candidate threshold, its lowest value since the one before."""
        return self._clean(self.noisy_below, self.all_below, beta)

    def largest_crossing(self, beta: Fraction, target: Fraction) -> int:
        """The index of the smallest threshold from which F̂^c never falls below the target.

        Between candidates F̂^c only falls, so it stays at or above the target from thresholds[j] on
        exactly if it does just before every later candidate: j is the last candidate before which
        F̂^c is below the target.
        """
        return int(np.flatnonzero(self.below(beta, target))[-1])

    def below(self, beta: Fraction, target: Fraction) -> NDArray[np.bool_]:
        """Where F̂^c just before a candidate is below the target; exact, also where it touches."""
        noisy, every = self.noisy_below / self.n, self.all_below / (self.n * self.k)
        above = excess(noisy, every, beta, target)
        below = above < 0
        for index in np.flatnonzero(np.abs(above) < UNDECIDED):
            below[index] = self._exactly_below(int(index), beta, target)
        return below

    def _clean(
        self, noisy: NDArray[np.int64], every: NDArray[np.int64], beta: Fraction
    ) -> NDArray[np.float64]:
        level = float(beta)
        curve: NDArray[np.float64] = noisy / self.n - level * (every / (self.n * self.k))
        return curve / float(1 - beta)

    def _exactly_below(self, index: int, beta: Fraction, target: Fraction) -> bool:
        noisy, every = int(self.noisy_below[index]), int(self.all_below[index])
        return noisy * self.k - beta * every < target * (1 - beta) * self.n * self.k


def excess(
    noisy: NDArray[np.float64], every: NDArray[np.float64], beta: Fraction, target: Fraction
) -> NDArray[np.float64]:
    """(1-β)(F̂^c - target) from F̂^n and F̂^r; undivided, as β near 1 would magnify the rounding."""
    return noisy - float(beta) * every - float(target * (1 - beta))


def noise_level(beta: float | Fraction) -> Fraction:
    """β as an exact number in [0, 1)."""
    value = finite(beta, "β")
    if not 0 <= value < 1:
        raise InvalidNoise(f"β must be at least 0 and below 1, not {float(value)!r}.")
    return value
