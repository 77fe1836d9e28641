"""The records of a file, ready to contribute or to predict."""

from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from tacit.protocol import Campaign, Features
from tacit_client.cli.errors import BadFile
from tacit_client.cli.files.evidence import feature_array, probability_table
from tacit_client.cli.files.identifiers import find, person_ids, record_ids
from tacit_client.cli.files.labels import class_indices
from tacit_client.cli.files.layout import EvidenceLayout, Layout
from tacit_client.cli.files.open_file import open_source
from tacit_client.cli.files.source import Array, Source


class Evidence(TypedDict, total=False):
    """What goes with the labels: one of the two, as the campaign asks."""

    probabilities: Array
    features: Array


@dataclass(frozen=True, eq=False, repr=False)
class Records:
    """A site's records for one campaign; never shown."""

    labels: NDArray[np.int64]
    ids: Array
    persons: Array | None
    evidence: Evidence
    warnings: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """Probabilities of new records, with their ids if the file has them."""

    probabilities: Array
    ids: Array | None


def read_records(path: Path, campaign: Campaign, layout: Layout) -> Records:
    """All that the campaign needs of a file, checked before anything is drawn."""
    source = open_source(path, layout.delimiter)
    ids = record_ids(source, layout.id)
    labels, warning = class_indices(
        source.values(_label_name(source, layout.label)),
        campaign.classes,
        source.place,
        layout.labels_as,
    )
    persons = person_ids(source, layout.person)
    return Records(
        labels,
        ids,
        persons,
        _evidence(source, layout, campaign),
        () if warning is None else (warning,),
    )


def read_table(path: Path, classes: tuple[str, ...], layout: EvidenceLayout) -> Table:
    """Probabilities to make prediction sets from."""
    source = open_source(path, layout.delimiter)
    table = probability_table(source, layout, classes)
    has_ids = layout.id is not None or find(source, "id", "ids") is not None
    return Table(table, record_ids(source, layout.id) if has_ids else None)


def _evidence(source: Source, layout: Layout, campaign: Campaign) -> Evidence:
    asked = campaign.evidence
    if isinstance(asked, Features):
        return {"features": feature_array(source, layout, asked)}
    return {"probabilities": probability_table(source, layout, campaign.classes)}


def _label_name(source: Source, name: str | None) -> str:
    found = name or find(source, "label", "labels")
    if found is None:
        raise BadFile(
            f"{source.path.name} has no {source.column} named label; it has: {source.listing()}."
            " Name the one with the labels by --label."
        )
    return found
