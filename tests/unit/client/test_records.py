from typing import Any

import numpy as np
import pytest

from tacit.protocol import Features
from tacit_client.errors import BadRecords
from tacit_client.records import Records
from tests.support.client_world import given, world

CAMPAIGN = world().campaign
IMAGES = world(evidence=Features(model="0" * 64, dtype="float32", shape=(2, 2))).campaign
GIVEN = given(5)


def records(**changes: Any) -> Records:
    return Records.of(CAMPAIGN, **(GIVEN.arguments() | changes))


def test_labels_are_class_indices_or_class_names() -> None:
    names = [CAMPAIGN.classes[label] for label in GIVEN.labels]
    for labels in (GIVEN.labels, GIVEN.labels.tolist(), names, np.array(names)):
        assert records(labels=labels).labels.tolist() == GIVEN.labels.tolist()


def test_ids_may_be_integers_and_are_then_their_digits() -> None:
    assert records(ids=np.arange(5)).ids == ["0", "1", "2", "3", "4"]
    assert records(ids=["0", "1", "2", "3", "4"]).ids == records(ids=range(5)).ids


def test_without_persons_each_record_is_its_own() -> None:
    assert records().persons == GIVEN.ids
    assert records(persons=["p", "p", "q", "q", "q"]).persons == ["p", "p", "q", "q", "q"]


@pytest.mark.parametrize(
    "labels",
    [
        [0, 1, 2, 3, 0],
        [0, 1, 2, -1, 0],
        [0.0, 1.0, 2.0, 0.0, 0.0],
        ["c0", "c1", "c2", "secret-class", "c0"],
        ["c0", "c1", "c2", None, "c0"],
        [[0, 1, 2, 0, 0]],
        [True, False, True, False, True],
        [0, 1],
        [],
        "c0",
        None,
        np.array(["2020-01-01"] * 5, dtype="datetime64[D]"),
    ],
)
def test_labels_that_are_not_of_the_campaign_are_refused(labels: Any) -> None:
    with pytest.raises(BadRecords) as caught:
        records(labels=labels)
    assert "secret-class" not in str(caught.value)


@pytest.mark.parametrize(
    "ids",
    [
        ["a", "b", "c", "secret", "secret"],
        ["a", "b", "c", "d", ""],
        ["a", "b", "c", "d", "  "],
        ["a", "b", "c", "d", None],
        ["a", "b", "c", "d", float("nan")],
        ["a", "b", "c", "d", True],
        ["a", "b", "c", "d", "\ud800"],
        [1, 2, 3, 4, "4"],
        ["a", "b"],
        "abcde",
        None,
        3,
    ],
)
def test_ids_that_do_not_name_each_record_once_are_refused(ids: Any) -> None:
    with pytest.raises(BadRecords) as caught:
        records(ids=ids)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "spelling", [" 1", "1 ", "1\u00a0", "1\u200b", "\ufeff1", "1\t", "a\u00a0b", "1\n2", "\u202e1"]
)
@pytest.mark.parametrize("what", ["ids", "persons"])
def test_a_name_with_something_that_cannot_be_seen_is_refused(what: str, spelling: str) -> None:
    with pytest.raises(BadRecords, match=f"Row 4 of {what}") as caught:
        records(**{what: ["a", "b", "c", "d", spelling]})
    assert spelling not in str(caught.value)


def test_two_spellings_of_one_name_are_one_record() -> None:
    composed, decomposed = "Andr\u00e9", "Andre\u0301"
    taken = records(ids=["a", "b c", "3", 4, decomposed], persons=[composed, decomposed, 1, 2, 3])
    assert taken.ids == ["a", "b c", "3", "4", composed]
    assert taken.persons[:2] == [composed] * 2
    with pytest.raises(BadRecords, match="row 4 occurs before"):
        records(ids=["a", "b", "c", composed, decomposed])


def test_float32_probabilities_leave_as_float32_and_others_as_float64() -> None:
    assert records().evidence_dtype == "float32"
    assert records(probabilities=np.eye(3)[[0, 1, 2, 0, 1]]).evidence_dtype == "float64"
    assert records(probabilities=np.eye(3, dtype=int)[[0, 1, 2, 0, 1]]).evidence_dtype == "float64"


@pytest.mark.parametrize(
    "probabilities",
    [
        np.full((5, 3), np.nan),
        np.full((5, 3), 2.0),
        np.full((5, 2), 0.5),
        np.full((4, 3), 1 / 3),
        np.full((5, 3), "x"),
        None,
    ],
)
def test_probabilities_that_are_none_are_refused(probabilities: Any) -> None:
    with pytest.raises(BadRecords):
        records(probabilities=probabilities)


def test_evidence_that_was_not_asked_for_is_refused() -> None:
    with pytest.raises(BadRecords, match="asks for probabilities"):
        records(features=np.zeros((5, 2)))
    with pytest.raises(BadRecords, match="asks for features"):
        Records.of(IMAGES, **GIVEN.arguments())


def test_features_are_cast_only_where_nothing_is_lost() -> None:
    labels, ids = GIVEN.labels, GIVEN.ids
    pixels = np.arange(20, dtype=np.uint8).reshape(5, 2, 2)
    taken = Records.of(IMAGES, labels, ids, features=pixels)
    assert taken.evidence.dtype == np.float32
    assert np.array_equal(taken.evidence, pixels)
    for features in (pixels.astype(np.float64), pixels.astype(np.int64), pixels.astype(str)):
        with pytest.raises(BadRecords, match="float32"):
            Records.of(IMAGES, labels, ids, features=features)


def test_features_must_have_the_shape_and_be_finite() -> None:
    labels, ids = GIVEN.labels, GIVEN.ids
    features = np.zeros((5, 2, 2), dtype=np.float32)
    with pytest.raises(BadRecords, match="shape"):
        Records.of(IMAGES, labels, ids, features=features[:, :1])
    features[3, 0, 1] = np.inf
    with pytest.raises(BadRecords, match="row 3"):
        Records.of(IMAGES, labels, ids, features=features)


def test_the_records_show_nothing_of_themselves() -> None:
    assert "r0" not in repr(records())
