"""The records that a site gives to a score campaign: checked whole before anything is dealt out."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.protocol import ScoreCampaign
from tacit_client.errors import BadRecords
from tacit_client.records import (
    Names,
    checked_features,
    checked_labels,
    checked_names,
    checked_probabilities,
)

_WHAT = (
    "Give labels with probabilities, or the records' scores; labels with features where the"
    " campaign names a model."
)


@dataclass(frozen=True, eq=False, repr=False)
class ScoreRecords:
    """One row per record: id, person, and its score or what it is computed from."""

    ids: list[str]
    persons: list[str]
    labels: NDArray[np.int64]
    """None where scores were given."""
    probabilities: NDArray[np.generic] | None = None
    features: NDArray[np.generic] | None = None
    scores: NDArray[np.float64] | None = None

    def __len__(self) -> int:
        return len(self.ids)

    @classmethod
    def of(
        cls,
        campaign: ScoreCampaign,
        labels: ArrayLike | None,
        ids: Names,
        persons: Names | None = None,
        *,
        probabilities: ArrayLike | None = None,
        features: ArrayLike | None = None,
        scores: ArrayLike | None = None,
    ) -> "ScoreRecords":
        """The records, if all of them fit the campaign; errors name a row, never its value."""
        if sum(given is not None for given in (probabilities, features, scores)) != 1:
            raise BadRecords(_WHAT)
        if scores is not None:
            checked = _scores(campaign, scores)
            names, people = checked_names(ids, persons, len(checked))
            if labels is not None and len(checked_labels(campaign, labels)) != len(checked):
                raise BadRecords("Give one label for each score, or none.")
            return cls(names, people, np.empty(0, dtype=np.int64), scores=checked)
        if labels is None:
            raise BadRecords(_WHAT)
        classes = checked_labels(campaign, labels)
        names, people = checked_names(ids, persons, len(classes))
        if probabilities is not None:
            table, _ = checked_probabilities(campaign.k, probabilities, len(classes))
            return cls(names, people, classes, probabilities=table)
        if campaign.model is None or features is None:
            raise BadRecords("This campaign names no model that could score features. " + _WHAT)
        found = checked_features(campaign.model, features, len(classes))
        return cls(names, people, classes, features=found)


def _scores(campaign: ScoreCampaign, given: ArrayLike) -> NDArray[np.float64]:
    """Scores that the campaign's score could have given."""
    try:
        array = np.asarray(given)
    except (TypeError, ValueError, RuntimeError):
        raise BadRecords("Scores must be one number per record.") from None
    if array.ndim != 1 or array.dtype.kind not in "fiu":
        raise BadRecords("Scores must be one number per record.")
    if not array.size:
        raise BadRecords("There are no records.")
    scores = array.astype(np.float64)
    low, high = campaign.conformity_score().range(campaign.k)
    fits = np.isfinite(scores) & (scores >= low) & (scores <= high)
    if not fits.all():
        row, wrong = int(np.argmin(fits)), int(np.count_nonzero(~fits))
        raise BadRecords(
            f"The score of row {row} is not a number from {low:g} to {high:g}, as those of"
            f" {campaign.conformity_score().name} are ({wrong} such rows in all)."
        )
    return scores
