"""Which columns of a file hold what, as the options of a command say it."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import typer

_PANEL = "Columns (CSV, Parquet) or arrays (NPZ)"


class LabelsAs(StrEnum):
    """How labels are written."""

    AUTO = "auto"
    NAMES = "names"
    INDICES = "indices"


def _column(name: str, text: str) -> object:
    return typer.Option(name, help=text, rich_help_panel=_PANEL, show_default=False)


@dataclass(frozen=True)
class EvidenceLayout:
    """Where probabilities or logits are."""

    probabilities: Annotated[
        str | None,
        _column("--probabilities", "Columns in the order of the classes (a,b,c), or one array."),
    ] = None
    probabilities_prefix: Annotated[
        str | None,
        _column("--probabilities-prefix", "Columns named prefix + class or number. Default: p_"),
    ] = None
    logits: Annotated[
        str | None, _column("--logits", "Like --probabilities, before the softmax.")
    ] = None
    logits_prefix: Annotated[
        str | None, _column("--logits-prefix", "Like --probabilities-prefix. Default: logit_")
    ] = None
    id: Annotated[
        str | None, _column("--id", "The records' ids, never row numbers. Default: id or ids")
    ] = None
    delimiter: Annotated[
        str | None, _column("--delimiter", "What separates the fields of a CSV file.")
    ] = None


@dataclass(frozen=True)
class Layout(EvidenceLayout):
    """Where everything is that a contribution needs."""

    label: Annotated[str | None, _column("--label", "The labels. Default: label or labels")] = None
    person: Annotated[
        str | None,
        _column("--person", "Whose record it is. Default: person or persons, if there"),
    ] = None
    features: Annotated[
        str | None, _column("--features", "Columns in the model's order (a,b,c), or one array.")
    ] = None
    features_prefix: Annotated[
        str | None, _column("--features-prefix", "Columns named prefix + number. Default: x_")
    ] = None
    scores: Annotated[
        str | None,
        _column("--scores", "Of score campaigns: the scores. Default: score or scores, if there"),
    ] = None
    labels_as: Annotated[
        LabelsAs,
        typer.Option("--labels-as", help="Whether labels are names or numbers from 0."),
    ] = LabelsAs.AUTO


def names_in(option: str) -> list[str]:
    """The names that an option lists, separated by commas."""
    return [name.strip() for name in option.split(",") if name.strip()]
