"""Labels as class numbers: names of classes first, numbers from 0 otherwise."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from tacit_client.cli.errors import BadFile
from tacit_client.cli.files.layout import LabelsAs
from tacit_client.cli.files.source import Array

_MOST_CLASSES = 12
AMBIGUOUS = (
    "The labels could be names of classes or their numbers; they are read as names."
    " Say --labels-as indices if they are numbers."
)


def class_indices(
    labels: Array, classes: Sequence[str], place: Callable[[int], str], how: LabelsAs
) -> tuple[NDArray[np.int64], str | None]:
    """The class numbers of labels, and a warning if they could be read in two ways."""
    distinct, inverse = np.unique(labels, return_inverse=True)
    numbers = {name: index for index, name in enumerate(classes)}
    by_name = np.array([numbers.get(str(label), -1) for label in distinct], dtype=np.int64)
    by_index = np.array([_index(str(label), len(classes)) for label in distinct], dtype=np.int64)
    chosen = _choice(by_name, by_index, how)
    known = chosen >= 0
    if not known.all():
        row = int(np.argmin(known[inverse]))
        raise BadFile(_unknown(labels[row] == "", place(row), classes, how))
    could_be_both = how is LabelsAs.AUTO and chosen is by_name and bool((by_index >= 0).all())
    differs = could_be_both and not np.array_equal(by_name, by_index)
    return chosen[inverse], AMBIGUOUS if differs else None


def _choice(
    by_name: NDArray[np.int64], by_index: NDArray[np.int64], how: LabelsAs
) -> NDArray[np.int64]:
    if how is LabelsAs.NAMES:
        return by_name
    if how is LabelsAs.INDICES:
        return by_index
    # One label that is a name and no number settles that all of them are meant as names.
    return by_name if (by_name >= 0).all() or ((by_name >= 0) & (by_index < 0)).any() else by_index


def _index(label: str, k: int) -> int:
    if not (label.isascii() and label.isdecimal() and len(label) < 10):
        return -1
    return int(label) if int(label) < k else -1


def _unknown(blank: bool, place: str, classes: Sequence[str], how: LabelsAs) -> str:
    ways = {
        LabelsAs.NAMES: "not the name of a class",
        LabelsAs.INDICES: f"not a whole number from 0 to {len(classes) - 1}",
        LabelsAs.AUTO: f"neither the name of a class nor its number from 0 to {len(classes) - 1}",
    }
    shown = ", ".join(classes[:_MOST_CLASSES]) + (", …" if len(classes) > _MOST_CLASSES else "")
    what = "blank" if blank else ways[how]
    return f"The label in {place} is {what}. The campaign's classes are: {shown}."
