"""Populations of which the coverage of every threshold is known exactly."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tacit.scores import Score

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Population:
    """Equally likely features x, a model's probabilities for each, and the law of y given x."""

    probabilities: Floats
    label_law: Floats

    @property
    def k(self) -> int:
        return int(self.probabilities.shape[1])

    @cached_property
    def _cumulative(self) -> Floats:
        return np.cumsum(self.label_law, axis=1)

    def draw(self, n: int, generator: np.random.Generator) -> tuple[Floats, Labels]:
        """The probabilities and the true labels of n independent records."""
        rows = generator.integers(0, len(self.probabilities), n)
        below = self._cumulative[rows] <= generator.random((n, 1))
        return self.probabilities[rows], np.minimum(below.sum(axis=1), self.k - 1)

    def coverage_of(self, score: Score) -> Callable[[float], float]:
        """t ↦ F^c(t) = P(S(x, y) ≤ t), without error but rounding."""
        scores = score.of_all(self.probabilities).ravel()
        order = np.argsort(scores)
        ordered = scores[order]
        within = np.concatenate([[0.0], np.cumsum(self.label_law.ravel()[order])])
        within /= len(self.probabilities)

        def coverage(threshold: float) -> float:
            return float(within[np.searchsorted(ordered, threshold, side="right")])

        return coverage

    def threshold(self, score: Score, target: float) -> float:
        """The smallest score t with F^c(t) ≥ target."""
        coverage = self.coverage_of(score)
        points = np.unique(score.of_all(self.probabilities))
        low, high = 0, len(points) - 1
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if coverage(points[middle]) >= target else (middle + 1, high)
        return float(points[low])

    def deviation(self, score: Score, beta: float, n: int, threshold: float) -> float:
        """The s.d. of F̂^c(t) of n records: that of (1{S(x,ỹ) ≤ t} - β|C_t(x)|/k)/(1-β), over √n."""
        inside = score.of_all(self.probabilities) <= threshold
        share = inside.mean(axis=1)
        noisy_law = (1 - beta) * self.label_law + beta / self.k
        within = (noisy_law * inside).sum(axis=1)
        expected = (within - beta * share).mean()
        squares = within * (1 - beta * share) ** 2 + (1 - within) * (beta * share) ** 2
        variance = squares.mean() - expected**2
        return float(np.sqrt(variance / n) / (1 - beta))


def synthetic(k: int, seed: int = 0, size: int = 3000, sharpness: float = 0.25) -> Population:
    """An overconfident model: labels follow its probabilities mixed with uniform ones."""
    generator = np.random.default_rng(seed)
    probabilities = generator.dirichlet(np.full(k, sharpness), size)
    return Population(probabilities, 0.9 * probabilities + 0.1 / k)
