"""What travels in a search: questions, answers, and who answers when."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.conformal.document import Document
from tacit.errors import InvalidBits, InvalidParameter
from tacit.exact import count

_DEALING = 20250
"""Seeds the order in which records are dealt out: any number does, a fixed one."""


def deal(n: int, rounds: int) -> list[NDArray[np.int64]]:
    """The rows of n records that answer in each round: ⌊n/T⌋ in each, in a random order.

    Whatever order the records are in, by site or by class, every round is a random share of them.
    The same n and T are always dealt out in the same way: records whose coins are their own must
    not be asked another question when a search is repeated.
    """
    asked = count(n, "n", at_least=0) // count(rounds, "The number of rounds") * rounds
    rows = np.random.default_rng(_DEALING).permutation(n)[:asked]
    return [rows[start::rounds] for start in range(rounds)]


@dataclass(frozen=True)
class Answers:
    """The randomized bits of one round: how many said yes, of how many."""

    ones: int
    count: int

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "ones", count(self.ones, "The ones", at_least=0))
            object.__setattr__(self, "count", count(self.count, "The answers", at_least=self.ones))
        except InvalidParameter as error:
            raise InvalidBits("Between none and all of the answers can be ones.") from error

    @classmethod
    def of(cls, bits: ArrayLike) -> "Answers":
        """Count randomized bits."""
        given = np.asarray(bits)
        if given.ndim != 1 or (given.size and not np.isin(given, (0, 1)).all()):
            raise InvalidBits
        return cls(int(np.count_nonzero(given)), given.size)


@dataclass(frozen=True)
class Question(Document):
    """The state of a search before a round: "is your score at most `threshold`?"."""

    kind: ClassVar[str] = "question"

    round: int
    """Rounds answered so far."""
    threshold: float
    low: float
    high: float
    found: float
    """The threshold that the search would return without further answers: S_max to begin with."""
    coverage: float = 1.0
    """The estimated coverage at `found`."""
    margin: float | None = None
    """The Δ by which the estimate at `found` exceeds 1-α, if that was proved by answers."""
    answered: int = 0
    """Answers counted so far."""
