"""What every conformity score offers."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.checks import check_class_count, check_labels
from tacit.errors import InvalidParameter
from tacit.scores.checks import check_uniforms
from tacit.scores.probabilities import read_rows, read_table, row_blocks


class ScoreRange(NamedTuple):
    """The interval [S_min, S_max] in which all values of a score lie."""

    low: float
    high: float


@dataclass(frozen=True)
class Score(ABC):
    """A conformity score S(x, y): larger is worse, and {y : S(x, y) ≤ t} is the prediction set.

    The score of a class does not depend on whether it was asked for alone, with all classes, in a
    multiset, in another batch or in float32: all of these agree bit for bit. Probabilities are
    worked on in blocks of rows, so memory beyond the result does not grow with n·k.
    """

    name: ClassVar[str]
    """What the score is called in documents."""

    @property
    def randomized(self) -> bool:
        """Whether the score needs one uniform number u per record, drawn once and kept."""
        return False

    def range(self, k: int) -> ScoreRange:
        """The range of the score for k classes; at its upper end every class is in the set."""
        interval = self._range(check_class_count(k))
        if not math.isfinite(interval.high):
            raise InvalidParameter(f"{self} has no finite range for {k} classes.")
        return interval

    def of_labels(
        self, probabilities: ArrayLike, labels: ArrayLike, uniforms: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """The scores S(x_i, y_i) of one given label per record, as (n,)."""
        table = read_table(probabilities)
        n, k = table.shape
        low, high = self.range(k)
        chosen = check_labels(labels, n, k)
        drawn = self._check_uniforms(uniforms, n)
        scores = np.empty(n)
        for rows in row_blocks(n, k):
            block = self._of_labels(read_rows(table, rows), chosen[rows], drawn[rows])
            np.clip(block, low, high, out=scores[rows])
        return scores

    def of_all(
        self, probabilities: ArrayLike, uniforms: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """The scores S(x_i, y) of every class of each record, as (n, k)."""
        return self._of_every_class(self._of_all, probabilities, uniforms)

    def multiset(
        self, probabilities: ArrayLike, uniforms: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """The scores of every class of each record, as (n, k), in any order within a row.

        Enough for |C_t(x)|, the number of classes with a score of at most t, and faster.
        """
        return self._of_every_class(self._multiset, probabilities, uniforms)

    def of_records(
        self, probabilities: ArrayLike, labels: ArrayLike, uniforms: ArrayLike | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Both `of_labels` and `multiset`, in one go."""
        table = read_table(probabilities)
        n, k = table.shape
        low, high = self.range(k)
        chosen = check_labels(labels, n, k)
        drawn = self._check_uniforms(uniforms, n)
        own, every = np.empty(n), np.empty((n, k))
        for rows in row_blocks(n, k):
            block = self._of_records(read_rows(table, rows), chosen[rows], drawn[rows])
            np.clip(block[0], low, high, out=own[rows])
            np.clip(block[1], low, high, out=every[rows])
        return own, every

    def to_dict(self) -> dict[str, Any]:
        """The name and the parameters, as `score_from_dict` reads them."""
        return {"name": self.name, **asdict(self)}

    def _of_every_class(
        self,
        compute: Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]],
        probabilities: ArrayLike,
        uniforms: ArrayLike | None,
    ) -> NDArray[np.float64]:
        table = read_table(probabilities)
        n, k = table.shape
        low, high = self.range(k)
        drawn = self._check_uniforms(uniforms, n)
        scores = np.empty((n, k))
        for rows in row_blocks(n, k):
            np.clip(compute(read_rows(table, rows), drawn[rows]), low, high, out=scores[rows])
        return scores

    def _check_uniforms(self, uniforms: ArrayLike | None, n: int) -> NDArray[np.float64]:
        if not self.randomized:
            if uniforms is not None:
                raise InvalidParameter(f"{self.name} is not randomized and takes no uniforms.")
            return np.zeros(n)
        if uniforms is None:
            raise InvalidParameter(
                f"{self.name} is randomized: give `uniforms`, one number in [0, 1] per record, "
                "drawn once and kept with the record."
            )
        return check_uniforms(uniforms, n)

    @abstractmethod
    def _range(self, k: int, /) -> ScoreRange:
        """The range for a checked k."""

    @abstractmethod
    def _of_labels(
        self,
        probabilities: NDArray[np.float64],
        labels: NDArray[np.int64],
        uniforms: NDArray[np.float64],
        /,
    ) -> NDArray[np.float64]:
        """The scores of given labels of a checked block, before clipping to the range."""

    @abstractmethod
    def _of_all(
        self, probabilities: NDArray[np.float64], uniforms: NDArray[np.float64], /
    ) -> NDArray[np.float64]:
        """The scores of every class of a checked block, before clipping to the range."""

    def _multiset(
        self, probabilities: NDArray[np.float64], uniforms: NDArray[np.float64], /
    ) -> NDArray[np.float64]:
        return self._of_all(probabilities, uniforms)

    def _of_records(
        self,
        probabilities: NDArray[np.float64],
        labels: NDArray[np.int64],
        uniforms: NDArray[np.float64],
        /,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        own = self._of_labels(probabilities, labels, uniforms)
        return own, self._multiset(probabilities, uniforms)
