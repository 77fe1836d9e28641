"""The coverage sketch against exact NACP and brute force on scores rounded up to its grid."""

from fractions import Fraction
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tacit.conformal import Calibration, CoverageSketch, NotCertifiable, ScoreGrid, ldp_cp_l, nacp
from tacit.errors import (
    IncompatibleSketches,
    InvalidClassCount,
    InvalidLabels,
    InvalidParameter,
    InvalidProbabilities,
)
from tacit.mechanisms import UniformChannel
from tacit.scores import APS, HPS, RAPS
from tests.support import brute
from tests.support.rounded import RoundedUp
from tests.support.tables import PLAIN_SCORES, Sample, alphas, channels, samples

COARSE = ScoreGrid(1, 4)
grids = st.sampled_from([COARSE, ScoreGrid(2, 16), ScoreGrid(1, 1)])
DEFAULT = ScoreGrid()


def sketch_of(sample: Sample, grid: ScoreGrid) -> CoverageSketch:
    empty = CoverageSketch.empty(sample.score, sample.k, grid)
    return empty.add(sample.probabilities, sample.labels, sample.uniforms)


def rounded_up(score: float, points: list[float]) -> float:
    return min(point for point in points if point >= score)


@given(samples(), grids, alphas, st.data())
def test_the_threshold_is_that_of_brute_force_on_rounded_scores(
    sample: Sample, grid: ScoreGrid, alpha: float, data: st.DataObject
) -> None:
    channel = data.draw(channels(sample.k))
    result = sketch_of(sample, grid).calibrate(channel, alpha)
    points = grid.points(sample.score.range(sample.k)).tolist()
    noisy = [rounded_up(score, points) for score in sample.noisy]
    every = [[rounded_up(score, points) for score in row] for row in sample.every]
    target = 1 - Fraction(str(alpha))
    expected = brute.largest_crossing(noisy, every, channel.beta, target)
    assert isinstance(result, Calibration)
    assert result.threshold == expected
    exact = brute.clean_coverage(noisy, every, channel.beta, expected)
    assert abs(Fraction(result.coverage) - exact) <= Fraction(1, 10**9) / (1 - channel.beta)


@given(samples(PLAIN_SCORES), st.sampled_from([COARSE, ScoreGrid(2, 16)]), alphas, st.data())
def test_the_threshold_equals_exact_nacp_on_the_rounded_score_bit_for_bit(
    sample: Sample, grid: ScoreGrid, alpha: float, data: st.DataObject
) -> None:
    channel = data.draw(channels(sample.k))
    result = sketch_of(sample, grid).calibrate(channel, alpha)
    exact = nacp(
        sample.probabilities,
        sample.labels,
        beta=channel.beta,
        score=RoundedUp(sample.score, grid),
        alpha=alpha,
    )
    assert isinstance(result, Calibration)
    assert (result.threshold, result.coverage) == (exact.threshold, exact.coverage)


def test_on_the_default_grid_it_equals_exact_nacp_on_the_rounded_score() -> None:
    generator = np.random.default_rng(11)
    for score in (HPS(), APS(), RAPS(0.05, 2)):
        rows = generator.dirichlet(np.full(5, 0.2), 300)
        labels = generator.integers(0, 5, 300)
        channel = UniformChannel.for_epsilon(5, 3.0)
        sketch = CoverageSketch.empty(score, 5).add(rows, labels)
        result = sketch.calibrate(channel, 0.1)
        points = DEFAULT.points(score.range(5))
        every = points[np.searchsorted(points, score.of_all(rows))]
        noisy = points[np.searchsorted(points, score.of_labels(rows, labels))]
        beta, target = channel.beta, Fraction(9, 10)
        assert isinstance(result, Calibration)
        assert result.threshold == brute.largest_crossing(
            noisy.tolist(), every.tolist(), beta, target
        )


@given(samples(), grids)
def test_counts_at_grid_points_are_exact(sample: Sample, grid: ScoreGrid) -> None:
    curve = sketch_of(sample, grid).curve()
    every = [score for row in sample.every for score in row]
    for index, point in enumerate(curve.thresholds.tolist()):
        assert curve.noisy_within[index] == sum(score <= point for score in sample.noisy)
        assert curve.all_within[index] == sum(score <= point for score in every)
    assert (curve.n, curve.k) == (sample.n, sample.k)


@given(samples(), grids, alphas, st.data())
def test_the_resolution_is_the_coverage_of_the_cell_below_the_threshold(
    sample: Sample, grid: ScoreGrid, alpha: float, data: st.DataObject
) -> None:
    channel = data.draw(channels(sample.k).filter(lambda channel: channel.epsilon > 0.1))
    result = sketch_of(sample, grid).calibrate(channel, alpha)
    assert isinstance(result, Calibration)
    points = grid.points(sample.score.range(sample.k)).tolist()
    place = points.index(result.threshold)
    at = brute.clean_coverage(sample.noisy, sample.every, channel.beta, points[place])
    before = (
        brute.clean_coverage(sample.noisy, sample.every, channel.beta, points[place - 1])
        if place
        else Fraction(0)
    )
    assert result.resolution == pytest.approx(float(at - before), abs=1e-12)
    assert before < 1 - Fraction(str(alpha)) <= at


@given(samples(min_size=2), grids, st.data())
def test_records_counted_in_any_pieces_and_order_make_the_same_sketch(
    sample: Sample, grid: ScoreGrid, data: st.DataObject
) -> None:
    whole = sketch_of(sample, grid)
    order = np.array(data.draw(st.permutations(range(sample.n))))
    cuts = sorted(data.draw(st.sets(st.integers(0, sample.n), max_size=4)))
    empty = CoverageSketch.empty(sample.score, sample.k, grid)
    streamed, pieces = empty, []
    for rows in np.split(order, cuts):
        uniforms = None if sample.uniforms is None else sample.uniforms[rows]
        piece = (sample.probabilities[rows], sample.labels[rows], uniforms)
        streamed = streamed.add(*piece)
        pieces.append(empty.add(*piece))
    shuffled = data.draw(st.permutations(pieces))
    assert streamed == whole
    assert reduce(add, shuffled) == whole
    assert reduce(add, shuffled, empty) == whole


@given(samples(), samples(), samples())
def test_adding_sketches_commutes_and_associates(a: Sample, b: Sample, c: Sample) -> None:
    one, two, three = (
        CoverageSketch.empty(HPS(), 5, COARSE).add(padded(s), s.labels) for s in (a, b, c)
    )
    empty = CoverageSketch.empty(HPS(), 5, COARSE)
    assert one + two == two + one
    assert (one + two) + three == one + (two + three)
    assert one + empty == empty + one == one
    assert (one + two + three).n == a.n + b.n + c.n


def padded(sample: Sample) -> NDArray[np.float64]:
    return np.pad(sample.probabilities, ((0, 0), (0, 5 - sample.k)))


def test_adding_records_leaves_the_sketch_as_it_was() -> None:
    empty = CoverageSketch.empty(HPS(), 2, COARSE)
    grown = empty.add([[0.5, 0.5]], [0])
    assert (empty.n, grown.n) == (0, 1)
    assert (grown + grown).n == 2
    assert grown.n == 1


def test_its_counts_cannot_be_written_to() -> None:
    grown = CoverageSketch.empty(HPS(), 2, COARSE).add([[0.5, 0.5]], [0])
    for sketch in (CoverageSketch.empty(HPS(), 2, COARSE), grown, grown + grown):
        with pytest.raises(ValueError, match="read-only"):
            sketch.noisy[0] = 7
        with pytest.raises(ValueError, match="read-only"):
            sketch.every[0] = 7


@pytest.mark.parametrize(
    "other",
    [
        CoverageSketch.empty(APS(), 3, COARSE),
        CoverageSketch.empty(HPS(), 4, COARSE),
        CoverageSketch.empty(HPS(), 3, ScoreGrid(2, 4)),
        CoverageSketch.empty(RAPS(0.1, 1), 3, COARSE),
    ],
)
def test_sketches_of_other_scores_classes_or_grids_are_not_added(other: CoverageSketch) -> None:
    sketch = CoverageSketch.empty(HPS(), 3, COARSE)
    with pytest.raises(IncompatibleSketches):
        sketch + other
    assert sketch != other


def test_sketches_of_one_score_with_other_parameters_are_not_added() -> None:
    with pytest.raises(IncompatibleSketches):
        CoverageSketch.empty(RAPS(0.1, 1), 3) + CoverageSketch.empty(RAPS(0.1, 2), 3)


def test_only_a_sketch_can_be_added_to_a_sketch() -> None:
    with pytest.raises(TypeError):
        CoverageSketch.empty(HPS(), 3) + 1  # type: ignore[operator]


def test_its_size_does_not_depend_on_the_number_of_records() -> None:
    generator = np.random.default_rng(1)
    sizes = set()
    for n in (1, 1000, 400_000):  # the last in more than one chunk
        rows = generator.dirichlet(np.ones(3), n)
        sketch = CoverageSketch.empty(HPS(), 3).add(rows, generator.integers(0, 3, n))
        assert sketch.n == n
        assert sketch.every.sum() == 3 * n
        sizes.add((len(sketch.to_json()), sketch.noisy.nbytes, sketch.every.nbytes))
    assert len(sizes) == 1


def test_l_star_from_a_sketch_is_l_star() -> None:
    generator = np.random.default_rng(2)
    rows = generator.dirichlet(np.full(4, 0.3), 4000)
    labels = generator.integers(0, 4, 4000)
    channel = UniformChannel.for_epsilon(4, 4.0)
    common = {"alpha": 0.1, "delta": 0.05}
    result = CoverageSketch.empty(HPS(), 4).add(rows, labels).calibrate(channel, **common)
    exact = ldp_cp_l(rows, labels, channel=channel, score=HPS(), **common)
    assert isinstance(result, Calibration)
    assert isinstance(exact, Calibration)
    assert (result.method, result.correction, result.guarantee, result.n) == (
        exact.method,
        exact.correction,
        exact.guarantee,
        exact.n,
    )
    assert result.threshold == pytest.approx(exact.threshold, abs=1 / 1024)
    assert result.coverage >= 0.9 + (result.correction or 0)


def test_l_star_from_a_sketch_of_few_records_is_not_certifiable() -> None:
    channel = UniformChannel.for_epsilon(2, 1.0)
    sketch = CoverageSketch.empty(HPS(), 2).add([[0.5, 0.5]] * 5, [0, 1, 0, 1, 1])
    result = sketch.calibrate(channel, 0.1, 0.05)
    assert isinstance(result, NotCertifiable)
    assert result.n == 5


def test_an_empty_sketch_has_no_threshold() -> None:
    with pytest.raises(InvalidParameter, match="no records"):
        CoverageSketch.empty(HPS(), 3).calibrate(UniformChannel.for_epsilon(3, 1.0), 0.1)


def test_adding_no_records_changes_nothing() -> None:
    sketch = CoverageSketch.empty(HPS(), 3, COARSE)
    assert sketch.add(np.empty((0, 3)), np.empty(0, dtype=int)) == sketch


def test_labels_that_do_not_match_the_records_are_refused() -> None:
    sketch = CoverageSketch.empty(HPS(), 3, COARSE)
    rows = np.full((4, 3), 1 / 3)
    wrong: list[Any] = [[], [0, 1], [0, 1, 2, 3], [0, 1, 2, -1], 0, [[0, 1, 2, 0]], [0.0] * 4]
    for labels in wrong:
        with pytest.raises(InvalidLabels):
            sketch.add(rows, labels)
    with pytest.raises(InvalidLabels):
        sketch.add(np.empty((0, 3)), [0, 1])


def test_records_with_another_number_of_classes_are_refused() -> None:
    sketch = CoverageSketch.empty(HPS(), 3, COARSE)
    with pytest.raises(InvalidProbabilities, match="3 classes"):
        sketch.add(np.full((2, 2), 0.5), [0, 1])
    with pytest.raises(InvalidProbabilities, match="3 classes"):
        sketch.add(np.empty((0, 2)), [])
    with pytest.raises(InvalidProbabilities):
        sketch.add([[0.5, 0.5], [1.0]], [0, 1])


@pytest.mark.parametrize("k", [1, 0, -3, True, 2.0, "3"])
def test_a_sketch_needs_at_least_two_classes(k: int) -> None:
    with pytest.raises(InvalidClassCount):
        CoverageSketch.empty(HPS(), k)


@given(samples())
def test_every_score_is_counted_in_some_cell(sample: Sample) -> None:
    sketch = sketch_of(sample, COARSE)
    assert sketch.noisy.sum() == sample.n
    assert sketch.every.sum() == sample.n * sample.k
