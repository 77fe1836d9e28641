"""Noise-aware conformal prediction (NACP) for uniform noise: the exact largest crossing."""

from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.conformal.curve import UNDECIDED, CoverageCurve, excess, noise_level
from tacit.conformal.grid import ScoreGrid
from tacit.conformal.records import NoisyRecords
from tacit.conformal.results import (
    EXCHANGEABLE,
    KNOWN_NOISE,
    POPULATION,
    Calibration,
    Guarantee,
)
from tacit.exact import level
from tacit.scores import Score

_FINE = ScoreGrid(steps_per_octave=512, even_steps=2048)
"""Fine enough that few noisy-label scores stay undecided."""

_FIRST_LOOK = 256
"""The crossing is mostly among the highest suspects, and few scores lie between these."""


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

    Nominal: where the standard deviation of F̂^c is large, the largest crossing lies too high. Takes
    as much memory as the table of probabilities; a `CoverageSketch` takes a constant amount.
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
        assumptions=(EXCHANGEABLE, POPULATION, KNOWN_NOISE),
    )


def crossing(records: NoisyRecords, beta: Fraction, target: Fraction) -> tuple[float, float]:
    """The largest crossing of the exact curve and F̂^c there."""
    own, every = records.scores()
    noisy = np.sort(own)
    suspects = _suspects(records, noisy, every, beta, target)
    looked_at = _FIRST_LOOK
    while True:  # ends at the latest with all suspects, as the first of them is below the target
        curve = _exact_curve(records, noisy, every, suspects[-looked_at:])
        if curve.below(beta, target).any():
            index = curve.largest_crossing(beta, target)
            return float(curve.thresholds[index]), float(curve.coverage(beta)[index])
        looked_at *= 8


def _suspects(
    records: NoisyRecords,
    noisy: NDArray[np.float64],
    every: NDArray[np.float64],
    beta: Fraction,
    target: Fraction,
) -> NDArray[np.float64]:
    """The noisy-label scores among which the largest crossing is, found without a sort of n·k.

    Counting all-class scores in the cells of a grid bounds F̂^c just before each noisy-label score
    from both sides. The crossing is the last of these scores before which F̂^c is below the target,
    so it is the last that certainly has this property or a later one that possibly has.
    """
    limits = records.score.range(records.k)
    within = np.cumsum(_FINE.count(every, limits)) / every.size
    candidates = np.unique(noisy)
    below = np.searchsorted(noisy, candidates) / records.n
    cell = _FINE.cells(candidates, limits)
    before_cell = np.append(0, within)[cell]
    certain = np.flatnonzero(excess(below, before_cell, beta, target) < -UNDECIDED)
    first = certain[-1] if certain.size else 0
    possible = np.flatnonzero(excess(below, within[cell], beta, target) < UNDECIDED)
    suspects: NDArray[np.float64] = candidates[np.append(first, possible[possible > first])]
    return suspects


def _exact_curve(
    records: NoisyRecords,
    noisy: NDArray[np.float64],
    every: NDArray[np.float64],
    thresholds: NDArray[np.float64],
) -> CoverageCurve:
    """The exact curve at the given thresholds, by a sort of the scores between them only."""
    below = np.count_nonzero(every < thresholds[0])
    between = np.sort(every[(every >= thresholds[0]) & (every <= thresholds[-1])])
    return CoverageCurve(
        thresholds=thresholds,
        noisy_below=np.searchsorted(noisy, thresholds, side="left"),
        noisy_within=np.searchsorted(noisy, thresholds, side="right"),
        all_below=below + np.searchsorted(between, thresholds, side="left"),
        all_within=below + np.searchsorted(between, thresholds, side="right"),
        n=records.n,
        k=records.k,
    )
