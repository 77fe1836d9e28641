"""scikit-learn's handwritten digits, split into training, calibration and held-out records."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

CLASSES = 10
TRAINING = 100
"""So few that the model stays unsure, and sets of more than one class have something to say."""
CALIBRATION = 1250
_SPLIT_SEED = 7


@dataclass(frozen=True)
class Records:
    """Images of 8 × 8 pixels in [0, 1], and the digit each one shows."""

    images: NDArray[np.float64]
    labels: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, rows: slice | NDArray[np.int64]) -> Self:
        return type(self)(self.images[rows], self.labels[rows])


@dataclass(frozen=True)
class Digits:
    """Three sets of records that share none."""

    training: Records
    calibration: Records
    held_out: Records


def digits() -> Digits:
    """The 1,797 digits, always in the same random split."""
    bunch = load_digits()
    everything = Records(bunch.images / 16, bunch.target.astype(np.int64))
    shuffled = everything[np.random.default_rng(_SPLIT_SEED).permutation(len(everything))]
    end = TRAINING + CALIBRATION
    return Digits(shuffled[:TRAINING], shuffled[TRAINING:end], shuffled[end:])
