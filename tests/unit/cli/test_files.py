from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tacit.protocol import Features
from tacit.scores import softmax
from tacit_client.cli.errors import BadFile, BadOption
from tacit_client.cli.files import Layout, Records, read_records, read_table
from tacit_client.cli.files.labels import AMBIGUOUS
from tacit_client.cli.files.layout import EvidenceLayout, LabelsAs
from tests.support.cli_files import CLASSES, GOOD, campaign, npz, text

TABLE = np.array([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0, 0, 1]])
MODEL = "0" * 64


def is_good(records: Records, ids: str = "abc") -> bool:
    assert records.labels.tolist() == [0, 1, 2]
    assert records.ids.tolist() == list(ids)
    assert np.array_equal(records.evidence["probabilities"], TABLE)
    return True


def parquet(folder: Path, **columns: object) -> Path:
    path = folder / "records.parquet"
    pq.write_table(pa.table(columns), path)
    return path


def test_a_csv_file_with_the_usual_names_needs_no_options(tmp_path: Path) -> None:
    records = read_records(text(GOOD)(tmp_path), campaign(), Layout())
    assert is_good(records)
    assert records.persons is None
    assert records.warnings == ()


def test_a_byte_order_mark_windows_lines_and_blank_lines_are_no_matter(tmp_path: Path) -> None:
    content = "\ufeff" + GOOD.replace("\n", "\r\n") + "\r\n"
    assert is_good(read_records(text(content)(tmp_path), campaign(), Layout()))


def test_columns_are_ordered_by_class_whatever_their_order_in_the_file(tmp_path: Path) -> None:
    content = "p_owl,label,id,p_cat,p_dog\n0.25,cat,a,0.5,0.25\n0.25,dog,b,0.25,0.5\n1,owl,c,0,0\n"
    assert is_good(read_records(text(content)(tmp_path), campaign(), Layout()))


def test_columns_may_be_numbered_named_by_options_and_separated_by_semicolons(
    tmp_path: Path,
) -> None:
    content = "key;truth;q0;q1;q2\na;0;0.5;0.25;0.25\nb;1;0.25;0.5;0.25\nc;2;0;0;1\n"
    path = text(content)(tmp_path)
    by_prefix = Layout(id="key", label="truth", probabilities_prefix="q", delimiter=";")
    listed = Layout(id="key", label="truth", probabilities="q0, q1,q2", delimiter=";")
    assert is_good(read_records(path, campaign(), by_prefix))
    assert is_good(read_records(path, campaign(), listed))


def test_persons_are_read_wherever_the_file_has_them(tmp_path: Path) -> None:
    content = "id,person,label,p_0,p_1,p_2\n1,x,cat,1,0,0\n2,x,dog,1,0,0\n"
    records = read_records(text(content)(tmp_path), campaign(), Layout())
    assert records.persons is not None
    assert records.persons.tolist() == ["x", "x"]


def test_logits_become_probabilities(tmp_path: Path) -> None:
    content = "id,label,logit_cat,logit_dog,logit_owl\n1,cat,3,-1,0\n"
    records = read_records(text(content)(tmp_path), campaign(), Layout())
    assert np.array_equal(records.evidence["probabilities"], softmax([[3.0, -1.0, 0.0]]))


def test_an_npz_file_with_the_usual_names_needs_no_options(tmp_path: Path) -> None:
    path = npz(probabilities=TABLE, persons=np.array([7, 7, 8]))(tmp_path)
    records = read_records(path, campaign(), Layout())
    assert is_good(records)
    assert records.persons is not None
    assert records.persons.tolist() == ["7", "7", "8"]


def test_the_arrays_of_an_npz_file_can_be_named(tmp_path: Path) -> None:
    path = tmp_path / "own.npz"
    np.savez(path, y=np.array(CLASSES), key=np.array([b"a", b"b", b"c"]), z=np.log(TABLE + 1e-300))
    records = read_records(path, campaign(), Layout(label="y", id="key", logits="z"))
    assert records.labels.tolist() == [0, 1, 2]
    assert records.ids.tolist() == ["a", "b", "c"]
    assert np.allclose(records.evidence["probabilities"], TABLE)


def test_an_id_is_the_same_text_in_every_kind_of_file(tmp_path: Path) -> None:
    csv = text("id,label,p_0,p_1,p_2\n 17 ,cat,1,0,0\n")(tmp_path)
    array = npz(labels=np.array([0]), ids=np.array([17]), probabilities=np.eye(3)[:1])(tmp_path)
    columns = parquet(tmp_path, id=[17], label=["cat"], probabilities=[[1.0, 0.0, 0.0]])
    found = {read_records(path, campaign(), Layout()).ids[0] for path in (csv, array, columns)}
    assert found == {"17"}


@pytest.mark.parametrize("listed", [True, False])
def test_parquet_may_have_lists_or_a_column_for_each_class(tmp_path: Path, listed: bool) -> None:
    wide = {f"p_{name}": TABLE[:, index] for index, name in enumerate(CLASSES)}
    evidence = {"probabilities": TABLE.tolist()} if listed else wide
    labels = pa.array(CLASSES).dictionary_encode()
    path = parquet(tmp_path, id=["a", "b", "c"], label=labels, **evidence)
    assert is_good(read_records(path, campaign(), Layout()))


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"id": ["a", None], "label": ["cat", "dog"]}, "1 nulls"),
        ({"id": [0.5, 1.5], "label": ["cat", "dog"]}, "text or whole number"),
        (
            {"id": ["a", "b"], "label": ["cat", "dog"], "probabilities": [[1.0], [1.0, 0.0]]},
            "length",
        ),
        (
            {
                "id": ["a", "b"],
                "label": ["cat", "dog"],
                "probabilities": [[1.0, None, 0], [1.0] * 3],
            },
            "1 nulls",
        ),
        ({"id": ["a", "b"], "label": ["cat", "dog"], "probabilities": [["x"] * 3] * 2}, "numbers"),
    ],
)
def test_bad_parquet_is_refused_in_a_sentence(
    tmp_path: Path, columns: dict[str, object], says: str
) -> None:
    with pytest.raises(BadFile, match=says):
        read_records(parquet(tmp_path, **columns), campaign(), Layout())


def test_features_of_several_axes_come_from_one_array(tmp_path: Path) -> None:
    images = np.arange(24, dtype=np.uint8).reshape(3, 4, 2)
    asked = campaign(evidence=Features(model=MODEL, dtype="uint8", shape=(4, 2)))
    records = read_records(npz(features=images)(tmp_path), asked, Layout())
    assert np.array_equal(records.evidence["features"], images)
    path = parquet(tmp_path, id=["a", "b", "c"], label=list(CLASSES), features=images.tolist())
    nested = read_records(path, asked, Layout()).evidence["features"]
    assert np.array_equal(nested, images)
    assert nested.dtype == np.uint8


def test_features_in_csv_take_the_campaigns_type(tmp_path: Path) -> None:
    path = text("id,label,x_1,x_0\na,cat,2,255\n")(tmp_path)
    asked = campaign(evidence=Features(model=MODEL, dtype="uint8", shape=(2,)))
    features = read_records(path, asked, Layout()).evidence["features"]
    assert features.tolist() == [[255, 2]]
    assert features.dtype == np.uint8


@pytest.mark.parametrize("value", ["256", "-1", "0.5"])
def test_features_that_do_not_fit_the_type_are_refused(tmp_path: Path, value: str) -> None:
    path = text(f"id,label,x_0,x_1\na,cat,1,1\nb,cat,1,{value}\n")(tmp_path)
    asked = campaign(evidence=Features(model=MODEL, dtype="uint8", shape=(2,)))
    with pytest.raises(BadFile, match=r"line 3.*do not fit.*uint8") as refused:
        read_records(path, asked, Layout())
    assert value not in str(refused.value).replace("line 3", "")


@pytest.mark.parametrize(
    ("header", "says"), [("x_0,x_2", "numbered from 0 to 1"), ("y_0,y_1", "no features")]
)
def test_features_without_an_order_are_refused(tmp_path: Path, header: str, says: str) -> None:
    path = text(f"id,label,{header}\na,cat,1,1\n")(tmp_path)
    asked = campaign(evidence=Features(model=MODEL, dtype="float32", shape=(2,)))
    with pytest.raises(BadFile, match=says):
        read_records(path, asked, Layout())


def test_features_of_another_shape_are_refused(tmp_path: Path) -> None:
    asked = campaign(evidence=Features(model=MODEL, dtype="float32", shape=(4,)))
    with pytest.raises(BadFile, match=r"shape \[4\], not \[2\]"):
        read_records(npz(features=np.ones((3, 2)))(tmp_path), asked, Layout())


@pytest.mark.parametrize(
    ("how", "labels", "warned"),
    [
        (LabelsAs.AUTO, [0, 1], True),
        (LabelsAs.NAMES, [0, 1], False),
        (LabelsAs.INDICES, [1, 2], False),
    ],
)
def test_labels_that_could_be_names_or_numbers_are_names_and_that_is_said(
    tmp_path: Path, how: LabelsAs, labels: list[int], warned: bool
) -> None:
    shifted = campaign(classes=("1", "2", "3"))
    path = npz(labels=np.array([1, 2]), ids=np.array([1, 2]), probabilities=np.eye(3)[:2])(tmp_path)
    records = read_records(path, shifted, Layout(labels_as=how))
    assert records.labels.tolist() == labels
    assert records.warnings == ((AMBIGUOUS,) if warned else ())


def test_numbers_of_classes_named_by_their_number_are_not_ambiguous(tmp_path: Path) -> None:
    plain = campaign(classes=("0", "1", "2"))
    assert read_records(npz()(tmp_path), plain, Layout()).warnings == ()


def test_one_label_that_can_only_be_a_name_makes_all_of_them_names(tmp_path: Path) -> None:
    mixed = campaign(classes=("1", "0", "none"))
    path = npz(labels=np.array(["1", "0", "none"]))(tmp_path)
    assert read_records(path, mixed, Layout()).labels.tolist() == [0, 1, 2]


def test_a_delimiter_of_several_characters_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadOption, match="single character"):
        read_records(text(GOOD)(tmp_path), campaign(), Layout(delimiter="::"))


@pytest.mark.parametrize("write", [text(GOOD), npz(probabilities=TABLE)])
def test_a_file_to_predict_needs_no_labels_and_may_lack_ids(
    tmp_path: Path, write: Callable[[Path], Path]
) -> None:
    table = read_table(write(tmp_path), CLASSES, EvidenceLayout())
    assert np.array_equal(table.probabilities, TABLE)
    assert table.ids is not None
    bare = text("p_cat,p_dog,p_owl\n1,0,0\n", "bare.csv")(tmp_path)
    assert read_table(bare, CLASSES, EvidenceLayout()).ids is None
