"""Conformal methods written as plainly as possible: slow, in fractions, and from the formulas.

Nothing here imports Tacit. Scores come in as lists of floats, each the exact number it is.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from fractions import Fraction

Scores = Sequence[float]
Table = Sequence[Sequence[float]]
Matrix = list[list[Fraction]]


def share_within(scores: Scores, threshold: float) -> Fraction:
    """The fraction of scores ≤ threshold."""
    return Fraction(sum(score <= threshold for score in scores), len(scores))


def clean_coverage(noisy: Scores, every: Table, beta: Fraction, threshold: float) -> Fraction:
    """F̂^c(t) = (F̂^n(t) - β mean |C_t(x)|/k) / (1-β)."""
    sizes = [share_within(row, threshold) for row in every]
    return (share_within(noisy, threshold) - beta * sum(sizes) / len(sizes)) / (1 - beta)


def largest_crossing(noisy: Scores, every: Table, beta: Fraction, target: Fraction) -> float:
    """The smallest t with F̂^c(t') ≥ target for all t' ≥ t, going down through all breakpoints."""
    breakpoints = sorted({score for row in every for score in row}, reverse=True)
    answer = breakpoints[0]
    for threshold in breakpoints:
        if clean_coverage(noisy, every, beta, threshold) < target:
            break
        answer = threshold
    return answer


def largest_crossing_of_many(
    noisy: Scores, every: Table, beta: Fraction, target: Fraction
) -> float:
    """The same for more scores, in sorted lists, at noisy scores only: F̂^c rises nowhere else."""
    k = len(every[0])
    own, classes = sorted(noisy), sorted(score for row in every for score in row)
    for threshold in sorted(set(noisy), reverse=True):
        before = k * bisect_left(own, threshold) - beta * bisect_left(classes, threshold)
        if before < target * (1 - beta) * len(own) * k:
            return threshold
    raise AssertionError("before the smallest score F̂^c is 0")


def bisected_crossing(noisy: Scores, every: Table, beta: Fraction, target: Fraction) -> float:
    """What a bisection on [0, 1] finds, which takes F̂^c for monotone."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if clean_coverage(noisy, every, beta, middle) >= target:
            high = middle
        else:
            low = middle
    return high


def inverted_cdf_quantile(scores: Scores, quantile: Fraction) -> float:
    """The smallest score v such that at least a fraction `quantile` of the scores is ≤ v."""
    return min(score for score in scores if share_within(scores, score) >= quantile)


def conformal_rank(n: int, alpha: Fraction) -> int:
    """⌈(n+1)(1-α)⌉."""
    return math.ceil((n + 1) * (1 - alpha))


def joint_counts(labels: Sequence[int], every: Table, threshold: float) -> Matrix:
    """M̂_t[ℓ][j], the fraction of records with ℓ ∈ C_t(x) and noisy label j."""
    k = len(every[0])
    counts = [[Fraction(0)] * k for _ in range(k)]
    for label, row in zip(labels, every, strict=True):
        for candidate in range(k):
            counts[candidate][label] += Fraction(row[candidate] <= threshold, len(labels))
    return counts


def matrix_coverage(
    labels: Sequence[int], every: Table, inverse: Matrix, threshold: float
) -> Fraction:
    """Tr(M̂_t P⁻¹), by a matrix product and then the trace."""
    joint = joint_counts(labels, every, threshold)
    k = len(inverse)
    product = [
        [sum((joint[i][m] * inverse[m][j] for m in range(k)), Fraction(0)) for j in range(k)]
        for i in range(k)
    ]
    return sum((product[i][i] for i in range(k)), Fraction(0))


def elementwise_coverage(
    labels: Sequence[int], every: Table, inverse: Matrix, threshold: float
) -> Fraction:
    """The slip of the published research code: an elementwise product in place of M̂_t P⁻¹."""
    joint = joint_counts(labels, every, threshold)
    return sum((joint[i][i] * inverse[i][i] for i in range(len(inverse))), Fraction(0))


def largest_matrix_crossing(
    labels: Sequence[int], every: Table, inverse: Matrix, target: Fraction
) -> float:
    """The largest crossing of Tr(M̂_t P⁻¹) over all breakpoints."""
    breakpoints = sorted({score for row in every for score in row}, reverse=True)
    answer = breakpoints[0]
    for threshold in breakpoints:
        if matrix_coverage(labels, every, inverse, threshold) < target:
            break
        answer = threshold
    return answer


def inverted(matrix: Matrix) -> Matrix:
    """The exact inverse, by Gauss and Jordan."""
    k = len(matrix)
    rows = [[*row, *(Fraction(i == j) for j in range(k))] for i, row in enumerate(matrix)]
    for column in range(k):
        pivot = next(i for i in range(column, k) if rows[i][column] != 0)
        rows[column], rows[pivot] = rows[pivot], rows[column]
        rows[column] = [value / rows[column][column] for value in rows[column]]
        for i in range(k):
            if i != column:
                factor = rows[i][column]
                rows[i] = [a - factor * b for a, b in zip(rows[i], rows[column], strict=True)]
    return [row[k:] for row in rows]
