"""Coins that are known beforehand: for comparing programs on the same coins, never for privacy."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class KnownCoins:
    """The blocks given, row by row, at every attempt."""

    words: NDArray[np.uint64]

    @property
    def rows(self) -> int | None:
        return len(self.words)

    def blocks(self, start: int, stop: int, attempt: int) -> NDArray[np.uint64]:
        assert attempt == 0, "binary randomized response never draws twice"
        return self.words[start:stop]


def known_words(n: int, generator: np.random.Generator) -> NDArray[np.uint64]:
    """128 simulated bits for each of n records."""
    return generator.integers(0, 2**64, size=(n, 2), dtype=np.uint64)
