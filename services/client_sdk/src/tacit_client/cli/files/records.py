"""The records of a file, ready to contribute or to predict."""

from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from tacit.protocol import Campaign, Features, LabelCampaign, Model, ScoreCampaign
from tacit_client.cli.errors import BadFile
from tacit_client.cli.files.evidence import (
    feature_array,
    has_features,
    probability_table,
    usual_evidence,
)
from tacit_client.cli.files.identifiers import find, person_ids, record_ids
from tacit_client.cli.files.labels import class_indices
from tacit_client.cli.files.layout import EvidenceLayout, Layout
from tacit_client.cli.files.open_file import open_source
from tacit_client.cli.files.source import Array, Source


class Evidence(TypedDict, total=False):
    """What goes with the labels, as the campaign asks; or scores instead of both."""

    probabilities: Array
    features: Array
    scores: Array


@dataclass(frozen=True, eq=False, repr=False)
class Records:
    """A site's records for one campaign; never shown."""

    labels: NDArray[np.int64]
    """None of them where there are scores instead."""
    ids: Array
    persons: Array | None
    evidence: Evidence
    warnings: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def given_labels(self) -> NDArray[np.int64] | None:
        """The labels, if there are any."""
        return self.labels if len(self.labels) else None


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """Probabilities of new records, with their ids if the file has them."""

    probabilities: Array
    ids: Array | None


def read_records(path: Path, campaign: Campaign, layout: Layout) -> Records:
    """All that the campaign needs of a file, checked before anything is drawn."""
    source = open_source(path, layout.delimiter)
    ids = record_ids(source, layout.id)
    persons = person_ids(source, layout.person)
    if isinstance(campaign, ScoreCampaign) and (name := _score_name(source, layout)):
        nothing = np.empty(0, dtype=np.int64)
        return Records(nothing, ids, persons, {"scores": _scores(source, name)})
    labels, warning = class_indices(
        source.values(_label_name(source, layout.label)),
        campaign.classes,
        source.place,
        layout.labels_as,
    )
    evidence = _evidence(source, layout, campaign)
    return Records(labels, ids, persons, evidence, () if warning is None else (warning,))


def read_table(path: Path, classes: tuple[str, ...], layout: EvidenceLayout) -> Table:
    """Probabilities to make prediction sets from."""
    source = open_source(path, layout.delimiter)
    table = probability_table(source, layout, classes)
    has_ids = layout.id is not None or find(source, "id", "ids") is not None
    return Table(table, record_ids(source, layout.id) if has_ids else None)


def _evidence(source: Source, layout: Layout, campaign: Campaign) -> Evidence:
    asked = _features_asked(source, layout, campaign)
    if asked is not None:
        return {"features": feature_array(source, layout, asked)}
    return {"probabilities": probability_table(source, layout, campaign.classes)}


def _features_asked(source: Source, layout: Layout, campaign: Campaign) -> Features | Model | None:
    """The features that are taken from the file; None: probabilities are."""
    if isinstance(campaign, LabelCampaign):
        return campaign.evidence if isinstance(campaign.evidence, Features) else None
    if isinstance(campaign, ScoreCampaign) and has_features(source, layout):
        return campaign.model
    return None


def _score_name(source: Source, layout: Layout) -> str | None:
    """Where the scores are, if the file has them and nothing else was named.

    A column of that name may be something else, a risk score for instance: beside labels, beside
    what scores could be computed from, and where there are two of them, it must be named.
    """
    named = (layout.probabilities, layout.probabilities_prefix, layout.logits, layout.logits_prefix)
    if layout.scores is not None:
        return layout.scores
    if any((*named, layout.features, layout.features_prefix, layout.label)):
        return None
    found = find(source, "score", "scores")
    other = find(source, "label", "labels")
    if found is not None and other is not None:
        raise BadFile(
            f"{source.path.name} has both {found} and {other}. To answer with these scores say"
            f" --scores {found}; to have scores computed for the labels say --label {other}."
        )
    if found is not None and (others := usual_evidence(source)):
        raise BadFile(
            f"{source.path.name} has both {found} and {others[0]}. To answer with these scores say"
            f" --scores {found}; to have scores computed name the labels with --label."
        )
    if found is not None and {"score", "scores"} <= set(source.names):
        raise BadFile(f"{source.path.name} has both score and scores. Name one with --scores.")
    return found


def _scores(source: Source, name: str) -> Array:
    found = source.numbers([name])
    if found.ndim == 2 and found.shape[1] == 1:
        found = found[:, 0]
    if found.ndim != 1:
        raise BadFile(f"The {source.column} {name} of {source.path.name} must have one score each.")
    return found


def _label_name(source: Source, name: str | None) -> str:
    found = name or find(source, "label", "labels")
    if found is None:
        raise BadFile(
            f"{source.path.name} has no {source.column} named label; it has: {source.listing()}."
            " Name the one with the labels by --label."
        )
    return found
