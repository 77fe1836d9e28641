"""A conformity score rounded up to a grid, as a score in its own right."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.conformal import ScoreGrid
from tacit.scores import Score, ScoreRange


@dataclass(frozen=True)
class RoundedUp(Score):
    """The smallest grid point that is at least S(x, y)."""

    base: Score
    grid: ScoreGrid

    name: ClassVar[str] = "rounded-up"

    def _range(self, k: int, /) -> ScoreRange:
        return self.base.range(k)

    def _of_labels(
        self,
        probabilities: NDArray[np.float64],
        labels: NDArray[np.int64],
        _uniforms: NDArray[np.float64],
        /,
    ) -> NDArray[np.float64]:
        return self._up(self.base.of_labels(probabilities, labels), probabilities.shape[1])

    def _of_all(
        self, probabilities: NDArray[np.float64], _uniforms: NDArray[np.float64], /
    ) -> NDArray[np.float64]:
        return self._up(self.base.of_all(probabilities), probabilities.shape[1])

    def _up(self, scores: NDArray[np.float64], k: int) -> NDArray[np.float64]:
        points = [float(point) for point in self.grid.points(self.base.range(k))]
        up = [min(point for point in points if point >= score) for score in scores.ravel()]
        return np.array(up).reshape(scores.shape)
