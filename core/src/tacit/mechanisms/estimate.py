"""Unbiased estimates from randomized reports."""

from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidParameter

Quantity = TypeVar("Quantity", float, NDArray[np.float64])


@dataclass(frozen=True, eq=False)
class Estimate(Generic[Quantity]):
    """An unbiased estimate and an unbiased estimate of its variance.

    The target is the population that the records are independent draws of, so the variance counts
    both the sampling of records and the mechanism's noise. Values may lie outside [0, 1].
    """

    value: Quantity
    variance: Quantity


@dataclass(frozen=True)
class Debiasing:
    """A frequency f among values appears among reports as offset + slope·f."""

    offset: float
    slope: float

    def estimate(self, observed: Quantity, n: int) -> Estimate[Quantity]:
        """From the frequency observed among n reports: f̂ = (observed - offset) / slope."""
        spread = observed * (1 - observed) / ((n - 1) * self.slope**2)
        return Estimate((observed - self.offset) / self.slope, spread)

    def variance(self, n: int, frequency: float) -> float:
        """Variance of f̂ at the true frequency: r(1-r) / (n·slope²), r = offset + slope·f."""
        if n < 1 or not 0 <= frequency <= 1:
            raise InvalidParameter("n must be at least 1 and the frequency must lie in [0, 1].")
        reported = self.offset + self.slope * frequency
        return reported * (1 - reported) / (n * self.slope**2)
