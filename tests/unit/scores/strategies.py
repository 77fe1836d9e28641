"""Tables of probabilities in which ties, zeros and one-hot rows are common, and scores for them."""

from dataclasses import dataclass

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st
from numpy.typing import NDArray

from tacit.scores import APS, HPS, RAPS, SAPS, Margin, RandomizedAPS, Score, TopK

PARTS = 64
"""Dyadic probabilities are multiples of 1/64, so that every sum of them is exact in any order."""


@dataclass(frozen=True)
class Records:
    probabilities: NDArray[np.float64]
    uniforms: NDArray[np.float64]

    @property
    def n(self) -> int:
        return len(self.probabilities)

    @property
    def k(self) -> int:
        return len(self.probabilities[0])

    def uniforms_for(self, score: Score) -> NDArray[np.float64] | None:
        return self.uniforms if score.randomized else None


def scores() -> st.SearchStrategy[Score]:
    """Every score; parameters are multiples of 1/8, exact in products with dyadic numbers."""
    eighths = st.integers(0, 16).map(lambda parts: parts / 8)
    return st.one_of(
        st.sampled_from([HPS(), APS(), RandomizedAPS(), TopK(), Margin()]),
        st.builds(RAPS, a=eighths, b=st.integers(0, 8)),
        st.builds(SAPS, weight=eighths.filter(bool)),
    )


@st.composite
def dyadic_records(draw: st.DrawFn) -> Records:
    """Rows cut at random places into k pieces of 64 parts, and uniforms that are sixteenths."""
    n, k = draw(st.integers(1, 5)), draw(st.integers(2, 7))
    cuts = st.lists(st.integers(0, PARTS), min_size=k - 1, max_size=k - 1).map(sorted)
    rows = [np.diff([0, *draw(cuts), PARTS]) / PARTS for _ in range(n)]
    sixteenths = draw(st.lists(st.integers(0, 16), min_size=n, max_size=n))
    return Records(np.array(rows), np.array(sixteenths) / 16)


@st.composite
def float_records(draw: st.DrawFn) -> Records:
    """Rows of arbitrary and of often repeated weights, divided by their sum."""
    n, k = draw(st.integers(1, 5)), draw(st.integers(2, 7))
    repeated = st.sampled_from([0.0, -0.0, 1e-300, 1e-17, 0.1, 0.2, 1 / 3, 1.0])
    weight = st.one_of(repeated, st.floats(0, 1))
    row = st.lists(weight, min_size=k, max_size=k)
    weights = np.array(draw(st.lists(row, min_size=n, max_size=n)))
    sums = weights.sum(axis=1, keepdims=True)
    assume(bool((sums > 1e-9).all()))
    unit = st.floats(0, 1)
    return Records(weights / sums, np.array(draw(st.lists(unit, min_size=n, max_size=n))))
