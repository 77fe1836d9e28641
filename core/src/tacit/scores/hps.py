"""The homogeneous prediction set score."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.scores.base import Score, ScoreRange


@dataclass(frozen=True)
class HPS(Score):
    """S(x, y) = 1 - p_y, in [0, 1]."""

    name: ClassVar[str] = "hps"

    def _range(self, _k: int, /) -> ScoreRange:
        return ScoreRange(0.0, 1.0)

    def _of_labels(
        self,
        probabilities: NDArray[np.float64],
        labels: NDArray[np.int64],
        _uniforms: NDArray[np.float64],
        /,
    ) -> NDArray[np.float64]:
        return 1 - probabilities[np.arange(len(labels)), labels]

    def _of_all(
        self, probabilities: NDArray[np.float64], _uniforms: NDArray[np.float64], /
    ) -> NDArray[np.float64]:
        return 1 - probabilities
