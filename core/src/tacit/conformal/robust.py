"""Noise-robust scores (NRSCP, NRESCP): calibrate Ŝ, the expected score given the noisy label."""

from fractions import Fraction

from numpy.typing import ArrayLike

from tacit.conformal.curve import noise_level
from tacit.conformal.records import NoisyRecords
from tacit.conformal.results import (
    EXCHANGEABLE,
    KNOWN_NOISE,
    POPULATION,
    Calibration,
    Guarantee,
)
from tacit.conformal.split import quantile_calibration
from tacit.scores import NoiseRobust, Score

UNIFORM_PRIOR = "Ŝ takes every class as equally likely beforehand."


def nrescp(
    probabilities: ArrayLike,
    labels: ArrayLike,
    *,
    beta: float | Fraction,
    score: Score,
    alpha: float,
    uniforms: ArrayLike | None = None,
) -> Calibration:
    """The conformal quantile of Ŝ on noisy labels; the sets are made with Ŝ too."""
    robust = NoiseRobust(score, float(noise_level(beta)))
    records = NoisyRecords.of(probabilities, labels, robust, uniforms)
    return _nominal("nrescp", records, robust, alpha)


def nrscp(
    probabilities: ArrayLike,
    labels: ArrayLike,
    *,
    beta: float | Fraction,
    score: Score,
    alpha: float,
    uniforms: ArrayLike | None = None,
) -> Calibration:
    """The conformal quantile of Ŝ on noisy labels; the sets are made with S."""
    robust = NoiseRobust(score, float(noise_level(beta)))
    records = NoisyRecords.of(probabilities, labels, robust, uniforms)
    return _nominal("nrscp", records, score, alpha)


def _nominal(method: str, records: NoisyRecords, score: Score, alpha: float) -> Calibration:
    return quantile_calibration(
        method,
        records,
        score,
        alpha,
        guarantee=Guarantee.NOMINAL,
        assumptions=(EXCHANGEABLE, POPULATION, KNOWN_NOISE, UNIFORM_PRIOR),
    )
