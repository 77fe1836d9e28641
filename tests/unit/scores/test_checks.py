"""Labels, uniforms, class counts and parameters that are refused, and how."""

import math
from typing import Any

import numpy as np
import pytest

from tacit.checks import check_labels
from tacit.errors import InvalidClassCount, InvalidLabels, InvalidParameter
from tacit.scores import APS, HPS, RAPS, SAPS, RandomizedAPS

TABLE = np.array([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]])


@pytest.mark.parametrize("kind", [np.int8, np.int64, np.uint8, np.uint64])
def test_labels_of_any_integer_type_become_int64(kind: type) -> None:
    checked = check_labels(np.array([0, 2], dtype=kind), n=2, k=3)
    assert checked.dtype == np.int64
    assert checked.tolist() == [0, 2]


def test_no_labels_for_no_records() -> None:
    assert check_labels([], n=0, k=3).dtype == np.int64


@pytest.mark.parametrize(
    "wrong",
    [[0], [0, 1, 2], [[0, 1]], 0, [0.0, 1.0], [True, False], ["0", "1"], [[0], [0, 1]], None],
    ids=repr,
)
def test_labels_that_are_not_one_integer_per_record_are_refused(wrong: Any) -> None:
    with pytest.raises(InvalidLabels):
        check_labels(wrong, n=2, k=3)


@pytest.mark.parametrize("outside", [-1, 3, 77, 2**63])
def test_a_label_out_of_range_is_refused_by_its_row_and_not_by_its_value(outside: int) -> None:
    labels = np.array([0, outside], dtype=np.uint64 if outside == 2**63 else np.int64)
    with pytest.raises(InvalidLabels, match="row 1") as refusal:
        HPS().of_labels(TABLE, labels)
    assert str(outside) not in str(refusal.value)


def test_a_randomized_score_asks_for_its_uniforms() -> None:
    for compute in (RandomizedAPS().of_all, RandomizedAPS().multiset, SAPS(weight=0.1).of_all):
        with pytest.raises(InvalidParameter, match="drawn once and kept"):
            compute(TABLE)
    with pytest.raises(InvalidParameter, match="drawn once and kept"):
        RandomizedAPS().of_labels(TABLE, [0, 1])


def test_a_deterministic_score_refuses_uniforms() -> None:
    with pytest.raises(InvalidParameter, match="not randomized"):
        APS().of_all(TABLE, [0.5, 0.5])


@pytest.mark.parametrize(
    "wrong",
    [[0.5], [[0.5, 0.5]], 0.5, [0.5, 1.5], [-0.1, 0.5], [0.5, math.nan], ["a", "b"], [[0], [0, 1]]],
    ids=repr,
)
def test_uniforms_that_are_not_one_number_in_the_unit_interval_per_record_are_refused(
    wrong: Any,
) -> None:
    with pytest.raises(InvalidParameter):
        RandomizedAPS().of_all(TABLE, wrong)


@pytest.mark.parametrize("k", [1, 0, -3, 2.0, "3", None])
def test_a_range_needs_at_least_two_classes(k: Any) -> None:
    with pytest.raises(InvalidClassCount):
        HPS().range(k)


@pytest.mark.parametrize("a", [-0.1, math.nan, math.inf, "0.1", None, True, 10**400])
def test_raps_refuses_a_weight_that_is_not_a_finite_number_of_at_least_zero(a: Any) -> None:
    with pytest.raises(InvalidParameter, match="at least 0"):
        RAPS(a=a, b=1)


@pytest.mark.parametrize("b", [-1, 1.0, "1", None, True])
def test_raps_refuses_a_rank_that_is_not_an_integer_of_at_least_zero(b: Any) -> None:
    with pytest.raises(InvalidParameter, match="integer of at least 0"):
        RAPS(a=0.1, b=b)


@pytest.mark.parametrize("weight", [0, -0.1, math.nan, math.inf, "0.1", None, True])
def test_saps_refuses_a_weight_that_is_not_a_finite_positive_number(weight: Any) -> None:
    with pytest.raises(InvalidParameter, match="above 0"):
        SAPS(weight=weight)


def test_a_weight_too_large_for_a_finite_range_is_refused_when_the_classes_are_known() -> None:
    with pytest.raises(InvalidParameter, match="finite range"):
        RAPS(a=1e308, b=0).of_all(TABLE)


def test_numpy_parameters_become_plain_numbers() -> None:
    score = RAPS(a=np.float32(0.5), b=np.int8(2))  # type: ignore[arg-type]
    assert (type(score.a), type(score.b)) == (float, int)
    assert score == RAPS(a=0.5, b=2)
