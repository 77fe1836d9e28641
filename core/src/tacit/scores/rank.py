"""Scores of a class's rank among a record's probabilities."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.scores.base import ScoreRange
from tacit.scores.checks import check_weight
from tacit.scores.ordered import OrderedScore


@dataclass(frozen=True)
class TopK(OrderedScore):
    """S(x, y) = |{i : p_i ≥ p_y}|, the rank of y, in [1, k]; tied classes have their last rank."""

    name: ClassVar[str] = "top-k"

    def _range(self, k: int, /) -> ScoreRange:
        return ScoreRange(1.0, float(k))

    def _at_ranks(
        self, descending: NDArray[np.float64], _uniforms: NDArray[np.float64], /
    ) -> NDArray[np.float64]:
        descending[:] = np.arange(1, descending.shape[1] + 1)
        return descending


@dataclass(frozen=True)
class SAPS(OrderedScore):
    """Sorted adaptive prediction sets (Huang et al., 2024): ranks weighed by λ = `weight` > 0.

    With the rank o = |{i : p_i ≥ p_y}| and one u per record, S(x, y) = u·p_max if o = 1, else
    p_max + (o - 2 + u)·λ. The range is [0, 1 + (k - 1)·λ]. Classes tied for the most probable have
    their last rank, so that none of them has rank 1.
    """

    weight: float

    name: ClassVar[str] = "saps"

    def __post_init__(self) -> None:
        weight = check_weight(self.weight, "The weight of SAPS", positive=True)
        object.__setattr__(self, "weight", weight)

    @property
    def randomized(self) -> bool:
        """It is."""
        return True

    def _range(self, k: int, /) -> ScoreRange:
        return ScoreRange(0.0, 1 + (k - 1) * self.weight)

    def _at_ranks(
        self, descending: NDArray[np.float64], uniforms: NDArray[np.float64], /
    ) -> NDArray[np.float64]:
        ranks = np.arange(1, descending.shape[1] + 1)
        best = descending[:, :1].copy()
        drawn = uniforms[:, np.newaxis]
        np.add(ranks - 2, drawn, out=descending)
        descending *= self.weight
        descending += best
        descending[:, :1] = drawn * best
        return descending
