"""Sketches saved as JSON, and what is not one."""

import base64
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.conformal import CoverageSketch, ScoreGrid
from tacit.errors import (
    InvalidDocument,
    InvalidParameter,
)
from tacit.scores import HPS
from tests.support.tables import Sample, samples

COARSE = ScoreGrid(1, 4)


grids = st.sampled_from([COARSE, ScoreGrid(2, 16), ScoreGrid(1, 1)])


def sketch_of(sample: Sample, grid: ScoreGrid) -> CoverageSketch:
    empty = CoverageSketch.empty(sample.score, sample.k, grid)
    return empty.add(sample.probabilities, sample.labels, sample.uniforms)


@given(samples(), grids)
def test_it_survives_json_and_goes_on_counting(sample: Sample, grid: ScoreGrid) -> None:
    sketch = sketch_of(sample, grid)
    again = CoverageSketch.from_json(json.dumps(json.loads(sketch.to_json()), indent=1))
    assert again == sketch
    assert again.to_json() == sketch.to_json()
    assert again + sketch == sketch + sketch
    assert again.add(sample.probabilities, sample.labels, sample.uniforms).n == 2 * sample.n


def saved() -> dict[str, Any]:
    sketch = CoverageSketch.empty(HPS(), 3, COARSE).add([[0.5, 0.25, 0.25]] * 3, [0, 1, 2])
    document: dict[str, Any] = json.loads(sketch.to_json())
    return document


def base64_of(counts: list[int]) -> str:
    return base64.b64encode(np.array(counts, dtype="<i8").tobytes()).decode()


CELLS = len(COARSE.points(HPS().range(3)))


HUGE = [2**62, 2**62, *[0] * (CELLS - 2)]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("tacit", "calibration"),
        ("tacit", None),
        ("score", {"name": "hps", "a": 1}),
        ("score", {"name": "none of these"}),
        ("score", {"name": "raps", "a": float("nan"), "b": 1}),
        ("score", "hps"),
        ("k", 1),
        ("k", 3.0),
        ("k", "3"),
        ("k", 4),
        ("k", True),
        ("k", 10**30),
        ("steps_per_octave", 3),
        ("steps_per_octave", 2),
        ("even_steps", 0),
        ("even_steps", None),
        ("noisy", ""),
        ("noisy", "AAAA"),
        ("noisy", "not base64!"),
        ("noisy", "ü"),
        ("noisy", [1, 2]),
        ("noisy", base64_of([0] * CELLS)),
        ("noisy", base64_of([0] * (CELLS + 1))),
        ("noisy", base64_of([-1, 4, *[0] * (CELLS - 2)])),
        ("every", base64_of([1] * CELLS)),
        ("every", None),
    ],
)
def test_a_damaged_document_is_refused(field: str, value: object) -> None:
    with pytest.raises(InvalidDocument):
        CoverageSketch.from_json(json.dumps({**saved(), field: value}))


def test_counts_that_overflow_are_refused() -> None:
    """Their sum wraps around to a number that would balance: 3·2^63 ≡ 2^63 (mod 2^64)."""
    damaged = {**saved(), "noisy": base64_of(HUGE), "every": base64_of(HUGE)}
    with pytest.raises(InvalidDocument):
        CoverageSketch.from_json(json.dumps(damaged))


def test_missing_and_unknown_fields_are_refused() -> None:
    for field in saved():
        damaged = saved()
        del damaged[field]
        with pytest.raises(InvalidDocument):
            CoverageSketch.from_json(json.dumps(damaged))
    with pytest.raises(InvalidDocument, match="extra"):
        CoverageSketch.from_json(json.dumps({**saved(), "extra": 1}))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=4,
)


@given(st.sampled_from(sorted(saved())), json_values)
def test_a_document_with_any_other_value_is_refused_or_means_what_it_says(
    field: str, value: object
) -> None:
    document = {**saved(), field: value}
    try:
        sketch = CoverageSketch.from_json(json.dumps(document))
    except InvalidDocument:
        return
    assert json.loads(sketch.to_json()) == document


def with_counts(noisy: int, every: int) -> str:
    """A saved sketch of two classes whose records all score in the last cell."""
    empty = CoverageSketch.empty(HPS(), 2, COARSE)
    document = json.loads(empty.to_json())
    for name, count in (("noisy", noisy), ("every", every)):
        cells = np.zeros(len(empty.noisy), dtype="<i8")
        cells[-1] = count
        document[name] = base64.b64encode(cells.tobytes()).decode()
    return json.dumps(document)


def test_a_sketch_holds_no_more_scores_than_floats_can_tell_apart() -> None:
    largest = CoverageSketch.from_json(with_counts(2**52, 2**53))
    assert CoverageSketch.from_json(largest.to_json()) == largest
    with pytest.raises(InvalidDocument, match="2\\^53"):
        CoverageSketch.from_json(with_counts(2**52 + 1, 2**53 + 2))
    with pytest.raises(InvalidParameter, match="2\\^53"):
        largest + largest


def test_a_sketch_with_a_label_score_that_no_class_has_is_refused() -> None:
    document = json.loads(with_counts(4, 8))
    first = np.zeros(len(CoverageSketch.empty(HPS(), 2, COARSE).noisy), dtype="<i8")
    first[0] = 4
    document["noisy"] = base64.b64encode(first.tobytes()).decode()
    with pytest.raises(InvalidDocument):
        CoverageSketch.from_json(json.dumps(document))
