"""The grid that coverage sketches count on."""

import hashlib
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.conformal import ScoreGrid
from tacit.errors import InvalidParameter
from tacit.scores import HPS, RAPS, SAPS, Margin, Score, ScoreRange, TopK

powers = st.integers(0, 8).map(lambda exponent: 2**exponent)
scores = st.sampled_from([HPS(), RAPS(0.01, 1), RAPS(0.3, 2), SAPS(0.17), Margin(), TopK()])
grids = st.builds(ScoreGrid, powers, powers)


@given(grids, scores, st.integers(2, 1000))
def test_points_ascend_strictly_from_the_one_end_to_the_other(
    grid: ScoreGrid, score: Score, k: int
) -> None:
    limits = score.range(k)
    points = grid.points(limits)
    assert (np.diff(points) > 0).all()
    assert (points[0], points[-1]) == limits


@given(
    grids,
    st.floats(-1e6, 1e6),
    st.floats(1e-3, 1e6),
)
def test_points_ascend_for_any_range(grid: ScoreGrid, low: float, width: float) -> None:
    limits = ScoreRange(low, low + width)
    points = grid.points(limits)
    assert (np.diff(points) > 0).all()
    assert (points[0], points[-1]) == limits


@given(scores, st.integers(2, 200))
def test_the_default_grid_comes_within_1e_15_of_both_ends(score: Score, k: int) -> None:
    """In units of the range, and up to the spacing of floats there."""
    limits = score.range(k)
    points = ScoreGrid().points(limits)
    width = limits.high - limits.low
    largest_end = max(abs(limits.low), abs(limits.high))
    assert points[1] - points[0] <= 1e-15 * width + np.spacing(largest_end)
    assert points[-1] - points[-2] <= 1e-15 * width + np.spacing(largest_end)


def test_no_cell_of_the_default_grid_is_wider_than_a_32nd_of_its_distance_to_the_ends() -> None:
    points = ScoreGrid().points(ScoreRange(0.0, 1.0))
    width = np.diff(points)[1:-1]
    distance = np.minimum(points[2:-1], 1 - points[1:-2])
    assert (width <= distance / 32 + 1e-15).all()
    assert np.diff(points).max() <= 1 / 2048


def test_the_default_grid_has_the_same_bits_everywhere() -> None:
    """Frozen: two parties whose grids differ in one bit could not merge their sketches."""
    points = ScoreGrid().points(ScoreRange(0.0, 1.0))
    digest = hashlib.sha256(points.astype("<f8").tobytes()).hexdigest()
    assert (len(points), digest) == (
        4763,
        "8cc81f92f2a244f16c4c0d8f5c1528c646e861d3e5a61a4619d2e23c0ae053cc",
    )


def test_its_points_are_correctly_rounded_dyadic_numbers() -> None:
    """Computed again with integers, halving the distance to each end 50 times in 32 steps."""
    distances = [
        Fraction(32 + step, 32 * 2**octave) for octave in range(2, 51) for step in range(32)
    ]
    even = [Fraction(step, 2048) for step in range(2049)]
    exact = {float(number) for number in (*distances, *(1 - d for d in distances), *even)}
    assert ScoreGrid().points(ScoreRange(0.0, 1.0)).tolist() == sorted(exact)


def test_points_cannot_be_written_to() -> None:
    """They are shared by every sketch of the same score."""
    points = ScoreGrid().points(ScoreRange(0.0, 1.0))
    with pytest.raises(ValueError, match="read-only"):
        points[0] = 0.5


@pytest.mark.parametrize("steps", [0, -1, 3, 1000, 2**21, True, 2.0, "8"])
def test_steps_that_are_no_power_of_two_are_refused(steps: int) -> None:
    with pytest.raises(InvalidParameter):
        ScoreGrid(steps_per_octave=steps)
    with pytest.raises(InvalidParameter):
        ScoreGrid(even_steps=steps)
