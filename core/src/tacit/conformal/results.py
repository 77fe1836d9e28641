"""What a calibration returns: a threshold to use, or the number of records it would take."""

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.conformal.document import Document
from tacit.errors import InvalidParameter, InvalidProbabilities
from tacit.exact import level, positive
from tacit.scores import Score, check_probabilities

EXCHANGEABLE = "New records are exchangeable with the calibration records."
POPULATION = (
    "The population is the mixture the contributing sites form, weighted by their contributions."
)
KNOWN_NOISE = "The noise level is the true one; nothing is claimed for an estimated one."
EVERY_CLASS = "The threshold is the largest score there is: every class is in every set."


class Guarantee(StrEnum):
    """What a coverage of 1-α is worth.

    marginal: at least 1-α on average over calibration sets.
    nominal: aimed at, without a finite-sample statement.
    comparison: aimed above 1-α by a correction whose constant is not proved.
    certified: at least 1-α with probability at least 1-δ over records and coins.
    """

    MARGINAL = "marginal"
    NOMINAL = "nominal"
    COMPARISON = "comparison"
    CERTIFIED = "certified"


@dataclass(frozen=True)
class Calibration(Document):
    """A threshold t, what is known about it, and the sets C_t(x) = {y : S(x, y) ≤ t} it makes."""

    kind: ClassVar[str] = "calibration"

    method: str
    score: Score
    k: int
    threshold: float
    n: int
    """Calibration records counted."""
    alpha: float
    guarantee: Guarantee
    coverage: float
    """The estimate of the coverage at the threshold, from the calibration records themselves."""
    delta: float | None = None
    correction: float | None = None
    """Δ, by how much the target was raised above 1-α (None: not at all)."""
    epsilon: float | None = None
    """The exact ε of the channel the reports came through (None: not private)."""
    resolution: float | None = None
    """The estimated coverage of the grid cell below the threshold (None: exact, no grid)."""
    assumptions: tuple[str, ...] = (EXCHANGEABLE, POPULATION)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        low, high = self.score.range(self.k)
        if not low <= self.threshold <= high:
            raise InvalidParameter("The threshold lies outside the range of the score.")
        if self.guarantee is Guarantee.CERTIFIED and self.delta is None:
            raise InvalidParameter("A certified threshold states δ.")
        _check_terms(self.alpha, self.delta, self.correction, self.epsilon)
        if self.threshold == high and EVERY_CLASS not in self.notes:
            object.__setattr__(self, "notes", (*self.notes, EVERY_CLASS))

    def sets(
        self, probabilities: ArrayLike, uniforms: ArrayLike | None = None
    ) -> NDArray[np.bool_]:
        """The prediction sets of new records, as an (n, k) table of memberships."""
        table = check_probabilities(probabilities)
        if table.shape[1] != self.k:
            raise InvalidProbabilities(
                f"This threshold is for {self.k} classes; the table has {table.shape[1]} columns."
            )
        return self.score.of_all(table, uniforms) <= self.threshold


@dataclass(frozen=True)
class NotCertifiable(Document):
    """With n records the target 1-α+Δ would be 1 or more; `needed` records would do."""

    kind: ClassVar[str] = "not-certifiable"

    method: str
    n: int
    needed: int
    """The smallest n at which Δ is below α."""
    alpha: float
    delta: float
    correction: float | None
    """Δ at n (None: n is too small for any)."""
    epsilon: float

    def __post_init__(self) -> None:
        _check_terms(self.alpha, self.delta, self.correction, self.epsilon)

    def __str__(self) -> str:
        size = "" if self.correction is None else f": Δ = {self.correction:.3f}, α = {self.alpha:g}"
        return f"Not certifiable with {self.n} records{size}. {self.needed} records would do."


def _check_terms(
    alpha: float, delta: float | None, correction: float | None, epsilon: float | None
) -> None:
    """Refuse what is no level, no Δ or no ε."""
    level(alpha, "α")
    if delta is not None:
        level(delta, "δ")
    if correction is not None:
        positive(correction, "Δ")
    if epsilon is not None:
        positive(epsilon, "ε")
