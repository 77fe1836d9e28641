"""The coverage sketch: everything NACP needs of any number of records, in constant memory.

It counts noisy-label scores and all-class scores per cell (g_{j-1}, g_j] of a grid fixed
beforehand. Rounding a score up to its grid point gives a conformity score in its own right, whose
sets at grid points are those of S; F̂^n and F̂^r at grid points are exact, and the sketch's threshold
equals, bit for bit, exact NACP on the rounded scores. Counts are integers: merging is addition, in
any order.
"""

import base64
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.checks import check_class_count, check_labels
from tacit.conformal.curve import CoverageCurve
from tacit.conformal.document import Document, Fields
from tacit.conformal.grid import ScoreGrid
from tacit.conformal.labels import label_outcome
from tacit.conformal.records import NoisyRecords
from tacit.conformal.results import Calibration, NotCertifiable
from tacit.errors import (
    IncompatibleSketches,
    InvalidDocument,
    InvalidLabels,
    InvalidParameter,
    InvalidProbabilities,
)
from tacit.mechanisms import UniformChannel
from tacit.scores import (
    Score,
    check_probabilities,
    score_from_dict,
)

_COUNTS = np.dtype("<i8")
_MOST_SCORES = 2**53
"""More than any campaign has, and each of them still an exact float."""


@dataclass(frozen=True, eq=False)
class CoverageSketch(Document):
    """Counts per grid cell; make one with `CoverageSketch.empty`, grow it with `add` and `+`."""

    kind: ClassVar[str] = "coverage-sketch"

    score: Score
    k: int
    grid: ScoreGrid
    noisy: NDArray[np.int64]
    """Noisy-label scores in each cell."""
    every: NDArray[np.int64]
    """All-class scores in each cell."""

    def __post_init__(self) -> None:
        self.noisy.flags.writeable = self.every.flags.writeable = False

    @classmethod
    def empty(cls, score: Score, k: int, grid: ScoreGrid | None = None) -> Self:
        """A sketch of no records."""
        k = check_class_count(k)
        grid = grid or ScoreGrid()
        cells = len(grid.points(score.range(k)))
        return cls(score, k, grid, np.zeros(cells, np.int64), np.zeros(cells, np.int64))

    @property
    def n(self) -> int:
        """Number of records counted."""
        return int(self.noisy.sum())

    def add(
        self, probabilities: ArrayLike, labels: ArrayLike, uniforms: ArrayLike | None = None
    ) -> Self:
        """The sketch with these records counted too."""
        table = check_probabilities(probabilities)
        if table.shape[1] != self.k:
            raise InvalidProbabilities(
                f"This sketch has {self.k} classes, the table {table.shape[1]} columns."
            )
        if not len(table):
            check_labels(labels, 0, self.k)
            return self
        records = NoisyRecords.of(table, labels, self.score, uniforms)
        sketch = self
        limits = self.score.range(self.k)
        for chunk in records.chunks():
            noisy, every = (self.grid.count(scores, limits) for scores in chunk.scores())
            sketch = sketch._with(sketch.noisy + noisy, sketch.every + every)
        return sketch

    def __add__(self, other: Self) -> Self:
        """The sketch of both sets of records."""
        if not isinstance(other, CoverageSketch):
            return NotImplemented
        if (self.score, self.k, self.grid) != (other.score, other.k, other.grid):
            raise IncompatibleSketches
        return self._with(self.noisy + other.noisy, self.every + other.every)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, CoverageSketch)
            and (self.score, self.k, self.grid) == (other.score, other.k, other.grid)
            and np.array_equal(self.noisy, other.noisy)
            and np.array_equal(self.every, other.every)
        )

    __hash__ = None  # type: ignore[assignment]  # arrays inside: equal, but not hashable

    def calibrate(
        self, channel: UniformChannel, alpha: float, delta: float | None = None
    ) -> Calibration | NotCertifiable:
        """LDP-CP-L from the sketch, or with δ LDP-CP-L*: the largest crossing over grid points."""
        if channel.k != self.k:
            raise InvalidLabels(f"The channel has {channel.k} classes, this sketch {self.k}.")
        curve = self.curve()

        def threshold(target: Fraction) -> tuple[float, float, float]:
            index = curve.largest_crossing(channel.beta, target)
            coverage = curve.coverage(channel.beta)[index]
            resolution = coverage - curve.coverage_before(channel.beta)[index]
            return float(curve.thresholds[index]), float(coverage), float(resolution)

        return label_outcome(threshold, channel, self.score, self.n, alpha=alpha, delta=delta)

    def curve(self) -> CoverageCurve:
        """The coverage curve at every grid point, exact there."""
        if not self.n:
            raise InvalidParameter("There are no records in this sketch.")
        noisy, every = np.cumsum(self.noisy), np.cumsum(self.every)
        return CoverageCurve(
            thresholds=self.grid.points(self.score.range(self.k)),
            noisy_below=noisy - self.noisy,
            noisy_within=noisy,
            all_below=every - self.every,
            all_within=every,
            n=self.n,
            k=self.k,
        )

    def _with(self, noisy: NDArray[np.int64], every: NDArray[np.int64]) -> Self:
        if every.sum() > _MOST_SCORES:
            raise InvalidParameter("A sketch holds at most 2^53 scores.")
        return type(self)(self.score, self.k, self.grid, noisy, every)

    def _to_fields(self) -> dict[str, Any]:
        return {
            "score": self.score.to_dict(),
            "k": self.k,
            "steps_per_octave": self.grid.steps_per_octave,
            "even_steps": self.grid.even_steps,
            "noisy": _encode(self.noisy),
            "every": _encode(self.every),
        }

    @classmethod
    def _from_fields(cls, fields: Fields) -> Self:
        grid = ScoreGrid(fields.integer("steps_per_octave"), fields.integer("even_steps"))
        sketch = cls.empty(score_from_dict(fields.mapping("score")), fields.integer("k"), grid)
        noisy = _decode(fields.text("noisy"), len(sketch.noisy))
        every = _decode(fields.text("every"), len(sketch.every))
        # Sums of Python integers: those of numpy wrap around.
        total = sum(every.tolist())
        if total > _MOST_SCORES:
            raise InvalidDocument("A sketch holds at most 2^53 scores.")
        if total != sketch.k * sum(noisy.tolist()) or (noisy > every).any():
            raise InvalidDocument("The sketch does not balance: each record has k scores.")
        return sketch._with(noisy, every)


def _encode(counts: NDArray[np.int64]) -> str:
    return base64.b64encode(counts.astype(_COUNTS).tobytes()).decode("ascii")


def _decode(text: str, cells: int) -> NDArray[np.int64]:
    try:
        counts = np.frombuffer(base64.b64decode(text, validate=True), dtype=_COUNTS)
    except ValueError as error:
        raise InvalidDocument("Counts are base64 of little-endian 64-bit integers.") from error
    if len(counts) != cells or (counts < 0).any():
        raise InvalidDocument(f"Counts are {cells} non-negative integers.")
    return counts.astype(np.int64)
