"""Noise-aware conformal prediction (NACP) for uniform noise: the exact largest crossing."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.conformal.curve import CoverageCurve, noise_level
from tacit.conformal.results import Calibration, Guarantee
from tacit.errors import InvalidParameter
from tacit.exact import level
from tacit.scores import Score, check_labels, check_probabilities
from tacit.scores.checks import check_uniforms

_CHUNK_SCORES = 1 << 20
"""All-class scores in memory at a time."""


@dataclass(frozen=True)
class NoisyRecords:
    """Calibration records with noisy labels, checked once, read in chunks of rows."""

    score: Score
    probabilities: NDArray[np.float64]
    labels: NDArray[np.int64]
    uniforms: NDArray[np.float64] | None

    @classmethod
    def of(
        cls,
        probabilities: ArrayLike,
        labels: ArrayLike,
        score: Score,
        uniforms: ArrayLike | None = None,
    ) -> "NoisyRecords":
        """Check shapes and labels; the score checks the values, chunk by chunk."""
        table = check_probabilities(probabilities)
        if not len(table):
            raise InvalidParameter("There are no calibration records.")
        drawn = None if uniforms is None else check_uniforms(uniforms, len(table))
        return cls(score, table, check_labels(labels, *table.shape), drawn)

    @property
    def n(self) -> int:
        """Number of records."""
        return len(self.probabilities)

    @property
    def k(self) -> int:
        """Number of classes."""
        return int(self.probabilities.shape[1])

    def label_scores(self) -> NDArray[np.float64]:
        """The scores S(x_i, ỹ_i)."""
        return self.score.of_labels(self.probabilities, self.labels, self.uniforms)

    def all_scores(self) -> Iterator[NDArray[np.float64]]:
        """The scores of every class of every record, a chunk at a time, in any order."""
        rows = max(1, _CHUNK_SCORES // self.k)
        for start in range(0, self.n, rows):
            part = slice(start, start + rows)
            uniforms = None if self.uniforms is None else self.uniforms[part]
            yield self.score.multiset(self.probabilities[part], uniforms).ravel()


def nacp(
    probabilities: ArrayLike,
    labels: ArrayLike,
    *,
    beta: float | Fraction,
    score: Score,
    alpha: float,
    uniforms: ArrayLike | None = None,
) -> Calibration:
    """The NACP threshold for labels replaced by a uniform one of all k with probability β.

    Nominal: where the standard deviation of F̂^c is large, the largest crossing lies too high.
    """
    records = NoisyRecords.of(probabilities, labels, score, uniforms)
    target = 1 - level(alpha, "α")
    threshold, coverage = crossing(records, noise_level(beta), target)
    return Calibration(
        method="nacp",
        score=score,
        k=records.k,
        threshold=threshold,
        n=records.n,
        alpha=float(alpha),
        guarantee=Guarantee.NOMINAL,
        coverage=coverage,
    )


def crossing(records: NoisyRecords, beta: Fraction, target: Fraction) -> tuple[float, float]:
    """The largest crossing of the exact curve and F̂^c there."""
    curve = bracketed_curve(records, beta, target)
    index = curve.largest_crossing(beta, target)
    return float(curve.thresholds[index]), float(curve.coverage(beta)[index])


def bracketed_curve(records: NoisyRecords, beta: Fraction, target: Fraction) -> CoverageCurve:
    """The exact curve at the noisy-label scores between which the largest crossing must lie.

    With inverted-CDF quantiles of the noisy-label scores, the crossing t for the target g has
    q(g(1-β)/(1-β/k)) ≤ t ≤ q(g+(1-g)β). Upper: from there on F̂^n ≥ g+(1-g)β and F̂^r ≤ 1 give
    F̂^c ≥ g. Lower: F̂^c(t) ≥ g means F̂^n(t) ≥ g(1-β)+βF̂^r(t), and F̂^r ≥ F̂^n/k always.
    """
    noisy = np.sort(records.label_scores())
    first = noisy[_rank(target * (1 - beta) / (1 - beta / records.k), records.n)]
    last = noisy[_rank(target + (1 - target) * beta, records.n)]
    candidates = np.unique(noisy[(noisy >= first) & (noisy <= last)])
    all_below = np.zeros(len(candidates), dtype=np.int64)
    all_within = np.zeros(len(candidates), dtype=np.int64)
    for scores in records.all_scores():
        under = np.count_nonzero(scores < first)
        inside = np.sort(scores[(scores >= first) & (scores <= last)])
        all_below += under + np.searchsorted(inside, candidates, side="left")
        all_within += under + np.searchsorted(inside, candidates, side="right")
    return CoverageCurve(
        thresholds=candidates,
        noisy_below=np.searchsorted(noisy, candidates, side="left").astype(np.int64),
        noisy_within=np.searchsorted(noisy, candidates, side="right").astype(np.int64),
        all_below=all_below,
        all_within=all_within,
        n=records.n,
        k=records.k,
    )


def _rank(quantile: Fraction, n: int) -> int:
    """Index of the inverted-CDF quantile among n sorted values."""
    return max(0, math.ceil(quantile * n) - 1)
