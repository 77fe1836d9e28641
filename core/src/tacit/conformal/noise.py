"""Label-noise matrices P[i, j] = p(noisy label j | label i): row-stochastic (k, k) tables.

These describe and simulate noise that happens to labels. They are no privacy mechanism: for that
see `tacit.mechanisms`, whose coins cannot be seeded.
"""

from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.checks import check_class_count, check_labels
from tacit.conformal.curve import noise_level
from tacit.errors import InvalidNoise
from tacit.exact import finite, level

LARGEST_CONDITION: Final = 1e10
"""Beyond this condition number an inverse keeps fewer than six of a float's sixteen digits."""

_ROW_SUM_TOLERANCE: Final = 1e-9


def uniform(k: int, beta: float | Fraction) -> NDArray[np.float64]:
    """Noise that replaces a label by a uniform one of all k with probability β in [0, 1).

    P = (1-β)I + (β/k)11ᵀ. A label changes with probability ε' = β(k-1)/k: see `uniform_flip`.
    """
    classes = check_class_count(k)
    replaced = float(noise_level(finite(beta, "β")))
    return (1 - replaced) * np.eye(classes) + replaced / classes


def uniform_flip(k: int, rate: float) -> NDArray[np.float64]:
    """Noise that turns a label into each of the k-1 others with probability ε'/(k-1).

    The other convention for `uniform`: ε' = β(k-1)/k. It carries information while ε' < (k-1)/k.
    """
    classes = check_class_count(k)
    flip = finite(rate, "ε'")
    if not 0 <= flip < Fraction(classes - 1, classes):
        raise InvalidNoise(f"ε' must be at least 0 and below (k-1)/k, not {rate!r}.")
    return uniform(classes, flip * classes / (classes - 1))


def neighbourhood(k: int, keep: float) -> NDArray[np.float64]:
    """Noise between adjacent classes: a label stays with probability ξ, else moves one step.

    An end class puts 1-ξ on its only neighbour, every other class (1-ξ)/2 on each of its two.
    """
    adjacent = _distances(check_class_count(k)) == 1
    return _kept(adjacent.astype(np.float64), keep)


def decreasing(k: int, keep: float, decay: float = 0.5) -> NDArray[np.float64]:
    """Noise that grows rarer with distance: P[i, j] ∝ decay^|i-j| off the diagonal, in all 1-ξ."""
    ratio = float(level(decay, "decay"))
    distance = _distances(check_class_count(k))
    # Relative to the nearest class, so that a strong decay cannot make a whole row vanish.
    return _kept(np.power(ratio, distance - 1.0), keep)


def random(k: int, keep: float, generator: np.random.Generator) -> NDArray[np.float64]:
    """A random noise matrix: ξ on the diagonal, uniform draws scaled to 1-ξ off it, row by row."""
    classes = check_class_count(k)
    # 1 - [0, 1) is never 0, so that with two classes there is always something to scale.
    return _kept(1 - generator.random((classes, classes)), keep)


def check_noise_matrix(matrix: ArrayLike) -> NDArray[np.float64]:
    """`matrix` as float64 if it is square, finite, row-stochastic and can be inverted."""
    inverse(matrix)
    return _check_rows(matrix)


def inverse(matrix: ArrayLike) -> NDArray[np.float64]:
    """P^{-1}, or `InvalidNoise` where P is no noise matrix or too near to one without inverse.

    The rows of P sum to 1, so its condition number in ‖·‖_∞ is ‖P^{-1}‖_∞.
    """
    table = _check_rows(matrix)
    try:
        inverted = np.linalg.inv(table).astype(np.float64)
    except np.linalg.LinAlgError:
        inverted = np.full_like(table, np.inf)
    condition = float(np.abs(inverted).sum(axis=1).max())
    if not condition <= LARGEST_CONDITION:
        raise InvalidNoise(
            f"The noise matrix cannot be undone: its condition number {condition:.1e} is above "
            f"{LARGEST_CONDITION:.0e}. Some classes are noised into (nearly) the same mixture."
        )
    return inverted


def corrupt(
    labels: ArrayLike, matrix: ArrayLike, generator: np.random.Generator
) -> NDArray[np.int64]:
    """Simulated noisy labels: label i becomes j with probability P[i, j], independently.

    For experiments only. The generator is seeded and predictable, so this protects nobody.
    """
    table = _check_rows(matrix)
    clean = check_labels(labels, np.size(labels), len(table))
    noisy = np.empty_like(clean)
    for label in np.unique(clean):
        rows = np.flatnonzero(clean == label)
        noisy[rows] = generator.choice(len(table), size=len(rows), p=table[label])
    return noisy


def _check_rows(matrix: ArrayLike) -> NDArray[np.float64]:
    try:
        table = np.asarray(matrix, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidNoise("A noise matrix must be a table of numbers.") from error
    if table.ndim != 2 or table.shape[0] != table.shape[1] or len(table) < 2:
        raise InvalidNoise(f"A noise matrix must be (k, k) with k ≥ 2, not {table.shape}.")
    if not np.isfinite(table).all() or (table < 0).any():
        raise InvalidNoise("A noise matrix must have finite, non-negative entries.")
    if (np.abs(table.sum(axis=1) - 1) > _ROW_SUM_TOLERANCE).any():
        raise InvalidNoise("Every row of a noise matrix must sum to 1: P[i, j] = p(j | i).")
    return table


def _kept(weights: NDArray[np.float64], keep: float) -> NDArray[np.float64]:
    """ξ on the diagonal and 1-ξ shared off it in proportion to the weights, row by row."""
    stay = finite(keep, "ξ")
    if not 0 < stay <= 1:
        raise InvalidNoise(f"ξ, the probability to keep a label, must be in (0, 1], not {keep!r}.")
    table = weights.copy()
    np.fill_diagonal(table, 0)
    table *= float(1 - stay) / table.sum(axis=1, keepdims=True)
    np.fill_diagonal(table, float(stay))
    return table


def _distances(k: int) -> NDArray[np.int64]:
    """|i-j| for every two classes."""
    return np.abs(np.subtract.outer(np.arange(k), np.arange(k)))
