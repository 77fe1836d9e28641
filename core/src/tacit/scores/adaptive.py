"""Adaptive prediction set scores: sums of the probabilities down to a class's own."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.scores.base import ScoreRange
from tacit.scores.checks import check_rank, check_weight
from tacit.scores.ordered import OrderedScore


@dataclass(frozen=True)
class APS(OrderedScore):
    """S(x, y) = Σ_{p_i ≥ p_y} p_i, in [0, 1]."""

    name: ClassVar[str] = "aps"

    def _range(self, _k: int, /) -> ScoreRange:
        return ScoreRange(0.0, 1.0)

    def _at_ranks(
        self, descending: NDArray[np.float64], _uniforms: NDArray[np.float64], /
    ) -> NDArray[np.float64]:
        return np.cumsum(descending, axis=1, out=descending)


@dataclass(frozen=True)
class RandomizedAPS(OrderedScore):
    """S(x, y) = Σ_{p_i > p_y} p_i + u·p_y with one u per record, in [0, 1]."""

    name: ClassVar[str] = "randomized-aps"
    ties_count: ClassVar[bool] = False

    @property
    def randomized(self) -> bool:
        """It is."""
        return True

    def _range(self, _k: int, /) -> ScoreRange:
        return ScoreRange(0.0, 1.0)

    def _at_ranks(
        self, descending: NDArray[np.float64], uniforms: NDArray[np.float64], /
    ) -> NDArray[np.float64]:
        scores = uniforms[:, np.newaxis] * descending
        scores[:, 1:] += np.cumsum(descending, axis=1, out=descending)[:, :-1]
        return scores


@dataclass(frozen=True)
class RAPS(OrderedScore):
    """S(x, y) = APS(x, y) + a·max(0, NC - b) with NC = |{i : p_i ≥ p_y}|.

    The range is [0, 1 + a·max(0, k - b)].
    """

    a: float
    b: int

    name: ClassVar[str] = "raps"

    def __post_init__(self) -> None:
        object.__setattr__(self, "a", check_weight(self.a, "The weight a of RAPS"))
        object.__setattr__(self, "b", check_rank(self.b, "The rank b of RAPS"))

    def _range(self, k: int, /) -> ScoreRange:
        return ScoreRange(0.0, 1 + self.a * max(0, k - self.b))

    def _at_ranks(
        self, descending: NDArray[np.float64], _uniforms: NDArray[np.float64], /
    ) -> NDArray[np.float64]:
        k = descending.shape[1]
        penalties = self.a * np.maximum(0, np.arange(1, k + 1) - min(self.b, k))
        sums = np.cumsum(descending, axis=1, out=descending)
        # APS itself is at most 1; without this a row that sums to 1+1e-6 would exceed it.
        np.minimum(sums, 1, out=sums)
        sums += penalties
        return sums
