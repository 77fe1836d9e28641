"""What a threshold is worth on records that nobody calibrated on."""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from tacit.conformal import Calibration, Guarantee, NotCertifiable

Result = Calibration | NotCertifiable


@dataclass(frozen=True)
class Figures:
    """How often the sets hold the true class, with its sampling error, and their average size."""

    coverage: float
    margin: float
    set_size: float

    @classmethod
    def of(
        cls,
        calibration: Calibration,
        probabilities: NDArray[np.float64],
        labels: NDArray[np.int64],
    ) -> Self:
        """On these held-out records."""
        sets = calibration.sets(probabilities)
        coverage = float(sets[np.arange(len(sets)), labels].mean())
        margin = sampling_error(coverage, len(labels))
        return cls(coverage, margin, float(sets.sum(axis=1).mean()))

    def in_words(self) -> tuple[str, str]:
        """Coverage and set size for a table."""
        return f"{self.coverage:.1%} ± {100 * self.margin:.1f}", f"{self.set_size:.2f}"


def sampling_error(share: float, n: int) -> float:
    """Half the width of Wilson's 95 % interval, which is not 0 even where every record is a hit."""
    z = 1.96
    return z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))


def instructive(
    sets: NDArray[np.bool_], probabilities: NDArray[np.float64], labels: NDArray[np.int64]
) -> int:
    """Of the images whose set makes up for a wrong first guess, the one the model knows best."""
    chosen = (np.arange(len(labels)), labels)
    rescued = sets[chosen] & (probabilities.argmax(axis=1) != labels)
    return int(np.argmax(np.where(rescued, probabilities[chosen], -1)))


def promise(result: Result) -> str:
    """The guarantee in a few words, for a table."""
    if isinstance(result, NotCertifiable):
        return "none: too few records"
    goal = f"{1 - result.alpha:.0%}"
    if result.guarantee is Guarantee.CERTIFIED and result.delta is not None:
        return f"at least {goal}, {1 - result.delta:.0%} sure"
    return {
        Guarantee.MARGINAL: f"at least {goal} on average",
        Guarantee.NOMINAL: f"aims at {goal}, no promise",
        Guarantee.COMPARISON: "aims higher, not proved",
    }[result.guarantee]
