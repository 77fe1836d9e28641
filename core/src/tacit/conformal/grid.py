"""The grid a coverage sketch counts on: fixed beforehand, the same bits on every machine."""

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidParameter
from tacit.scores import ScoreRange

_OCTAVES = 50
"""2^-50 < 1e-15: how near to both ends of the range the grid goes."""

_BLOCK = 1 << 16
"""Scores whose cells are found at a time, so that intermediate arrays stay in the cache."""


@dataclass(frozen=True)
class ScoreGrid:
    """Evenly spaced points, and towards both ends points that halve their distance to the end.

    Like a logit scale, but of dyadic numbers only: no library function decides a last bit, so every
    party that builds the grid builds the same one, and a score's cell can be read off its bits.
    """

    steps_per_octave: int = 32
    even_steps: int = 2048

    def __post_init__(self) -> None:
        for value in (self.steps_per_octave, self.even_steps):
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 1 << 12:
                raise InvalidParameter("A grid has between 1 and 2^12 steps of each kind.")
            if value & (value - 1):
                raise InvalidParameter("The steps of a grid are powers of two.")

    def points(self, limits: ScoreRange) -> NDArray[np.float64]:
        """The upper ends of the cells in ascending order, the last one S_max; read-only.

        The upper end of a cell is its largest score, so that a score is ≤ a point exactly if its
        cell is at or below the point's.
        """
        return _points(self, limits)

    def count(self, scores: NDArray[np.float64], limits: ScoreRange) -> NDArray[np.int64]:
        """How many scores lie in each cell."""
        keys = self._keys
        tally = np.zeros(len(keys.cells), dtype=np.int64)
        for start in range(0, scores.size, _BLOCK):
            unit = _unit(scores[start : start + _BLOCK], limits)
            tally += np.bincount(keys.of(unit), minlength=len(tally))
        return np.bincount(keys.cells, weights=tally).astype(np.int64)

    def cells(self, scores: NDArray[np.float64], limits: ScoreRange) -> NDArray[np.int64]:
        """The number of the cell of each score."""
        found: NDArray[np.int64] = self._keys.cells[self._keys.of(_unit(scores, limits))]
        return found

    @cached_property
    def _unit_points(self) -> NDArray[np.float64]:
        """The points for the range [0, 1]."""
        steps = 1 + np.arange(self.steps_per_octave) / self.steps_per_octave
        near = np.concatenate([steps * 2.0**-octave for octave in range(2, _OCTAVES + 1)])
        even = np.arange(1, self.even_steps + 1) / self.even_steps
        points = np.unique(np.concatenate([near, 1 - near, even]))
        points.flags.writeable = False
        return points

    @cached_property
    def _keys(self) -> "_Keys":
        return _Keys(max(self.steps_per_octave, self.even_steps // 4).bit_length() - 1, self)


class _Keys:
    """Cells finer than any grid point, numbered in ascending order by the leading bits of a score.

    A score u ≤ 1/2 is known by its exponent and the first bits of its mantissa, a larger one by
    those of 1-u, which is exact. The cells are (a, b] on both sides, as those of the grid are.
    """

    def __init__(self, mantissa_bits: int, grid: ScoreGrid) -> None:
        self._shift = 52 - mantissa_bits
        self._first = int(np.float64(2.0**-_OCTAVES).view(np.int64)) >> self._shift
        self._count = 2 * (((_OCTAVES - 1) << mantissa_bits) + 1)
        numbers = np.arange(self._count // 2, dtype=np.int64) + self._first
        distances = (numbers << self._shift).view(np.float64)
        ends = np.concatenate([distances, 1 - np.append(0.0, distances[:-1])[::-1]])
        self.cells = np.searchsorted(grid._unit_points, ends).astype(np.int64)
        """The grid cell of each key."""

    def of(self, unit: NDArray[np.float64]) -> NDArray[np.int64]:
        """The keys of scores in [0, 1]."""
        upper = np.negative((unit > 0.5).view(np.int8)).astype(np.int64)
        distance = np.subtract(1.0, unit)
        np.minimum(distance, unit, out=distance)
        distance += 0.0  # -0.0 has other bits
        keys = distance.view(np.int64)
        keys += ~upper  # one bit less where the upper end belongs to the cell: (a, b] from below
        keys >>= self._shift
        keys -= self._first - 1
        np.maximum(keys, 0, out=keys)
        keys ^= upper  # from above they are numbered backwards: -1-key ...
        upper &= self._count
        keys += upper  # ... counted from the end
        return keys


def _unit(scores: NDArray[np.float64], limits: ScoreRange) -> NDArray[np.float64]:
    """The scores moved to [0, 1] by a function that is monotone in floating point, too."""
    if limits == (0.0, 1.0):
        return scores
    moved: NDArray[np.float64] = (scores - limits.low) / (limits.high - limits.low)
    return moved


@lru_cache(maxsize=64)
def _points(grid: ScoreGrid, limits: ScoreRange) -> NDArray[np.float64]:
    """The largest float at or below each point, found by bisection over all floats in the range."""
    unit = grid._unit_points
    if limits == (0.0, 1.0):
        return unit
    inside, outside = np.full(unit.shape, limits.low), np.full(unit.shape, limits.high)
    low, high = _in_order(inside), _in_order(outside)
    for _ in range(64):
        middle = (low >> 1) + (high >> 1) + ((low | high) & 1)  # rounded up, without overflow
        fits = _unit(_in_order(middle.view(np.float64)).view(np.float64), limits) <= unit
        low = np.where(fits, middle, low)
        high = np.where(fits, high, middle - 1)
    points = _in_order(low.view(np.float64)).view(np.float64)
    points.flags.writeable = False
    return points


def _in_order(floats: NDArray[np.float64]) -> NDArray[np.int64]:
    """Integers in the order of the floats, and, of such integers, the bits of their floats."""
    bits = floats.view(np.int64)
    return np.where(bits < 0, np.iinfo(np.int64).min - bits, bits)
