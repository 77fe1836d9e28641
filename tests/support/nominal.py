"""Coverage of a nominal method over many calibration sets of a population."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tacit.scores import Score
from tests.support.populations import Floats, Labels, Population

ALPHA = 0.1
ONE_POINT = 0.01
LARGEST_DEVIATION = 0.03
RUNS = 500

Threshold = Callable[[Floats, Labels, int], float]
"""(probabilities, true labels, seed) → the threshold of one run."""


@dataclass(frozen=True)
class Cell:
    """A setting in which a method that aims at 1-α must come within a point of it."""

    population: Population
    n: int
    epsilon: float
    score: Score

    def deviation(self, beta: float) -> float:
        """The s.d. of F̂^c where the true coverage is 1-α."""
        threshold = self.population.threshold(self.score, 1 - ALPHA)
        return self.population.deviation(self.score, beta, self.n, threshold)

    def coverages(self, threshold: Threshold, runs: int = RUNS) -> Floats:
        """The true coverage of the threshold of each run."""
        coverage = self.population.coverage_of(self.score)
        results = np.empty(runs)
        for seed in range(runs):
            records = self.population.draw(self.n, np.random.default_rng(seed))
            results[seed] = coverage(threshold(*records, seed))
        return results
