"""The grid a coverage sketch counts on: fixed beforehand, the same bits on every machine."""

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidParameter
from tacit.scores import ScoreRange

_OCTAVES = 50
"""2^-50 < 1e-15: how near to both ends of the range the grid goes."""


@dataclass(frozen=True)
class ScoreGrid:
    """Evenly spaced points, and towards both ends points that halve their distance to the end.

    Like a logit scale, but of dyadic numbers only: no library function decides a last bit, so every
    party that builds the grid builds the same one.
    """

    steps_per_octave: int = 32
    even_steps: int = 2048

    def __post_init__(self) -> None:
        for value in (self.steps_per_octave, self.even_steps):
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 1 << 20:
                raise InvalidParameter("A grid has between 1 and 2^20 steps of each kind.")
            if value & (value - 1):
                raise InvalidParameter("The steps of a grid are powers of two.")

    def points(self, limits: ScoreRange) -> NDArray[np.float64]:
        """Ascending grid points on [S_min, S_max], both ends included; read-only."""
        return _points(self, limits)


@cache
def _points(grid: ScoreGrid, limits: ScoreRange) -> NDArray[np.float64]:
    steps = 1 + np.arange(grid.steps_per_octave) / grid.steps_per_octave
    near = np.concatenate([steps * 2.0**-octave for octave in range(2, _OCTAVES + 1)])
    even = np.arange(grid.even_steps + 1) / grid.even_steps
    unit = np.concatenate([near, 1 - near, even])
    points = np.unique(limits.low + (limits.high - limits.low) * unit)
    points[-1] = limits.high
    points.flags.writeable = False
    return points
