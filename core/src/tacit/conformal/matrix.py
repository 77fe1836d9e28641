"""NACP for a noise matrix P: the largest crossing of F̂^c(t) = Tr(M̂_t P⁻¹)."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.conformal.noise import inverse
from tacit.conformal.records import NoisyRecords
from tacit.conformal.results import EXCHANGEABLE, POPULATION, Calibration, Guarantee
from tacit.errors import InvalidNoise
from tacit.exact import level
from tacit.scores import Score

KNOWN_MATRIX = "The noise matrix is the true one; nothing is claimed for an estimated one."
_ROUNDING = 1e-12


def nacp_matrix(
    probabilities: ArrayLike,
    labels: ArrayLike,
    *,
    matrix: ArrayLike,
    score: Score,
    alpha: float,
    uniforms: ArrayLike | None = None,
) -> Calibration:
    """The NACP threshold for labels that went through the noise matrix P, P[i, j] = p(ỹ=j | y=i).

    Tr(M̂_t P⁻¹) is the mean over records of Σ_ℓ (P⁻¹)[ỹ, ℓ] 1{ℓ ∈ C_t(x)}, so one sort of the n·k
    scores, each carrying its weight, gives the whole curve. Time and memory are linear in n·k (but
    for the sort). A difference from the target within rounding counts as reached.
    """
    records = NoisyRecords.of(probabilities, labels, score, uniforms)
    weights = inverse(matrix)
    if len(weights) != records.k:
        raise InvalidNoise(f"The matrix has {len(weights)} classes, the table {records.k}.")
    thresholds, coverage = matrix_curve(records, weights)
    target = float(1 - level(alpha, "α"))
    slack = _ROUNDING * max(1.0, float(np.abs(weights).max()))
    below = np.flatnonzero(coverage < target - slack)
    index = min(int(below[-1]) + 1, len(thresholds) - 1) if below.size else 0
    return Calibration(
        method="nacp-matrix",
        score=score,
        k=records.k,
        threshold=float(thresholds[index]),
        n=records.n,
        alpha=float(alpha),
        guarantee=Guarantee.NOMINAL,
        coverage=float(coverage[index]),
        assumptions=(EXCHANGEABLE, POPULATION, KNOWN_MATRIX),
    )


def matrix_curve(
    records: NoisyRecords, weights: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The distinct scores in ascending order and F̂^c at each."""
    scores = records.score.of_all(records.probabilities, records.uniforms).ravel()
    order = np.argsort(scores)
    scores = scores[order]
    curve = np.cumsum(weights[records.labels].ravel()[order]) / records.n
    last_of_ties = np.append(scores[1:] != scores[:-1], True)
    return scores[last_of_ties], curve[last_of_ties]
