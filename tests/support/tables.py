"""Hypothesis strategies for small calibration sets in which many scores are equal."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from tacit.mechanisms import UniformChannel
from tacit.scores import APS, HPS, RAPS, SAPS, Margin, RandomizedAPS, Score, TopK

PLAIN_SCORES: tuple[Score, ...] = (HPS(), APS(), RAPS(0.1, 1), TopK(), Margin())
ALL_SCORES: tuple[Score, ...] = (*PLAIN_SCORES, RandomizedAPS(), SAPS(0.2))

alphas = st.sampled_from([0.05, 0.1, 0.2, 0.25, 0.3, 0.5, 0.7, 0.9])


@dataclass(frozen=True)
class Sample:
    """A calibration set, its score, and the scores of labels and of all classes as plain floats."""

    score: Score
    probabilities: NDArray[np.float64]
    labels: NDArray[np.int64]
    uniforms: NDArray[np.float64] | None

    @property
    def n(self) -> int:
        return len(self.labels)

    @property
    def k(self) -> int:
        return int(self.probabilities.shape[1])

    @property
    def every(self) -> list[list[float]]:
        return [list(row) for row in self.score.of_all(self.probabilities, self.uniforms).tolist()]

    @property
    def noisy(self) -> list[float]:
        return [row[label] for row, label in zip(self.every, self.labels, strict=True)]

    @property
    def records(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        return self.probabilities, self.labels

    def aim(self, alpha: float) -> dict[str, Any]:
        """What every method takes besides the records."""
        return {"score": self.score, "alpha": alpha, "uniforms": self.uniforms}


@st.composite
def samples(
    draw: st.DrawFn, scores: tuple[Score, ...] = ALL_SCORES, min_size: int = 1, max_size: int = 12
) -> Sample:
    """Rows of small integers over their sum: ties within a record and between records."""
    n = draw(st.integers(min_size, max_size))
    k = draw(st.integers(2, 5))
    row = st.lists(st.integers(0, 4), min_size=k, max_size=k).filter(any)
    weights = np.array(draw(st.lists(row, min_size=n, max_size=n)), dtype=np.float64)
    labels = draw(st.lists(st.integers(0, k - 1), min_size=n, max_size=n))
    score = draw(st.sampled_from(scores))
    uniforms = None
    if score.randomized:
        uniform = st.sampled_from([0.0, 0.25, 0.5, 1.0])
        uniforms = np.array(draw(st.lists(uniform, min_size=n, max_size=n)))
    probabilities = weights / weights.sum(axis=1, keepdims=True)
    return Sample(score, probabilities, np.array(labels), uniforms)


@st.composite
def channels(draw: st.DrawFn, k: int) -> UniformChannel:
    """Realized channels, from nearly no noise to nearly no information."""
    epsilon = draw(st.sampled_from([0.01, 0.5, 1.0, 2.0, 4.0, 30.0]))
    return UniformChannel.for_epsilon(k, epsilon)


@st.composite
def noise_levels(draw: st.DrawFn, k: int) -> Fraction:
    """β: none, simple fractions, fractions next to 1, and those of realized channels."""
    simple = st.builds(
        lambda above, below: Fraction(above, above + below), st.integers(0, 9), st.integers(1, 9)
    )
    extreme = st.builds(lambda bits: 1 - Fraction(1, 2**bits), st.integers(10, 60))
    realized = channels(k).map(lambda channel: channel.beta)
    return draw(st.one_of(st.just(Fraction(0)), simple, extreme, realized))
