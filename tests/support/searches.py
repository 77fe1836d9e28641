"""LDP-CP-S and LDP-CP-S* written plainly from their description, sharing no code with Tacit."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

Ask = Callable[[int, float], Sequence[bool]]
"""(round, threshold) → the randomized bits of that round."""


@dataclass(frozen=True)
class Outcome:
    threshold: float
    asked: list[float]
    answered: int


def asking(scores: Sequence[float], coins: Sequence[int], coin_threshold: int, rounds: int) -> Ask:
    """Records that answer in round i mod T, each flipping its bit if its coin is below τ.

    Records beyond the last full round are never asked: every batch has ⌊n/T⌋ of them.
    """
    batch = len(scores) // rounds

    def ask(number: int, threshold: float) -> list[bool]:
        members = [number + rounds * index for index in range(batch)]
        return [(scores[i] <= threshold) != (coins[i] < coin_threshold) for i in members]

    return ask


def dealt(batches: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """The order in which `asking` deals records out as in the given batches."""
    return np.stack(batches, axis=1).ravel()


def debiased(bits: Sequence[bool], ratio: Fraction) -> Fraction:
    """Z = (e^ε+1)/(e^ε-1)·mean - 1/(e^ε-1)."""
    mean = Fraction(sum(map(bool, bits)), len(bits))
    return (ratio + 1) / (ratio - 1) * mean - 1 / (ratio - 1)


def thesis_search(
    ask: Ask,
    *,
    limits: tuple[float, float],
    rounds: int,
    ratio: Fraction,
    alpha: Fraction,
    tolerance: Fraction = Fraction(0),
) -> Outcome:
    """Halve until an estimate is within Δ/2 of 1-α or the rounds are over; the last t_j answered.

    The largest score if nobody answers any.
    """
    low, high = limits
    asked, answered, found = [], 0, high
    for number in range(rounds):
        middle = (low + high) / 2
        bits = ask(number, middle)
        asked.append(middle)
        answered += len(bits)
        if not len(bits):
            continue
        found = middle
        estimate = debiased(bits, ratio)
        if estimate > 1 - alpha + tolerance / 2:
            high = middle
        elif estimate < 1 - alpha - tolerance / 2:
            low = middle
        else:
            break
    return Outcome(found, asked, answered)


def certified_search(
    ask: Ask,
    *,
    limits: tuple[float, float],
    rounds: int,
    ratio: Fraction,
    alpha: float,
    delta: float,
    last_midpoint: bool = False,
) -> Outcome:
    """s_high moves iff Z ≥ 1-α+Δ_S; returns s_high, or as a mutant the last midpoint."""
    low, high = limits
    asked, answered = [], 0
    middle = (low + high) / 2
    for number in range(rounds):
        middle = (low + high) / 2
        bits = ask(number, middle)
        asked.append(middle)
        answered += len(bits)
        if not len(bits):
            continue
        if float(debiased(bits, ratio)) >= 1 - alpha + hoeffding(len(bits), ratio, rounds, delta):
            high = middle
        else:
            low = middle
    return Outcome(middle if last_midpoint else high, asked, answered)


def hoeffding(batch: int, ratio: Fraction, rounds: int, delta: float) -> float:
    """Δ_S = (e^ε+1)/(e^ε-1)·sqrt(T log(2T/δ)/(2n)) with n/T the size of a batch."""
    factor = float((ratio + 1) / (ratio - 1))
    return factor * math.sqrt(math.log(2 * rounds / delta) / (2 * batch))
