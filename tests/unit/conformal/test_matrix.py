"""NACP for a noise matrix against exact matrix products, and against NACP for uniform noise."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.conformal import nacp, nacp_matrix, noise
from tacit.errors import InvalidNoise
from tacit.scores import HPS
from tests.support import brute
from tests.support.tables import Sample, alphas, channels, samples

simple_levels = st.builds(
    lambda above, below: Fraction(above, above + below), st.integers(0, 9), st.integers(1, 9)
)


def as_floats(matrix: brute.Matrix) -> list[list[float]]:
    return [[float(value) for value in row] for row in matrix]


@st.composite
def invertible_matrices(draw: st.DrawFn, k: int) -> brute.Matrix:
    """Row-stochastic, with more than half of every row on the diagonal."""
    weights = st.lists(st.integers(0, 5), min_size=k, max_size=k).filter(any)
    rows = draw(st.lists(weights, min_size=k, max_size=k))
    kept = Fraction(draw(st.sampled_from(["6/10", "3/4", "9/10", "1"])))
    return [
        [kept * (i == j) + (1 - kept) * Fraction(value, sum(row)) for j, value in enumerate(row)]
        for i, row in enumerate(rows)
    ]


@given(samples(), alphas, st.data())
def test_the_threshold_is_the_largest_crossing_of_the_trace_of_a_matrix_product(
    sample: Sample, alpha: float, data: st.DataObject
) -> None:
    matrix = data.draw(invertible_matrices(sample.k))
    result = nacp_matrix(*sample.records, matrix=as_floats(matrix), **sample.aim(alpha))
    labels = sample.labels.tolist()
    inverse = brute.inverted(matrix)
    target = 1 - Fraction(str(alpha))
    expected = brute.largest_matrix_crossing(labels, sample.every, inverse, target)
    exact = brute.matrix_coverage(labels, sample.every, inverse, expected)
    assert result.threshold == expected
    assert abs(result.coverage - exact) < 1e-9


@given(samples(), alphas, simple_levels)
def test_uniform_noise_as_a_matrix_gives_the_threshold_of_uniform_nacp(
    sample: Sample, alpha: float, beta: Fraction
) -> None:
    by_level = nacp(*sample.records, beta=beta, **sample.aim(alpha))
    matrix = noise.uniform(sample.k, beta)
    by_matrix = nacp_matrix(*sample.records, matrix=matrix, **sample.aim(alpha))
    assert by_matrix.threshold == by_level.threshold
    assert by_matrix.coverage == pytest.approx(by_level.coverage, abs=1e-9)


@given(samples(), alphas, st.data())
def test_the_matrix_of_a_realized_channel_gives_the_threshold_of_its_level(
    sample: Sample, alpha: float, data: st.DataObject
) -> None:
    # Not at ε = 30: there the curve's steps, of β = 2e-13, are within what counts as rounding.
    channel = data.draw(channels(sample.k).filter(lambda channel: 0.1 < channel.epsilon < 10))
    by_level = nacp(*sample.records, beta=channel.beta, **sample.aim(alpha))
    matrix = channel.matrix()
    by_matrix = nacp_matrix(*sample.records, matrix=matrix, **sample.aim(alpha))
    assert by_matrix.threshold == by_level.threshold


def test_an_elementwise_product_would_give_another_coverage() -> None:
    """The slip of the research code; without it the coverage at S_max is 1, as it must be."""
    rows = np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.1, 0.8], [0.4, 0.4, 0.2]])
    labels = [0, 2, 1, 1]
    exact = [[Fraction(w, 10) for w in row] for row in ([8, 1, 1], [2, 7, 1], [0, 3, 7])]
    inverse = brute.inverted(exact)
    every = HPS().of_all(rows).tolist()
    assert brute.matrix_coverage(labels, every, inverse, 1.0) == 1
    assert brute.elementwise_coverage(labels, every, inverse, 1.0) > Fraction(6, 5)
    result = nacp_matrix(rows, labels, matrix=as_floats(exact), score=HPS(), alpha=0.3)
    assert result.threshold == 0.7
    assert brute.matrix_coverage(labels, every, inverse, 0.6) < Fraction(7, 10)
    assert brute.elementwise_coverage(labels, every, inverse, 0.6) > Fraction(7, 10)


def test_rows_of_the_matrix_are_true_labels_and_columns_noisy_ones() -> None:
    """All of class 0 is noised into 1 half of the time: transposing P would move the coverage."""
    rows = np.array([[0.9, 0.1], [0.3, 0.7], [0.55, 0.45], [0.2, 0.8]])
    labels = [0, 1, 1, 1]
    matrix = [[Fraction(1, 2), Fraction(1, 2)], [Fraction(0), Fraction(1)]]
    every = HPS().of_all(rows).tolist()
    result = nacp_matrix(rows, labels, matrix=as_floats(matrix), score=HPS(), alpha=0.4)
    inverse = brute.inverted(matrix)
    target = Fraction(6, 10)
    assert result.threshold == brute.largest_matrix_crossing(labels, every, inverse, target)
    swapped = [list(column) for column in zip(*inverse, strict=True)]
    assert result.threshold != brute.largest_matrix_crossing(labels, every, swapped, target)


def test_a_matrix_for_another_number_of_classes_is_refused() -> None:
    with pytest.raises(InvalidNoise, match="2 classes"):
        nacp_matrix(np.full((4, 3), 1 / 3), [0, 1, 2, 0], matrix=np.eye(2), score=HPS(), alpha=0.1)


def test_a_matrix_that_cannot_be_undone_is_refused() -> None:
    with pytest.raises(InvalidNoise):
        nacp_matrix([[0.5, 0.5]], [0], matrix=np.full((2, 2), 0.5), score=HPS(), alpha=0.1)
