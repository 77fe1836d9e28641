"""The score that is expected of a record's true label, given a noisy one."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidNoise, InvalidParameter
from tacit.scores.base import Score, ScoreRange
from tacit.scores.checks import check_weight


@dataclass(frozen=True)
class NoiseRobust(Score):
    """Ŝ(x, y) = (1-β)·S(x, y) + β·mean_i S(x, i), for labels replaced by a uniform one with β.

    The expected score of the true label if every class is equally likely beforehand; the range is
    that of S.
    """

    base: Score
    beta: float

    name: ClassVar[str] = "noise-robust"

    def __post_init__(self) -> None:
        if not isinstance(self.base, Score) or isinstance(self.base, NoiseRobust):
            raise InvalidParameter("The base of a noise-robust score is one that is not.")
        object.__setattr__(self, "beta", check_weight(self.beta, "β"))
        if self.beta >= 1:
            raise InvalidNoise(f"β must be at least 0 and below 1, not {self.beta!r}.")

    @property
    def randomized(self) -> bool:
        """Whether the base is."""
        return self.base.randomized

    def to_dict(self) -> dict[str, Any]:
        """The name, β and the base, as `score_from_dict` reads them."""
        return {"name": self.name, "base": self.base.to_dict(), "beta": self.beta}

    def _range(self, k: int, /) -> ScoreRange:
        return self.base.range(k)

    def _of_labels(
        self,
        probabilities: NDArray[np.float64],
        labels: NDArray[np.int64],
        uniforms: NDArray[np.float64],
        /,
    ) -> NDArray[np.float64]:
        every = self._of_all(probabilities, uniforms)
        scores: NDArray[np.float64] = every[np.arange(len(labels)), labels]
        return scores

    def _of_all(
        self, probabilities: NDArray[np.float64], uniforms: NDArray[np.float64], /
    ) -> NDArray[np.float64]:
        scores = self.base.of_all(probabilities, uniforms if self.randomized else None)
        mean = scores.mean(axis=1, keepdims=True)
        blended: NDArray[np.float64] = (1 - self.beta) * scores + self.beta * mean
        return blended
