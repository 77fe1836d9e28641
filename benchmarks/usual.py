"""The usual way to a noise-aware threshold: bisection, with every prediction set rebuilt per step.

A plain re-implementation of what research code does. A function turns probabilities and a candidate
threshold into a list of prediction sets, one array of class ids per record; the search looks only
at such lists: which of them hold the noisy label, and how long they are. The list is the whole
interface, so APS sorts its probabilities anew at every step. Numpy does what numpy can: the sort,
the cumulative sums and the comparisons are over the whole table at once.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Probabilities = NDArray[np.float64]
Sets = list[NDArray[np.int64]]
MakeSets = Callable[[float], Sets]

STEPS = 30
"""Halvings of [0, 1], down to 1e-9: 2.5e7 scores, as at n = 25,000 and k = 1000, lie 4e-8 apart on
average, so fewer steps could not tell a score from its neighbour."""


def hps_sets(probabilities: Probabilities, threshold: float) -> Sets:
    """The classes with 1 - p ≤ t, per record."""
    return [np.flatnonzero(row) for row in 1 - probabilities <= threshold]


def aps_sets(probabilities: Probabilities, threshold: float) -> Sets:
    """The likeliest classes, as long as their probabilities sum to at most t, per record."""
    return cut(*ranked(probabilities), threshold)


def ranked(probabilities: Probabilities) -> tuple[NDArray[np.int64], Probabilities]:
    """The classes of each record from the likeliest on, and the sums of their probabilities."""
    order = np.argsort(-probabilities, axis=1)
    sums = np.cumsum(np.take_along_axis(probabilities, order, axis=1), axis=1)
    return order, np.minimum(sums, 1)


def cut(order: NDArray[np.int64], sums: Probabilities, threshold: float) -> Sets:
    """The classes whose sums are at most t, per record."""
    sizes = np.count_nonzero(sums <= threshold, axis=1)
    return [row[:size] for row, size in zip(order, sizes, strict=True)]


def coverage(sets: Sets, labels: NDArray[np.int64], k: int, beta: float) -> float:
    """F̂^c = (F̂^n - β F̂^r) / (1-β), from the sets."""
    noisy = sum(label in held for label, held in zip(labels, sets, strict=True)) / len(sets)
    every = sum(len(held) for held in sets) / (len(sets) * k)
    return (noisy - beta * every) / (1 - beta)


def bisection(
    make_sets: MakeSets, labels: NDArray[np.int64], k: int, beta: float, alpha: float
) -> float:
    """A threshold in [0, 1] at which F̂^c crosses 1-α; where it crosses often, one of the many."""
    low, high = 0.0, 1.0
    for _ in range(STEPS):
        middle = (low + high) / 2
        if coverage(make_sets(middle), labels, k, beta) >= 1 - alpha:
            high = middle
        else:
            low = middle
    return high
