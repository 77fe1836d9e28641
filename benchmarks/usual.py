"""The usual way to a noise-aware threshold: bisection, with every prediction set rebuilt per step.

A plain re-implementation of what published research code does. A function turns probabilities and
a candidate threshold into a list of prediction sets, one tuple of class ids per record, and the
search looks at that list: which sets hold the noisy label, and how long they are. The list is the
whole interface, so APS sorts its probabilities anew at every step and maps the sums back to the
classes by the inverse of the order. Numpy does what numpy can: sorts, sums and comparisons are over
the whole table at once.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Probabilities = NDArray[np.float64]
Sets = list[tuple[np.int64, ...]]
MakeSets = Callable[[float], Sets]

STEPS = 30
"""Halvings of [0, 1], down to 1e-9: 2.5e7 scores, as at n = 25,000 and k = 1000, lie 4e-8 apart on
average, so fewer steps could not tell a score from its neighbour."""

PUBLISHED_STEPS = 15
"""Where research code stops, at an interval of 5e-5."""


def hps_sets(probabilities: Probabilities, threshold: float) -> Sets:
    """The classes with 1 - p ≤ t, per record."""
    return members(1 - probabilities <= threshold)


def aps_sets(probabilities: Probabilities, threshold: float) -> Sets:
    """The likeliest classes, as long as their probabilities sum to at most t, per record."""
    return members(aps_scores(probabilities) <= threshold)


def aps_scores(probabilities: Probabilities) -> Probabilities:
    """The sum of the probabilities down to each class's own."""
    order = np.argsort(-probabilities, axis=1)
    sums = np.cumsum(np.take_along_axis(probabilities, order, axis=1), axis=1)
    scores: Probabilities = np.take_along_axis(sums, np.argsort(order, axis=1), axis=1)
    return np.minimum(scores, 1)


def members(memberships: NDArray[np.bool_]) -> Sets:
    """The class ids in each row of a table of memberships."""
    return [tuple(np.flatnonzero(row)) for row in memberships]


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
