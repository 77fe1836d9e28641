"""Ids of a file have one spelling each, whatever the file's."""

from pathlib import Path

import pytest

from tacit_client.cli.errors import BadFile
from tacit_client.cli.files.identifiers import person_ids, record_ids
from tacit_client.cli.files.open_file import open_source


def written(folder: Path, *ids: str) -> Path:
    path = folder / "records.csv"
    path.write_text("id,person\n" + "".join(f"{name},{name}\n" for name in ids), encoding="utf-8")
    return path


def test_spaces_around_ids_and_their_encoding_in_unicode_make_no_other_record(
    tmp_path: Path,
) -> None:
    source = open_source(written(tmp_path, " 1 ", "2\u00a0", "Andre\u0301"), ",")
    persons = person_ids(source, None)
    assert persons is not None
    assert record_ids(source, None).tolist() == persons.tolist() == ["1", "2", "Andr\u00e9"]


def test_one_id_in_two_encodings_is_the_same_id_twice(tmp_path: Path) -> None:
    source = open_source(written(tmp_path, "Andr\u00e9", "b", "Andre\u0301"), ",")
    with pytest.raises(BadFile, match="twice, in line 2 and line 4"):
        record_ids(source, None)


@pytest.mark.parametrize("name", ["a\u200b", "\u202ea", "a\u00a0b"])
def test_an_id_with_a_character_that_cannot_be_seen_is_named_by_its_line(
    tmp_path: Path, name: str
) -> None:
    source = open_source(written(tmp_path, "x", name), ",")
    with pytest.raises(BadFile, match="id in line 3") as caught:
        record_ids(source, None)
    with pytest.raises(BadFile, match="person in line 3"):
        person_ids(source, None)
    assert name not in str(caught.value)
