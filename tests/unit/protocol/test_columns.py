"""Columns: the same array on both sides, and no other reading of the same text."""

import base64
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from pydantic import ValidationError

from tacit.errors import InvalidColumn
from tacit.protocol import Column
from tacit.protocol.columns import Dtype

DTYPES = get_args(Dtype)
shapes = arrays.array_shapes(max_dims=4, min_side=0, max_side=4)
any_array = st.sampled_from(DTYPES).flatmap(lambda name: arrays.arrays(name, shapes))


def column(**fields: Any) -> Column:
    return Column(**({"dtype": "uint8", "shape": (3,), "data": "AQID"} | fields))


@given(any_array)
def test_an_array_survives_the_way_over_the_wire(array: np.ndarray[Any, Any]) -> None:
    sent = Column.of(array)
    read = Column.model_validate_json(sent.model_dump_json())
    assert read == sent
    assert read.array().shape == array.shape
    np.testing.assert_array_equal(read.array(), array)
    assert read.array().tobytes() == array.astype(array.dtype.newbyteorder("<")).tobytes()


@given(any_array)
def test_order_in_memory_and_of_bytes_does_not_matter(array: np.ndarray[Any, Any]) -> None:
    swapped = np.asfortranarray(array.astype(array.dtype.newbyteorder(">")))
    assert Column.of(swapped) == Column.of(array)


def test_a_column_of_two_million_numbers_survives() -> None:
    array = np.random.default_rng(1).random((200_000, 10))
    read = Column.model_validate_json(Column.of(array).model_dump_json())
    np.testing.assert_array_equal(read.array(), array)
    assert read.rows == 200_000


def test_the_array_of_a_column_cannot_be_written_to() -> None:
    with pytest.raises(ValueError, match="read-only"):
        column().array()[0] = 0


def test_a_column_does_not_show_its_values() -> None:
    assert "AQID" not in repr(column())
    assert "AQID" not in str(column())


@pytest.mark.parametrize(
    "data",
    [
        "AQI",
        "AQID=",
        "AQ=ID",
        "AQ\nID",
        " AQID",
        "AQID ",
        "AQ-_",
        "AQI\u00e9",
        "\ud800",
        "AQID====",
    ],
    ids=ascii,
)
def test_what_is_not_plain_base64_is_refused(data: str) -> None:
    with pytest.raises((InvalidColumn, ValidationError)) as caught:
        column(data=data).array()
    assert data not in str(caught.value)


def test_bits_beside_the_last_byte_are_zero() -> None:
    assert column(shape=(1,), data="AQ==").array().tolist() == [1]
    with pytest.raises(InvalidColumn, match="base64"):
        column(shape=(1,), data="AR==").array()


@pytest.mark.parametrize("data", ["", "AQ==", "AQIDBA=="])
def test_more_or_fewer_bytes_than_type_and_shape_ask_for_are_refused(data: str) -> None:
    with pytest.raises(InvalidColumn, match="3 bytes"):
        column(data=data).array()


@pytest.mark.parametrize("shape", [(2**31 - 1,) * 8, (0, 2**31 - 1), (3, 2)], ids=str)
def test_a_shape_that_promises_more_than_was_sent_costs_nothing(shape: tuple[int, ...]) -> None:
    with pytest.raises(InvalidColumn):
        column(shape=shape).array()


@pytest.mark.parametrize(
    "fields",
    [
        {"dtype": "bool"},
        {"dtype": "complex64"},
        {"dtype": "object"},
        {"dtype": "<u1"},
        {"dtype": "uint64"},
        {"dtype": 1},
        {"shape": ()},
        {"shape": (1,) * 9},
        {"shape": (-1,)},
        {"shape": (2**31,)},
        {"shape": (3.0,)},
        {"shape": (True, 3)},
        {"shape": "3"},
        {"data": b"AQID"},
        {"data": None},
        {"order": "F"},
    ],
    ids=str,
)
def test_a_description_that_is_no_column_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        column(**fields)


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([256], "uint8"),
        ([-1], "uint16"),
        ([0.5], "uint8"),
        ([np.nan], "uint8"),
        ([1e300], "float32"),
        ([70_000.0], "float16"),
        (["a"], None),
        ([True], None),
        ([1j], None),
        ([2**64 - 1], None),
        (1.0, None),
        ([1], "uint64"),
    ],
    ids=str,
)
def test_values_that_would_change_on_the_way_are_refused(values: Any, dtype: Any) -> None:
    with pytest.raises(InvalidColumn):
        Column.of(np.array(values), dtype)


def test_numbers_may_be_rounded_to_a_smaller_float() -> None:
    assert Column.of(np.array([0.1, np.inf]), "float32").array().tolist() == [
        float(np.float32(0.1)),
        np.inf,
    ]
    assert Column.of(np.array([7.0]), "uint8").array().tolist() == [7]


def test_the_bytes_are_little_endian() -> None:
    assert base64.b64decode(Column.of(np.array([1]), "uint32").data) == b"\x01\x00\x00\x00"
