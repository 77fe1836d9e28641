"""LDP-CP-L: the threshold from labels that went through k-ary randomized response."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from numpy.typing import ArrayLike

from tacit.conformal.corrections import delta_labels, n_for_labels
from tacit.conformal.nacp import crossing
from tacit.conformal.records import NoisyRecords
from tacit.conformal.results import (
    EXCHANGEABLE,
    POPULATION,
    Calibration,
    Guarantee,
    NotCertifiable,
)
from tacit.errors import InvalidLabels
from tacit.exact import exactly, level
from tacit.mechanisms import UniformChannel
from tacit.scores import Score

PROTECTED = (
    "ε protects each label given what is sent with it, features or probabilities, which are"
    " disclosed."
)
UNPROVED = (
    "Δ uses the thesis's DKW constant, which is not proved for F̂^r: a comparison, no certificate."
)


def ldp_cp_l(
    probabilities: ArrayLike,
    reports: ArrayLike,
    *,
    channel: UniformChannel,
    score: Score,
    alpha: float,
    delta: float | None = None,
    uniforms: ArrayLike | None = None,
) -> Calibration | NotCertifiable:
    """NACP with the realized β of the channel; with δ, LDP-CP-L*, aimed at 1-α+Δ_L.

    Where 1-α+Δ_L is 1 or more the result is `NotCertifiable`, never a silent full set.
    """
    records = NoisyRecords.of(probabilities, reports, score, uniforms)
    if records.k != channel.k:
        raise InvalidLabels(
            f"The channel has {channel.k} classes, the probabilities {records.k} columns."
        )

    def threshold(target: Fraction) -> tuple[float, float, None]:
        return *crossing(records, channel.beta, target), None

    return label_outcome(threshold, channel, score, records.n, alpha=alpha, delta=delta)


def label_outcome(
    threshold: Callable[[Fraction], tuple[float, float, float | None]],
    channel: UniformChannel,
    score: Score,
    n: int,
    *,
    alpha: float,
    delta: float | None,
) -> Calibration | NotCertifiable:
    """L or L* by any way to the crossing: target → (threshold, coverage there, resolution)."""
    target = 1 - level(alpha, "α")
    if delta is None:
        return _nominal(threshold(target), channel, score, n, alpha)
    delta = float(level(delta, "δ"))
    correction = delta_labels(n, channel.beta, delta)
    if target + exactly(correction) >= 1:
        return NotCertifiable(
            method="ldp-cp-l*",
            n=n,
            needed=n_for_labels(alpha, channel.beta, delta),
            alpha=float(alpha),
            delta=delta,
            correction=correction,
            epsilon=channel.epsilon,
        )
    nominal = _nominal(threshold(target + exactly(correction)), channel, score, n, alpha)
    return replace(
        nominal,
        method="ldp-cp-l*",
        guarantee=Guarantee.COMPARISON,
        delta=delta,
        correction=correction,
        assumptions=(*nominal.assumptions, UNPROVED),
    )


def _nominal(
    found: tuple[float, float, float | None],
    channel: UniformChannel,
    score: Score,
    n: int,
    alpha: float,
) -> Calibration:
    threshold, coverage, resolution = found
    return Calibration(
        method="ldp-cp-l",
        score=score,
        k=channel.k,
        threshold=threshold,
        n=n,
        alpha=float(alpha),
        guarantee=Guarantee.NOMINAL,
        coverage=coverage,
        epsilon=channel.epsilon,
        resolution=resolution,
        assumptions=(EXCHANGEABLE, POPULATION, PROTECTED),
    )
