"""The scores written plainly from their formulas, one class of one record at a time."""

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import TypeVar

from tacit.scores import APS, HPS, RAPS, SAPS, Margin, RandomizedAPS, Score, TopK

Number = TypeVar("Number", float, Fraction)
Total = Callable[[Iterable[Number]], Number]


def descending_sum(values: Iterable[float]) -> float:
    """The floats added one by one, the largest first: the order in which the scores add."""
    total = 0.0
    for value in sorted(values, reverse=True):
        total += value
    return total


def exact_sum(values: Iterable[Fraction]) -> Fraction:
    return sum(values, Fraction(0))


def plain_score(  # noqa: PLR0911
    score: Score, row: Sequence[Number], y: int, u: Number, total: Total[Number]
) -> Number:
    """S(x, y) before it is clipped to the range."""
    own = row[y]
    rank = len([p for p in row if p >= own])
    match score:
        case HPS():
            return 1 - own
        case APS():
            return total(p for p in row if p >= own)
        case RandomizedAPS():
            return total(p for p in row if p > own) + u * own
        case RAPS(a=a, b=b):
            sums = total(p for p in row if p >= own)
            return min(sums, type(u)(1)) + type(u)(a) * max(0, rank - b)
        case TopK():
            return type(u)(rank)
        case SAPS(weight=weight):
            return u * max(row) if rank == 1 else max(row) + (rank - 2 + u) * type(u)(weight)
        case Margin():
            return max(p for i, p in enumerate(row) if i != y) - own
    raise AssertionError(score)


def clipped_score(
    score: Score, row: Sequence[Number], y: int, u: Number, total: Total[Number]
) -> Number:
    low, high = score.range(len(row))
    value = plain_score(score, row, y, u, total)
    return min(max(value, type(u)(low)), type(u)(high))
