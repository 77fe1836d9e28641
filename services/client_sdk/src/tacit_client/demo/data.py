"""scikit-learn's handwritten digits, split into training, calibration and held-out records."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

CLASSES = 10
BRIGHTEST = 16
TRAINING = 100
"""So few that the model stays unsure, and sets of more than one class have something to say."""
CALIBRATION = 1250
SIZES = {"Ash": 500, "Birch": 350, "Cedar": 200, "Elm": 150, "Fir": 50}
"""How many of the calibration records each of five sites holds."""
_SPLIT_SEED = 7


@dataclass(frozen=True)
class Records:
    """Images of 8 × 8 pixels from 0 to 16, and the digit each one shows."""

    images: NDArray[np.uint8]
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

    def at_sites(self) -> dict[str, Records]:
        """The calibration records, dealt out to five sites of different sizes."""
        ends = np.cumsum(list(SIZES.values()))
        return {
            name: self.calibration[int(end) - size : int(end)]
            for (name, size), end in zip(SIZES.items(), ends, strict=True)
        }


def digits() -> Digits:
    """The 1,797 digits, always in the same random split."""
    from sklearn.datasets import load_digits  # noqa: PLC0415 -- the network alone does without

    bunch = load_digits()
    everything = Records(bunch.images.astype(np.uint8), bunch.target.astype(np.int64))
    shuffled = everything[np.random.default_rng(_SPLIT_SEED).permutation(len(everything))]
    end = TRAINING + CALIBRATION
    return Digits(shuffled[:TRAINING], shuffled[TRAINING:end], shuffled[end:])
