"""Files as a site has them, good ones and bad ones, for a campaign of three classes."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from tacit.protocol import Features, LabelCampaign, Probabilities
from tacit.scores import HPS

CLASSES = ("cat", "dog", "owl")
UNSHOWN = "sphinx"
"""A value that stands in bad files and must not appear in any message."""

Write = Callable[[Path], Path]


def campaign(
    *, classes: tuple[str, ...] = CLASSES, evidence: Probabilities | Features | None = None
) -> LabelCampaign:
    """A campaign that asks for probabilities unless it is told otherwise."""
    return LabelCampaign.of(
        title="Animals",
        owner="owner",
        classes=classes,
        epsilon=2.0,
        evidence=evidence or Probabilities(),
        score=HPS(),
        alpha=0.1,
        planned_n=100,
        opens=datetime(2026, 1, 1, tzinfo=UTC),
        closes=datetime(2099, 1, 1, tzinfo=UTC),
    )


@dataclass(frozen=True)
class Bad:
    """A file that must be refused, and words of the sentence that refuses it."""

    name: str
    write: Write
    says: tuple[str, ...]


def text(content: str, name: str = "records.csv", encoding: str = "utf-8") -> Write:
    """A text file."""

    def write(folder: Path) -> Path:
        path = folder / name
        path.write_bytes(content.encode(encoding))
        return path

    return write


def npz(**arrays: Any) -> Write:
    """An NPZ file: three good records, but for what is given."""

    def write(folder: Path) -> Path:
        good = {
            "labels": np.array([0, 1, 2]),
            "ids": np.array(["a", "b", "c"]),
            "probabilities": np.eye(3),
        }
        chosen = {name: value for name, value in {**good, **arrays}.items() if value is not None}
        path = folder / "records.npz"
        np.savez(path, **chosen)
        return path

    return write


def no_file(folder: Path) -> Path:
    return folder / "missing.csv"


HEADER = "id,label,p_cat,p_dog,p_owl\n"
GOOD = HEADER + "a,cat,0.5,0.25,0.25\nb,dog,0.25,0.5,0.25\nc,owl,0,0,1\n"

BAD = (
    Bad("missing file", no_file, ("There is no file", "missing.csv")),
    Bad("folder", lambda folder: folder, ("There is no file",)),
    Bad("unknown kind", text(GOOD, "records.xlsx"), ("no known kind", ".csv, .npz or .parquet")),
    Bad("latin-1", text(GOOD + "Jürgen,cat,1,0,0\n", encoding="latin-1"), ("not UTF-8",)),
    Bad("utf-16", text(GOOD, encoding="utf-16"), ("not UTF-8",)),
    Bad("empty file", text(""), ("is empty", "header")),
    Bad("no rows", text(HEADER), ("has no records",)),
    Bad(
        "no id column", text("label,p_cat\ncat,1\n"), ("no column named id", "label, p_cat", "--id")
    ),
    Bad(
        "no label column",
        text("id,animal,p_cat,p_dog,p_owl\na,cat,1,0,0\n"),
        ("no column named label", "id, animal, p_cat", "--label"),
    ),
    Bad(
        "no probabilities", text("id,label\na,cat\n"), ("no probabilities", "id, label", "--logits")
    ),
    Bad(
        "a class without its column",
        text("id,label,p_cat,p_dog\na,cat,1,0\n"),
        ("2 columns that begin with p_", "3 classes"),
    ),
    Bad(
        "unknown class",
        text(GOOD + f"d,{UNSHOWN},1,0,0\n"),
        ("label in line 5", "neither the name of a class nor its number", "cat, dog, owl"),
    ),
    Bad("blank label", text(GOOD + "d,,1,0,0\n"), ("label in line 5 is blank",)),
    Bad("index too large", text(HEADER + "a,3,1,0,0\n"), ("label in line 2", "from 0 to 2")),
    Bad("duplicate ids", text(GOOD + "b,cat,1,0,0\n"), ("same id twice", "line 3 and line 5")),
    Bad("ids that differ in blanks", text(GOOD + " b ,cat,1,0,0\n"), ("line 3 and line 5",)),
    Bad("blank id", text(GOOD + " ,cat,1,0,0\n"), ("id in line 5", "blank")),
    Bad(
        "blank person",
        text("id,person,label,p_cat,p_dog,p_owl\na,,cat,1,0,0\n"),
        ("person in line 2", "blank"),
    ),
    Bad("NaN", text(GOOD + "d,cat,nan,0,0\n"), ("line 5", "NaN or infinity")),
    Bad("infinity", text(GOOD + "d,cat,inf,0,0\n"), ("line 5", "NaN or infinity")),
    Bad("not a number", text(GOOD + f"d,cat,{UNSHOWN},0,0\n"), ("Line 5", "not a number", "p_cat")),
    Bad("no number", text(GOOD + "d,cat,,0,1\n"), ("Line 5", "blank", "p_cat")),
    Bad("too few fields", text(GOOD + "d,cat,1\n"), ("Line 5", "3 fields", "header 5")),
    Bad("decimal commas", text(GOOD + "d,cat,0,5,0,5,0\n"), ("Line 5", "7 fields")),
    Bad("open quote", text(GOOD + '"d,cat,1,0,0\n'), ("not CSV", "quotes")),
    Bad("columns of one name", text("id,id,label\n"), ("two columns of one name", "id")),
    Bad("logits as probabilities", text(GOOD + "d,cat,3,-1,0\n"), ("line 5", "--logits")),
    Bad("percentages", text(GOOD + "d,cat,50,25,25\n"), ("line 5", "do not sum to 1")),
    Bad("not an npz file", text(GOOD, "records.npz"), ("not an NPZ file", "numpy.savez")),
    Bad(
        "pickled npz", npz(ids=np.array(["a", None, 3], dtype=object)), ("Python objects", "never")
    ),
    Bad("npz without ids", npz(ids=None), ("no array named id", "--id")),
    Bad("npz with bytes", npz(ids=np.array([b"a", b"\xff", b"c"])), ("must hold UTF-8 text",)),
    Bad("npz without labels", npz(labels=None), ("no array named label", "--label")),
    Bad("npz with fractions as ids", npz(ids=np.array([1.0, 2.0, 3.0])), ("text or whole number",)),
    Bad("npz with fractions as labels", npz(labels=np.array([0.0, 1.0, 2.0])), ("labels", "whole")),
    Bad("npz of unequal lengths", npz(labels=np.array([0, 1])), ("differ in length", "2 rows")),
    Bad("npz with NaN", npz(probabilities=np.full((3, 3), np.nan)), ("row 0", "NaN")),
    Bad("npz of a wrong shape", npz(probabilities=np.full((3, 2), 0.5)), ("3 classes", "[3, 2]")),
    Bad("npz with words", npz(probabilities=np.full((3, 3), UNSHOWN)), ("must hold numbers",)),
    Bad(
        "npz without records",
        npz(labels=np.zeros(0, int), ids=np.zeros(0, "U1"), probabilities=np.zeros((0, 3))),
        ("no records",),
    ),
    Bad("npz of one value", npz(ids=np.array(3)), ("one value, not one per record",)),
    Bad("not a parquet file", text(GOOD, "records.parquet"), ("not a Parquet file",)),
)
