"""Scores that depend on a record's probabilities in descending order."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.scores.base import Score


@dataclass(frozen=True)
class OrderedScore(Score):
    """A score that is a function v of a class's rank among the probabilities in descending order.

    `_at_ranks` gives v(1) ≤ … ≤ v(k) as if no two probabilities were equal. Classes with equal
    probabilities share one score: v at the last of their ranks if ties count (p_i ≥ p_y), v at the
    first if they do not (p_i > p_y). Since v is monotone, also in floating point, sharing is a
    running minimum or maximum, and no class needs to know where in the order it stands.
    """

    ties_count: ClassVar[bool] = True
    """Whether classes as probable as y count as being before it."""

    @abstractmethod
    def _at_ranks(
        self, descending: NDArray[np.float64], uniforms: NDArray[np.float64], /
    ) -> NDArray[np.float64]:
        """The values v(1), …, v(k) of each record; v(r) depends on probabilities of ranks ≤ r only.

        `descending` may be overwritten: large new arrays cost more than the arithmetic.
        """

    def _of_labels(
        self,
        probabilities: NDArray[np.float64],
        labels: NDArray[np.int64],
        uniforms: NDArray[np.float64],
        /,
    ) -> NDArray[np.float64]:
        own, _ = self._of_records(probabilities, labels, uniforms)
        return own

    def _of_all(
        self, probabilities: NDArray[np.float64], uniforms: NDArray[np.float64], /
    ) -> NDArray[np.float64]:
        order = np.argsort(probabilities, axis=1)[:, ::-1]
        descending = np.take_along_axis(probabilities, order, axis=1)
        scores = np.empty_like(probabilities)
        np.put_along_axis(scores, order, self._with_ties(descending, uniforms), axis=1)
        return scores

    def _multiset(
        self, probabilities: NDArray[np.float64], uniforms: NDArray[np.float64], /
    ) -> NDArray[np.float64]:
        return self._with_ties(np.sort(probabilities, axis=1)[:, ::-1], uniforms)

    def _of_records(
        self,
        probabilities: NDArray[np.float64],
        labels: NDArray[np.int64],
        uniforms: NDArray[np.float64],
        /,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        every = self._multiset(probabilities, uniforms)
        rows = np.arange(len(labels))
        # With ties shared, every place among its equals has the label's score; the first is taken.
        before = probabilities > probabilities[rows, labels, np.newaxis]
        own: NDArray[np.float64] = every[rows, np.count_nonzero(before, axis=1)]
        return own, every

    def _with_ties(
        self, descending: NDArray[np.float64], uniforms: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        tied = descending[:, 1:] == descending[:, :-1]
        scores = self._at_ranks(descending, uniforms)
        if tied.any():
            # Most ties are between probabilities of 0, which most scores value the same anyway.
            rows = np.flatnonzero((tied & (scores[:, 1:] != scores[:, :-1])).any(axis=1))
            scores[rows] = self._share(scores[rows], tied[rows])
        return scores

    def _share(self, scores: NDArray[np.float64], tied: NDArray[np.bool_]) -> NDArray[np.float64]:
        """The scores with ranks j and j+1 given the same one wherever tied[j]."""
        if self.ties_count:
            np.copyto(scores[:, :-1], np.inf, where=tied)
            return np.minimum.accumulate(scores[:, ::-1], axis=1)[:, ::-1]
        np.copyto(scores[:, 1:], -np.inf, where=tied)
        return np.maximum.accumulate(scores, axis=1)
