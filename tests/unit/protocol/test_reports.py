"""An upload is checked against its campaign, column by column, and no value is shown."""

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from tacit.errors import InvalidColumn, InvalidLabels, InvalidParameter, InvalidProbabilities
from tacit.protocol import Column, Features, LabelCampaign, Reports, Upload, label_dtype
from tacit.protocol.uploads import MOST_RECORDS
from tacit.scores import RandomizedAPS
from tests.unit.protocol.examples import DIGEST, PIXELS, campaign, upload

PROBABILITIES = campaign()
RANDOMIZED = campaign(score=RandomizedAPS())
FEATURES = campaign(evidence=PIXELS)


def floats(values: Any, dtype: Any = "float64") -> Column:
    return Column.of(np.array(values, dtype=np.float64), dtype)


def labels(values: list[int], dtype: Any = "uint8") -> Column:
    return Column.of(np.array(values), dtype)


@pytest.mark.parametrize("terms", [PROBABILITIES, RANDOMIZED, FEATURES], ids=["p", "u", "f"])
def test_an_upload_that_fits_its_campaign_is_read(terms: LabelCampaign) -> None:
    sent = upload(terms)
    reports = Reports.of(Upload.model_validate_json(sent.to_bytes()), terms)
    assert len(reports) == sent.records == 4
    assert reports.labels.tolist() == [0, 1, 2, 0]
    assert (reports.uniforms is not None) == (terms is RANDOMIZED)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_probabilities_come_in_single_or_double_precision(dtype: Any) -> None:
    sent = upload(PROBABILITIES, probabilities=floats(np.full((4, 3), 1 / 3), dtype))
    assert Reports.of(sent, PROBABILITIES).evidence.dtype == dtype


@pytest.mark.parametrize(("k", "dtype"), [(2, "uint8"), (256, "uint8"), (257, "uint16")])
def test_labels_come_in_the_smallest_type_that_holds_them(k: int, dtype: Any) -> None:
    assert label_dtype(k) == dtype
    terms = campaign(k=k)
    assert Reports.of(upload(terms), terms).labels.dtype == dtype
    wider = labels([0, 1, 0, 1], "uint16" if dtype == "uint8" else "uint32")
    with pytest.raises(InvalidColumn, match="labels"):
        Reports.of(upload(terms, labels=wider), terms)


@pytest.mark.parametrize("dtype", ["uint8", "int64", "float16", "float64"])
@pytest.mark.parametrize("shape", [(), (5,), (2, 1, 3)], ids=str)
def test_features_come_in_the_type_and_shape_that_the_campaign_asks_for(
    dtype: Any, shape: tuple[int, ...]
) -> None:
    terms = campaign(evidence=Features(model=DIGEST, dtype=dtype, shape=shape))
    assert Reports.of(upload(terms), terms).evidence.shape == (4, *shape)
    with pytest.raises(InvalidColumn, match="features"):
        Reports.of(upload(terms, features=floats(np.zeros((4, *shape, 1)))), terms)


@pytest.mark.parametrize(
    ("column", "error"),
    [
        (labels([0, 1, 3, 0]), InvalidLabels),
        (labels([0, 1, 2, 0], "int8"), InvalidColumn),
        (labels([0, 1, 2]), InvalidColumn),
        (Column.of(np.zeros((4, 1), dtype=np.uint8)), InvalidColumn),
        (Column.of(np.zeros(0, dtype=np.uint8)), InvalidColumn),
        (Column(dtype="uint8", shape=(4,), data="AAAA"), InvalidColumn),
        (Column(dtype="uint8", shape=(MOST_RECORDS + 1,), data=""), InvalidColumn),
    ],
)
def test_labels_that_are_wrong_are_refused(column: Column, error: type[Exception]) -> None:
    with pytest.raises(error):
        Reports.of(upload(PROBABILITIES, labels=column), PROBABILITIES)


ROWS = [[0.5, 0.25, 0.25]] * 3


@pytest.mark.parametrize(
    ("column", "error"),
    [
        (None, InvalidColumn),
        (floats([[0.5, 0.5]] * 4), InvalidColumn),
        (floats(ROWS), InvalidColumn),
        (floats([0.5] * 4), InvalidColumn),
        (floats([*ROWS, [0.5, 0.5, 0.5]]), InvalidProbabilities),
        (floats([*ROWS, [1.5, -0.5, 0.0]]), InvalidProbabilities),
        (floats([*ROWS, [np.nan, 0.5, 0.5]]), InvalidProbabilities),
        (floats([*ROWS, [np.inf, 0.0, 0.0]], "float32"), InvalidProbabilities),
        (floats([*ROWS, [1, 0, 0]], "float16"), InvalidColumn),
        (Column.of(np.array([[1, 0, 0]] * 4)), InvalidColumn),
    ],
)
def test_probabilities_that_are_wrong_are_refused(
    column: Column | None, error: type[Exception]
) -> None:
    with pytest.raises(error):
        Reports.of(upload(PROBABILITIES, probabilities=column), PROBABILITIES)


@pytest.mark.parametrize(
    "column",
    [
        None,
        floats(np.zeros((4, 2, 3)), "float64"),
        floats(np.zeros((4, 3, 2)), "float32"),
        floats(np.zeros((3, 2, 3)), "float32"),
        floats(np.zeros((4, 6)), "float32"),
        floats(np.full((4, 2, 3), np.nan), "float32"),
        floats(np.full((4, 2, 3), -np.inf), "float32"),
    ],
)
def test_features_that_are_wrong_are_refused(column: Column | None) -> None:
    with pytest.raises(InvalidColumn):
        Reports.of(upload(FEATURES, features=column), FEATURES)


@pytest.mark.parametrize(
    ("column", "error"),
    [
        (None, InvalidColumn),
        (floats([0.5] * 3), InvalidColumn),
        (floats([0.5] * 4, "float32"), InvalidColumn),
        (floats([[0.5]] * 4), InvalidColumn),
        (floats([0.5, 0.5, 0.5, 1.5]), InvalidParameter),
        (floats([0.5, 0.5, 0.5, -0.1]), InvalidParameter),
        (floats([0.5, 0.5, 0.5, np.nan]), InvalidParameter),
    ],
)
def test_uniforms_that_are_wrong_are_refused(column: Column | None, error: type[Exception]) -> None:
    with pytest.raises(error):
        Reports.of(upload(RANDOMIZED, uniforms=column), RANDOMIZED)


def test_a_column_that_nobody_asked_for_is_refused() -> None:
    probabilities = upload(PROBABILITIES).probabilities
    features = upload(FEATURES).features
    for sent, terms in (
        (upload(PROBABILITIES, features=features), PROBABILITIES),
        (upload(FEATURES, probabilities=probabilities), FEATURES),
        (upload(PROBABILITIES, uniforms=floats([0.5] * 4)), PROBABILITIES),
    ):
        with pytest.raises(InvalidColumn):
            Reports.of(sent, terms)


def test_errors_and_reports_show_no_value() -> None:
    rows = [*ROWS, [0.123456, 0.5, 0.5]]
    with pytest.raises(InvalidProbabilities) as caught:
        Reports.of(upload(PROBABILITIES, probabilities=floats(rows)), PROBABILITIES)
    assert "3" in str(caught.value)  # the row
    assert "0.12" not in str(caught.value)
    with pytest.raises(InvalidLabels) as wrong:
        Reports.of(upload(PROBABILITIES, labels=labels([0, 77, 0, 0])), PROBABILITIES)
    assert "77" not in str(wrong.value)
    sent = upload(PROBABILITIES)
    assert sent.labels.data not in repr(sent)
    assert "0.33" not in repr(Reports.of(sent, PROBABILITIES))


@pytest.mark.parametrize(
    "fields",
    [
        {"campaign": "ab"},
        {"campaign": "AB" * 32},
        {"campaign": "ab" * 32 + "\n"},
        {"upload": "cd"},
        {"upload": 5},
        {"version": "1.1"},
        {"site": "mine"},
        {"labels": [1, 2]},
        {"labels": None},
    ],
    ids=str,
)
def test_an_upload_with_a_wrong_field_is_refused(fields: dict[str, Any]) -> None:
    given = upload(PROBABILITIES).model_dump() | fields
    with pytest.raises(ValidationError) as caught:
        Upload.model_validate(given)
    assert str(fields[next(iter(fields))]) not in str(caught.value).replace("1.0", "")


def test_the_same_upload_has_the_same_bytes() -> None:
    sent = upload(RANDOMIZED)
    assert Upload.model_validate_json(sent.to_bytes()).to_bytes() == sent.to_bytes()
    assert b"null" not in sent.to_bytes()
