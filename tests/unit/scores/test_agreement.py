"""One arithmetic: a class has one score, whichever way and in whatever company it is asked for."""

import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tacit.scores import (
    APS,
    HPS,
    RAPS,
    SAPS,
    Margin,
    NoiseRobust,
    RandomizedAPS,
    Score,
    TopK,
    softmax,
)
from tests.unit.scores.strategies import Records, dyadic_records, float_records, scores

EVERY_SCORE = [
    HPS(),
    APS(),
    RandomizedAPS(),
    RAPS(a=0.01, b=5),
    SAPS(weight=0.1),
    TopK(),
    Margin(),
    NoiseRobust(RandomizedAPS(), beta=0.2),
]
any_records = st.one_of(dyadic_records(), float_records())
each_score = pytest.mark.parametrize("score", EVERY_SCORE, ids=lambda score: score.name)


def same_bits(left: NDArray[np.float64], right: NDArray[np.float64]) -> bool:
    return left.shape == right.shape and left.tobytes() == right.tobytes()


def many_records(k: int, n: int) -> Records:
    """More than one block of records; coarse logits in the first half make ties frequent."""
    generator = np.random.default_rng(k)
    logits = generator.normal(scale=3, size=(n, k))
    logits[: n // 2] = np.round(logits[: n // 2])
    return Records(softmax(logits), generator.random(n))


@given(records=any_records, score=scores())
def test_one_label_all_classes_and_multiset_agree_bit_for_bit(
    records: Records, score: Score
) -> None:
    uniforms = records.uniforms_for(score)
    of_all = score.of_all(records.probabilities, uniforms)
    for y in range(records.k):
        labels = np.full(records.n, y)
        assert same_bits(score.of_labels(records.probabilities, labels, uniforms), of_all[:, y])
        own, _ = score.of_records(records.probabilities, labels, uniforms)
        assert same_bits(own, of_all[:, y])
    multiset = score.multiset(records.probabilities, uniforms)
    assert same_bits(np.sort(multiset, axis=1), np.sort(of_all, axis=1))


@each_score
@pytest.mark.parametrize("k", [2, 10, 1000])
def test_records_of_several_blocks_agree_bit_for_bit(score: Score, k: int) -> None:
    records = many_records(k, n=150_000 // k)
    uniforms = records.uniforms_for(score)
    labels = np.random.default_rng(0).integers(k, size=records.n)
    of_all = score.of_all(records.probabilities, uniforms)
    of_labels = score.of_labels(records.probabilities, labels, uniforms)
    assert same_bits(of_labels, of_all[np.arange(records.n), labels])
    multiset = score.multiset(records.probabilities, uniforms)
    assert same_bits(np.sort(multiset, axis=1), np.sort(of_all, axis=1))
    own, every = score.of_records(records.probabilities, labels, uniforms)
    assert same_bits(own, of_labels)
    assert same_bits(every, multiset)


@each_score
def test_a_record_has_the_same_scores_in_any_batch(score: Score) -> None:
    records = many_records(k=100, n=1500)
    uniforms = records.uniforms_for(score)
    whole = score.of_all(records.probabilities, uniforms)
    for part in (slice(0, 1), slice(1, 700), slice(700, 1499), slice(1499, 1500)):
        kept = None if uniforms is None else uniforms[part]
        assert same_bits(score.of_all(records.probabilities[part], kept), whole[part])
        parts = score.multiset(records.probabilities[part], kept)
        assert same_bits(np.sort(parts, axis=1), np.sort(whole[part], axis=1))


@each_score
def test_the_layout_in_memory_does_not_change_a_score(score: Score) -> None:
    records = many_records(k=100, n=1500)
    uniforms = records.uniforms_for(score)
    whole = score.of_all(records.probabilities, uniforms)
    columnwise = np.asfortranarray(records.probabilities)
    strided = np.repeat(records.probabilities, 2, axis=1)[:, ::2]
    assert same_bits(score.of_all(columnwise, uniforms), whole)
    assert same_bits(score.of_all(strided, uniforms), whole)


@each_score
def test_float32_probabilities_score_as_the_float64_numbers_they_are(score: Score) -> None:
    records = many_records(k=100, n=1500)
    uniforms = records.uniforms_for(score)
    narrow = records.probabilities.astype(np.float32)
    wide = narrow.astype(np.float64)
    labels = np.arange(records.n) % 100
    assert same_bits(score.of_all(narrow, uniforms), score.of_all(wide, uniforms))
    assert same_bits(score.multiset(narrow, uniforms), score.multiset(wide, uniforms))
    assert same_bits(
        score.of_labels(narrow, labels, uniforms), score.of_labels(wide, labels, uniforms)
    )


@given(records=any_records, score=scores(), data=st.data())
def test_renaming_the_classes_renames_their_scores(
    records: Records, score: Score, data: st.DataObject
) -> None:
    names = data.draw(st.permutations(range(records.k)))
    uniforms = records.uniforms_for(score)
    renamed = score.of_all(records.probabilities[:, names], uniforms)
    assert same_bits(renamed, score.of_all(records.probabilities, uniforms)[:, names])


@given(records=any_records, score=scores(), excess=st.floats(-9e-6, 9e-6))
def test_every_value_lies_in_the_range_also_when_rows_sum_to_one_only_roughly(
    records: Records, score: Score, excess: float
) -> None:
    low, high = score.range(records.k)
    rough = records.probabilities * (1 + excess)
    uniforms = records.uniforms_for(score)
    for values in (score.of_all(rough, uniforms), score.multiset(rough, uniforms)):
        assert (values >= low).all()
        assert (values <= high).all()


@given(records=any_records, score=scores())
def test_a_less_probable_class_never_has_a_smaller_score(records: Records, score: Score) -> None:
    of_all = score.of_all(records.probabilities, records.uniforms_for(score))
    for row, values in zip(records.probabilities, of_all, strict=True):
        assert (np.diff(values[np.argsort(-row, kind="stable")]) >= 0).all()


@each_score
def test_no_records_have_no_scores(score: Score) -> None:
    uniforms = np.empty(0) if score.randomized else None
    nothing = np.empty((0, 3))
    assert score.of_all(nothing, uniforms).shape == (0, 3)
    assert score.multiset(nothing, uniforms).shape == (0, 3)
    assert score.of_labels(nothing, [], uniforms).shape == (0,)


@each_score
def test_memory_beyond_the_result_does_not_grow_with_the_table(score: Score) -> None:
    records = many_records(k=100, n=60_000)
    uniforms = records.uniforms_for(score)
    table = records.probabilities.astype(np.float32)
    assert peak_beyond_result(score.multiset, table, uniforms) < 6e6
    assert peak_beyond_result(score.of_labels, table, np.zeros(60_000, int), uniforms) < 6e6


def peak_beyond_result(compute: Any, *arguments: Any) -> int:
    tracemalloc.start()
    try:
        result = compute(*arguments)
        return tracemalloc.get_traced_memory()[1] - int(result.nbytes)
    finally:
        tracemalloc.stop()


@each_score
def test_the_arrays_given_are_left_as_they_were(score: Score) -> None:
    records = many_records(k=10, n=50)
    records.probabilities.flags.writeable = False
    records.uniforms.flags.writeable = False
    uniforms = records.uniforms_for(score)
    score.of_all(records.probabilities, uniforms)
    score.multiset(records.probabilities, uniforms)
    score.of_labels(records.probabilities, np.zeros(50, int), uniforms)
