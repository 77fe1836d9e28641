"""The grid that coverage sketches count on."""

import hashlib
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tacit.conformal import ScoreGrid
from tacit.errors import InvalidParameter
from tacit.scores import HPS, RAPS, SAPS, Margin, ScoreRange, TopK

UNIT = ScoreRange(0.0, 1.0)
powers = st.integers(0, 6).map(lambda exponent: 2**exponent)
grids = st.builds(ScoreGrid, powers, powers) | st.just(ScoreGrid())
of_scores = st.builds(
    lambda score, k: score.range(k),
    st.sampled_from([HPS(), RAPS(0.01, 1), RAPS(0.3, 2), SAPS(0.17), Margin(), TopK()]),
    st.integers(2, 1000),
)
uneven = st.builds(
    lambda below, above, unit: ScoreRange(below / unit, above / unit),
    st.integers(-(10**6), 0),
    st.integers(1, 10**6),
    st.integers(1, 10**6),
)
"""Ranges whose width is rounded, so that S_min + width need not be S_max."""


def nasty(grid: ScoreGrid, limits: ScoreRange) -> NDArray[np.float64]:
    """Every grid point and its neighbours, the ends, the smallest floats, and numbers between."""
    points = grid.points(limits)
    tiny = np.array([0.0, -0.0, 5e-324, 2.0**-1022, 2.0**-51, 2.0**-50, 1e-15, 1 - 2.0**-53])
    scores = np.concatenate(
        [
            points,
            np.nextafter(points, -np.inf),
            np.nextafter(points, np.inf),
            limits.low + tiny * (limits.high - limits.low),
            limits.high - tiny * (limits.high - limits.low),
            np.random.default_rng(0).uniform(limits.low, limits.high, 500),
            limits,
        ]
    )
    clipped = np.clip(scores, limits.low, limits.high)
    return np.append(clipped, -0.0) if limits.low == 0 else clipped


@given(grids, of_scores | uneven)
def test_points_ascend_to_the_largest_score_there_is(grid: ScoreGrid, limits: ScoreRange) -> None:
    points = grid.points(limits)
    assert (np.diff(points) >= 0).all()
    assert limits.low <= points[0]
    assert points[-1] == limits.high


@given(grids, of_scores | uneven)
def test_counts_are_those_of_a_search_among_the_points(grid: ScoreGrid, limits: ScoreRange) -> None:
    """Cell j holds the scores above point j-1 and at most point j, to the last bit."""
    points = grid.points(limits)
    scores = nasty(grid, limits)
    expected = np.bincount(np.searchsorted(points, scores), minlength=len(points))
    assert grid.count(scores, limits).tolist() == expected.tolist()


def test_counting_many_scores_takes_them_all() -> None:
    scores = np.random.default_rng(1).random(200_001)
    points = ScoreGrid().points(UNIT)
    expected = np.bincount(np.searchsorted(points, scores), minlength=len(points))
    assert (ScoreGrid().count(scores, UNIT) == expected).all()
    assert ScoreGrid().count(np.empty(0), UNIT).sum() == 0


@given(of_scores)
def test_the_default_grid_comes_within_1e_15_of_both_ends(limits: ScoreRange) -> None:
    """In units of the range, and up to the spacing of floats there."""
    points = ScoreGrid().points(limits)
    near = 1e-15 * (limits.high - limits.low) + np.spacing(max(map(abs, limits)))
    assert points[0] - limits.low <= near
    assert limits.high - points[-2] <= near


def test_no_cell_of_the_default_grid_is_wider_than_a_32nd_of_its_distance_to_the_ends() -> None:
    points = ScoreGrid().points(UNIT)
    assert (np.diff(points) > 0).all()
    width = np.diff(points)[:-1]
    distance = np.minimum(points[1:-1], 1 - points[:-2])
    assert (width <= distance / 32 + 1e-15).all()
    assert np.diff(points).max() <= 1 / 2048


def test_the_default_grid_has_the_same_bits_everywhere() -> None:
    """Frozen: two parties whose grids differ in one bit could not merge their sketches."""
    points = ScoreGrid().points(UNIT)
    digest = hashlib.sha256(points.astype("<f8").tobytes()).hexdigest()
    assert (len(points), digest) == (
        4762,
        "88e53cef6c2bdabea3a43e0990435ef1b1eeea2b5295d85236d9314aa926700e",
    )


def test_its_points_are_correctly_rounded_dyadic_numbers() -> None:
    """Computed again with integers, halving the distance to each end 50 times in 32 steps."""
    octaves = range(2, 51)
    distances = [Fraction(32 + step, 32 * 2**octave) for octave in octaves for step in range(32)]
    even = [Fraction(step, 2048) for step in range(1, 2049)]
    exact = {float(number) for number in (*distances, *(1 - d for d in distances), *even)}
    assert ScoreGrid().points(UNIT).tolist() == sorted(exact)


def test_points_cannot_be_written_to() -> None:
    """They are shared by every sketch of the same score."""
    points = ScoreGrid().points(UNIT)
    with pytest.raises(ValueError, match="read-only"):
        points[0] = 0.5


@pytest.mark.parametrize("steps", [0, -1, 3, 1000, 2**17, True, 2.0, "8"])
def test_steps_that_are_no_power_of_two_are_refused(steps: int) -> None:
    with pytest.raises(InvalidParameter):
        ScoreGrid(steps_per_octave=steps)
    with pytest.raises(InvalidParameter):
        ScoreGrid(even_steps=steps)
