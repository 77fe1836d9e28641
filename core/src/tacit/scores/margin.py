"""The margin score."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.scores.base import Score, ScoreRange


@dataclass(frozen=True)
class Margin(Score):
    """S(x, y) = max_{j≠y} p_j - p_y, in [-1, 1]; classes tied for the most probable have 0."""

    name: ClassVar[str] = "margin"

    def _range(self, _k: int, /) -> ScoreRange:
        return ScoreRange(-1.0, 1.0)

    def _of_labels(
        self,
        probabilities: NDArray[np.float64],
        labels: NDArray[np.int64],
        _uniforms: NDArray[np.float64],
        /,
    ) -> NDArray[np.float64]:
        own = probabilities[np.arange(len(labels)), labels]
        return _best_other(probabilities, labels) - own

    def _of_all(
        self, probabilities: NDArray[np.float64], _uniforms: NDArray[np.float64], /
    ) -> NDArray[np.float64]:
        rows = np.arange(len(probabilities))
        top = probabilities.argmax(axis=1)
        best = probabilities[rows, top]
        scores: NDArray[np.float64] = best[:, np.newaxis] - probabilities
        scores[rows, top] = _best_other(probabilities, top) - best
        return scores


def _best_other(
    probabilities: NDArray[np.float64], labels: NDArray[np.int64]
) -> NDArray[np.float64]:
    others = probabilities.copy()
    others[np.arange(len(labels)), labels] = -np.inf
    best: NDArray[np.float64] = others.max(axis=1)
    return best
