"""What is and is not a table of probabilities, and the way from logits to one."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tacit.errors import InvalidProbabilities
from tacit.scores import APS, check_probabilities, softmax


def table_with(row: list[float], at: int, n: int = 40_000) -> np.ndarray[Any, Any]:
    table = np.full((n, len(row)), 1 / len(row))
    table[at] = row
    return table


def test_a_float64_table_is_returned_without_a_copy() -> None:
    table = np.array([[0.25, 0.75]])
    assert check_probabilities(table) is table


@pytest.mark.parametrize("kind", [np.float32, np.float16, np.int64, np.uint8])
def test_one_hot_tables_of_any_number_type_become_float64(kind: type) -> None:
    checked = check_probabilities(np.eye(3, dtype=kind))
    assert checked.dtype == np.float64
    assert checked.tolist() == np.eye(3).tolist()


def test_an_empty_table_is_a_table() -> None:
    assert check_probabilities(np.empty((0, 5))).shape == (0, 5)


def test_lists_and_negative_zeros_are_accepted() -> None:
    assert check_probabilities([[1.0, -0.0]]).shape == (1, 2)


@pytest.mark.parametrize(
    "wrong",
    [
        [0.5, 0.5],
        [[[0.5, 0.5]]],
        [[1.0]],
        [],
        0.5,
        [[0.5, 0.5], [1.0]],
        [["0.5", "0.5"]],
        [[True, False]],
        [[0.5 + 0j, 0.5]],
        np.array([[0.5, 0.5]], dtype=object),
        None,
    ],
    ids=repr,
)
def test_what_is_not_a_table_of_real_numbers_is_refused(wrong: Any) -> None:
    with pytest.raises(InvalidProbabilities):
        check_probabilities(wrong)


@pytest.mark.parametrize("at", [0, 3, 39_999])
@pytest.mark.parametrize(
    ("row", "why"),
    [
        ([0.5, math.nan], "not finite"),
        ([0.5, math.inf], "not finite"),
        ([math.inf, -math.inf], "not finite"),
        ([1.25, -0.25], "negative"),
        ([2.0, -1.0], "negative"),
        ([0.5, 0.49], "sum to 1"),
        ([0.5, 0.50002], "sum to 1"),
        ([40.0, 60.0], "sum to 1"),
    ],
)
def test_a_wrong_row_is_refused_by_its_number_and_not_by_its_values(
    row: list[float], why: str, at: int
) -> None:
    with pytest.raises(InvalidProbabilities, match=rf"^Row {at} .*{why}") as refusal:
        check_probabilities(table_with(row, at))
    assert not any(repr(value) in str(refusal.value) for value in row if math.isfinite(value))


def test_the_first_of_several_wrong_rows_is_named() -> None:
    table = table_with([0.5, 0.4], at=7)
    table[5] = [1.5, -0.5]
    with pytest.raises(InvalidProbabilities, match=r"^Row 5 "):
        check_probabilities(table)


def test_scores_refuse_a_wrong_row_of_a_later_block_by_its_number_in_the_table() -> None:
    with pytest.raises(InvalidProbabilities, match=r"^Row 39999 "):
        APS().multiset(table_with([0.5, 0.4], at=39_999))


def test_rows_are_accepted_within_the_tolerance_and_not_renormalized() -> None:
    table = np.array([[0.5, 0.500009]])
    assert check_probabilities(table).tolist() == [[0.5, 0.500009]]


def test_logits_and_half_precision_are_pointed_to_softmax() -> None:
    with pytest.raises(InvalidProbabilities, match="softmax"):
        check_probabilities([[2.0, -1.0]])
    thirds = np.full((1, 3), 1 / 3).astype(np.float16)
    with pytest.raises(InvalidProbabilities, match="half precision"):
        check_probabilities(thirds)


def test_torch_tensors_are_read_and_those_that_cannot_be_are_refused() -> None:
    torch = pytest.importorskip("torch")
    tensor = torch.tensor([[0.25, 0.75]])
    assert check_probabilities(tensor).tolist() == [[0.25, 0.75]]
    with pytest.raises(InvalidProbabilities, match="detach"):
        check_probabilities(tensor.requires_grad_())


@given(
    logits=arrays.arrays(
        st.sampled_from([np.float16, np.float32, np.float64]),
        arrays.array_shapes(min_dims=2, max_dims=2, min_side=2),
        elements=st.floats(-60_000, 60_000, width=16),
    )
)
def test_softmax_of_finite_logits_is_a_table_of_probabilities(
    logits: np.ndarray[Any, Any],
) -> None:
    probabilities = check_probabilities(softmax(logits))
    for row, given_logits in zip(probabilities, logits.astype(np.float64), strict=True):
        weights = [math.exp(z - max(given_logits)) for z in given_logits]
        assert row == pytest.approx(np.array(weights) / math.fsum(weights), abs=1e-12)


def test_softmax_survives_logits_of_any_finite_size() -> None:
    assert softmax([[1e308, -1e308], [1e308, 1e308]]).tolist() == [[1.0, 0.0], [0.5, 0.5]]


def test_softmax_of_a_row_depends_neither_on_layout_nor_on_the_batch() -> None:
    logits = np.random.default_rng(1).normal(scale=3, size=(1500, 100))
    whole = softmax(logits)
    assert (softmax(np.asfortranarray(logits)) == whole).all()
    assert (softmax(logits[700:]) == whole[700:]).all()


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_softmax_refuses_logits_that_are_not_finite(value: float) -> None:
    logits = np.zeros((40_000, 2))
    logits[39_999, 1] = value
    with pytest.raises(InvalidProbabilities, match=r"^Row 39999 of the logits"):
        softmax(logits)


def test_softmax_refuses_what_is_not_a_table() -> None:
    with pytest.raises(InvalidProbabilities):
        softmax([1.0, 2.0])
