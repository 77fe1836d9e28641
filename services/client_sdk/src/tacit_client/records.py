"""The records that a site gives: checked whole before anything is drawn."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.checks import check_labels
from tacit.errors import TacitError
from tacit.protocol import Campaign, Features, LabelCampaign, Model
from tacit.protocol.columns import Dtype
from tacit.scores import check_probabilities
from tacit_client.errors import BadRecords

Names = Sequence[str] | Sequence[int] | NDArray[np.generic]
"""Ids of records or persons: strings, or integers, which count as their decimal digits."""


class GivenEvidence(TypedDict, total=False):
    """What goes with the labels: one of the two, a row per record.

    To score campaigns scores may be given instead, with no labels.
    """

    probabilities: ArrayLike | None
    features: ArrayLike | None
    scores: ArrayLike | None


@dataclass(frozen=True, eq=False, repr=False)
class Records:
    """One row per record: class index, id, person and evidence as the campaign asks for it."""

    labels: NDArray[np.int64]
    ids: list[str]
    persons: list[str]
    evidence: NDArray[np.generic]
    evidence_dtype: Dtype

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def evidence_bytes(self) -> int:
        """How many bytes of evidence leave with one record; at least those of one number."""
        numbers = int(np.prod(self.evidence.shape[1:], dtype=np.int64))
        return np.dtype(self.evidence_dtype).itemsize * max(1, numbers)

    @classmethod
    def of(
        cls,
        campaign: LabelCampaign,
        labels: ArrayLike | None,
        ids: Names,
        persons: Names | None = None,
        *,
        probabilities: ArrayLike | None = None,
        features: ArrayLike | None = None,
        scores: ArrayLike | None = None,
    ) -> "Records":
        """The records, if all of them fit the campaign; errors name a row, never its value."""
        if labels is None or scores is not None:
            raise BadRecords(
                f"This is a label campaign: give labels with {campaign.evidence.kind}, and nothing"
                " else."
            )
        classes = checked_labels(campaign, labels)
        evidence, dtype = _evidence(campaign, probabilities, features, len(classes))
        names, people = checked_names(ids, persons, len(classes))
        return cls(classes, names, people, evidence, dtype)


def checked_names(ids: Names, persons: Names | None, n: int) -> tuple[list[str], list[str]]:
    """The ids of records, each once, and whose they are; a record without a person is its own."""
    names = _names("ids", ids, n)
    _check_unique(names)
    return names, names if persons is None else _names("persons", persons, n)


def checked_labels(campaign: Campaign, labels: ArrayLike) -> NDArray[np.int64]:
    """Class indices, from indices or names; at least one."""
    classes = _labels(campaign, labels)
    if not len(classes):
        raise BadRecords("There are no records.")
    return classes


def _labels(campaign: Campaign, labels: ArrayLike) -> NDArray[np.int64]:
    try:
        given = np.asarray(labels)
    except (TypeError, ValueError, RuntimeError):
        raise BadRecords("Labels must be one class index or class name per record.") from None
    if given.ndim != 1:
        raise BadRecords("Labels must be one class index or class name per record.")
    if given.size and given.dtype.kind in "OUT":
        return _from_class_names(campaign, given.tolist())
    try:
        return check_labels(given, None, campaign.k)
    except TacitError as error:
        raise BadRecords(f"{error} Class names may be given too.") from None


def _from_class_names(campaign: Campaign, names: list[object]) -> NDArray[np.int64]:
    index = {name: position for position, name in enumerate(campaign.classes)}
    positions = [index.get(name, -1) if isinstance(name, str) else -1 for name in names]
    if -1 in positions:
        row = positions.index(-1)
        wrong = positions.count(-1)
        raise BadRecords(
            f"The label of row {row} is not one of the campaign's {campaign.k} classes"
            f" ({wrong} such rows in all). The campaign document lists them."
        )
    return np.array(positions, dtype=np.int64)


def _evidence(
    campaign: LabelCampaign, probabilities: ArrayLike | None, features: ArrayLike | None, n: int
) -> tuple[NDArray[np.generic], Dtype]:
    asked = campaign.evidence
    given, other = probabilities, features
    if isinstance(asked, Features):
        given, other = features, probabilities
    if given is None or other is not None:
        raise BadRecords(f"This campaign asks for {asked.kind}; give those, and nothing else.")
    if isinstance(asked, Features):
        return checked_features(asked, given, n), asked.dtype
    return checked_probabilities(campaign.k, given, n)


def checked_probabilities(k: int, given: ArrayLike, n: int) -> tuple[NDArray[np.generic], Dtype]:
    """Probabilities of k classes for n records, in the type that they are given in."""
    try:
        checked = check_probabilities(given)
    except TacitError as error:
        raise BadRecords(str(error)) from None
    if checked.shape != (n, k):
        raise BadRecords(
            f"Probabilities must have one row for each of {n} records and a column for each of"
            f" {k} classes, not the shape {checked.shape}."
        )
    if isinstance(given, np.ndarray) and given.dtype == np.float32:
        return given, "float32"
    return checked, "float64"


def checked_features(asked: Features | Model, given: ArrayLike, n: int) -> NDArray[np.generic]:
    """Features of n records in the type and shape that are asked for."""
    try:
        features = np.asarray(given)
    except (TypeError, ValueError, RuntimeError):
        raise BadRecords("Features must be an array with one row per record.") from None
    if features.shape != (n, *asked.shape):
        raise BadRecords(f"Features must have the shape {(n, *asked.shape)}, not {features.shape}.")
    if features.dtype.kind not in "fiu" or not np.can_cast(features.dtype, asked.dtype, "safe"):
        raise BadRecords(
            f"The campaign asks for features of {asked.dtype}, these are {features.dtype}. Convert"
            " them as the model's training did; nothing is rounded here."
        )
    features = features.astype(asked.dtype, copy=False)
    if features.dtype.kind == "f":
        finite = np.isfinite(features).reshape(n, -1).all(axis=1)
        if not finite.all():
            raise BadRecords(f"The features of row {int(np.argmin(finite))} are not finite.")
    return features


def _names(what: str, given: Names, n: int) -> list[str]:
    if isinstance(given, str | bytes):
        raise BadRecords(f"{what} must be one name per record.")
    try:
        names = given.tolist() if isinstance(given, np.ndarray) else list(given)
    except TypeError:
        raise BadRecords(f"{what} must be one name per record.") from None
    if not isinstance(names, list) or len(names) != n:
        raise BadRecords(f"{what} must be one name for each of the {n} records.")
    return [_name(what, name, row) for row, name in enumerate(names)]


def _name(what: str, name: object, row: int) -> str:
    if isinstance(name, int | np.integer) and not isinstance(name, bool):
        return str(int(name))
    if not isinstance(name, str) or not name.strip():
        raise BadRecords(f"Row {row} of {what} must be a string that is not empty, or an integer.")
    normal = normal_name(name)
    if normal is None:
        raise BadRecords(
            f"Row {row} of {what} begins or ends with a space, or has a character that cannot be"
            " seen. Two spellings of a name would be two records: take those out everywhere."
        )
    return normal


def normal_name(name: str) -> str | None:
    """The one spelling of an id in Unicode (NFC); None if something in it cannot be seen."""
    if name != name.strip() or not name.isprintable():
        return None
    return unicodedata.normalize("NFC", name)


def _check_unique(ids: list[str]) -> None:
    if len(set(ids)) == len(ids):
        return
    seen: set[str] = set()
    for row, name in enumerate(ids):
        if name in seen:
            twice = len(ids) - len(set(ids))
            raise BadRecords(
                f"The id of row {row} occurs before ({twice} such rows in all). Ids must be those"
                " of the records, each once."
            )
        seen.add(name)
