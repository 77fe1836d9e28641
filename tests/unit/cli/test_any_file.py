"""Whatever a file holds, it is read or refused in a sentence; nothing else is ever raised."""

import io
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tacit.protocol import Features, Probabilities
from tacit_client.cli.errors import BadFile
from tacit_client.cli.files import Layout, read_records
from tests.support.cli_files import GOOD, campaign

MODEL = "0" * 64
ASKED: list[Probabilities | Features] = [
    Probabilities(),
    Features(model=MODEL, dtype="uint8", shape=(2,)),
    Features(model=MODEL, dtype="float16", shape=()),
    Features(model=MODEL, dtype="int64", shape=(1,)),
]
NAMES = ["id", "ids", "label", "labels", "person", "probabilities", "logits", "features"]
COLUMNS = [*NAMES, "p_0", "p_1", "p_2", "p_cat", "x_0", "x_1", ""]
CELLS = st.sampled_from(
    [
        "a",
        "b",
        "cat",
        "dog",
        "0",
        "1",
        "2",
        "-1",
        "1e400",
        "nan",
        "0.5",
        "",
        " ",
        '"',
        "1_0",
        "\0",
        "é",
    ]
)
DTYPES = st.sampled_from(["u1", "i8", "u8", "f2", "f4", "f8", "?", "c8", "U2", "S2", "M8[s]"])


def reads_or_refuses(name: str, content: bytes, asked: Probabilities | Features) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        try:
            records = read_records(path, campaign(evidence=asked), Layout())
        except BadFile:
            return
    (evidence,) = records.evidence.values()
    assert isinstance(evidence, np.ndarray)
    assert len(records) == len(records.ids) == len(evidence) > 0


@given(content=st.binary(max_size=200), kind=st.sampled_from(["csv", "tsv", "npz", "parquet"]))
def test_any_bytes(content: bytes, kind: str) -> None:
    reads_or_refuses(f"records.{kind}", content, Probabilities())


@given(data=st.data(), asked=st.sampled_from(ASKED))
def test_any_csv_table(data: st.DataObject, asked: Probabilities | Features) -> None:
    header = data.draw(st.lists(st.sampled_from(COLUMNS), min_size=1, max_size=7))
    size = len(header)
    rows = data.draw(st.lists(st.lists(CELLS, min_size=size, max_size=size), max_size=3))
    content = "\n".join(",".join(row) for row in [header, *rows])
    reads_or_refuses("records.csv", content.encode(), asked)


@given(data=st.data(), asked=st.sampled_from(ASKED))
def test_any_arrays(data: st.DataObject, asked: Probabilities | Features) -> None:
    names = data.draw(st.lists(st.sampled_from(NAMES), min_size=1, unique=True))
    shape = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)
    arrays = {name: data.draw(hnp.arrays(data.draw(DTYPES), shape)) for name in names}
    file = io.BytesIO()
    np.savez(file, **arrays)  # type: ignore[arg-type]  # names are not those of its options
    reads_or_refuses("records.npz", file.getvalue(), asked)


PARQUET = [
    [1, 2],
    [1.5, float("nan")],
    ["a", "b"],
    [b"a", b"\xff"],
    [True, False],
    [None, None],
    [[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]],
    [[], []],
    [[[1, 2]], [[3, 4]]],
    [{"a": 1}, {"a": 2}],
    ["cat", "dog"],
]


@given(
    columns=st.dictionaries(st.sampled_from(NAMES), st.sampled_from(PARQUET), min_size=1),
    asked=st.sampled_from(ASKED),
)
def test_any_parquet_table(columns: dict[str, object], asked: Probabilities | Features) -> None:
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file)
    reads_or_refuses("records.parquet", file.getvalue(), asked)


@pytest.mark.parametrize("cut", range(0, len(GOOD), 7))
def test_a_file_that_was_cut_off(cut: int) -> None:
    reads_or_refuses("records.csv", GOOD[:cut].encode(), Probabilities())
