"""Split conformal prediction: the threshold of labels taken as they are."""

import math
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from tacit.conformal.records import NoisyRecords
from tacit.conformal.results import EXCHANGEABLE, POPULATION, Calibration, Guarantee
from tacit.exact import level
from tacit.scores import Score

LABELS_TAKEN_AS_TRUE = (
    "The labels are noisy and were taken as they are: coverage is of noisy labels."
)


def split(
    probabilities: ArrayLike,
    labels: ArrayLike,
    *,
    score: Score,
    alpha: float,
    uniforms: ArrayLike | None = None,
) -> Calibration:
    """The ⌈(n+1)(1-α)⌉-th smallest score of true labels; S_max, said openly, if that exceeds n."""
    records = NoisyRecords.of(probabilities, labels, score, uniforms)
    return quantile_calibration("split", records, score, alpha)


def noisy(
    probabilities: ArrayLike,
    labels: ArrayLike,
    *,
    score: Score,
    alpha: float,
    uniforms: ArrayLike | None = None,
) -> Calibration:
    """Noisy-CP: split conformal prediction on noisy labels, a baseline with sets too large."""
    records = NoisyRecords.of(probabilities, labels, score, uniforms)
    return quantile_calibration(
        "noisy",
        records,
        score,
        alpha,
        guarantee=Guarantee.NOMINAL,
        assumptions=(EXCHANGEABLE, POPULATION, LABELS_TAKEN_AS_TRUE),
    )


def quantile_calibration(
    method: str,
    records: NoisyRecords,
    score: Score,
    alpha: float,
    *,
    guarantee: Guarantee = Guarantee.MARGINAL,
    assumptions: tuple[str, ...] = (EXCHANGEABLE, POPULATION),
) -> Calibration:
    """The conformal quantile of the records' own scores, to be used as a threshold of `score`."""
    scores = records.label_scores()
    predicting = replace(records, score=score).label_scores() if score != records.score else scores
    rank = math.ceil((records.n + 1) * (1 - level(alpha, "α")))
    enough = rank <= records.n
    threshold = float(np.sort(scores)[rank - 1] if enough else score.range(records.k).high)
    return Calibration(
        method=method,
        score=score,
        k=records.k,
        threshold=threshold,
        n=records.n,
        alpha=float(alpha),
        guarantee=guarantee,
        coverage=np.count_nonzero(predicting <= threshold) / records.n,
        assumptions=assumptions,
    )
