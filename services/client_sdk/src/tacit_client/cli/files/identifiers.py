"""Record ids and person ids, as text: the same in every kind of file."""

import numpy as np

from tacit_client.cli.errors import BadFile
from tacit_client.cli.files.source import Array, Source
from tacit_client.records import normal_name

NO_IDS = (
    "A record's id is what keeps its label from being randomized twice, so row numbers will not"
    " do. Add ids that stay the same, or name their {column} with --id."
)


def record_ids(source: Source, name: str | None) -> Array:
    """The ids, one for each record, none blank and none twice."""
    column = name or find(source, "id", "ids")
    if column is None:
        raise BadFile(
            f"{source.path.name} has no {source.column} named id; it has: {source.listing()}. "
            + NO_IDS.format(column=source.column)
        )
    ids = _normal(source, source.values(column), "id")
    _no_repetition(source, ids)
    return ids


def person_ids(source: Source, name: str | None) -> Array | None:
    """Whose records they are, or None where the file does not say."""
    column = name or find(source, "person", "persons")
    if column is None:
        return None
    return _normal(source, source.values(column), "person")


def find(source: Source, *names: str) -> str | None:
    """The first of these names that the file has."""
    return next((name for name in names if name in source.names), None)


def _normal(source: Source, ids: Array, what: str) -> Array:
    """The names in their one spelling, so that no record has two."""
    _no_blanks(source, ids, what)
    names = [normal_name(str(name)) for name in ids]
    if None in names:
        raise BadFile(
            f"The {what} in {source.place(names.index(None))} of {source.path.name} has a character"
            " that cannot be seen. Two spellings of a name would be two records: take it out."
        )
    return np.array(names, dtype=str)


def _no_blanks(source: Source, ids: Array, what: str) -> None:
    blank = ids == ""
    if blank.any():
        raise BadFile(
            f"The {what} in {source.place(int(blank.argmax()))} of {source.path.name} is blank."
            f" Every record needs its {what}."
        )


def _no_repetition(source: Source, ids: Array) -> None:
    order = np.argsort(ids, kind="stable")
    same = ids[order][1:] == ids[order][:-1]
    if same.any():
        at = int(same.argmax())
        raise BadFile(
            f"{source.path.name} has the same id twice, in {source.place(int(order[at]))} and"
            f" {source.place(int(order[at + 1]))}. Every record needs its own id."
        )
