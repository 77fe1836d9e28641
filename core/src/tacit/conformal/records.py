"""Calibration records: probabilities with clean, noisy or randomized labels."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.checks import check_labels
from tacit.errors import InvalidParameter
from tacit.scores import Score, check_probabilities
from tacit.scores.checks import check_uniforms

_CHUNK_SCORES = 1 << 20
"""All-class scores of a chunk of records."""


@dataclass(frozen=True)
class NoisyRecords:
    """Calibration records with noisy labels and the score they are to be calibrated for."""

    score: Score
    probabilities: NDArray[np.float64] = field(repr=False)
    labels: NDArray[np.int64] = field(repr=False)
    uniforms: NDArray[np.float64] | None = field(repr=False)

    @classmethod
    def of(
        cls,
        probabilities: ArrayLike,
        labels: ArrayLike,
        score: Score,
        uniforms: ArrayLike | None = None,
    ) -> "NoisyRecords":
        """Check the table and the labels; there must be at least one record."""
        table = check_probabilities(probabilities)
        if not len(table):
            raise InvalidParameter("There are no calibration records.")
        drawn = None if uniforms is None else check_uniforms(uniforms, len(table))
        return cls(score, table, check_labels(labels, *table.shape), drawn)

    @property
    def n(self) -> int:
        """Number of records."""
        return len(self.probabilities)

    @property
    def k(self) -> int:
        """Number of classes."""
        return int(self.probabilities.shape[1])

    def label_scores(self) -> NDArray[np.float64]:
        """The scores S(x_i, ỹ_i)."""
        return self.score.of_labels(self.probabilities, self.labels, self.uniforms)

    def scores(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The scores S(x_i, ỹ_i), and those of every class of every record in any order."""
        own, every = self.score.of_records(self.probabilities, self.labels, self.uniforms)
        return own, every.ravel()

    def chunks(self) -> Iterator["NoisyRecords"]:
        """The records in chunks, so that the scores of one at a time are in memory."""
        rows = max(1, _CHUNK_SCORES // self.k)
        for start in range(0, self.n, rows):
            part = slice(start, start + rows)
            uniforms = None if self.uniforms is None else self.uniforms[part]
            yield NoisyRecords(self.score, self.probabilities[part], self.labels[part], uniforms)
