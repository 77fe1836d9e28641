"""From what a site has to the scores of its records, which never leave it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.networks import Predictor
from tacit.protocol import ScoreCampaign
from tacit.scores import Score
from tacit_client.coins import uniforms
from tacit_client.ledger.records import Hashes
from tacit_client.progress import OnProgress
from tacit_client.rounds.records import ScoreRecords

_ROWS = 512
"""Records whose probabilities are in memory at once, where a model gives them."""


@dataclass(frozen=True, eq=False, repr=False)
class Scored:
    """Scores, one for each record of a site; never shown."""

    scores: NDArray[np.float64]
    """NaN for records that were not to be scored."""
    failed: int = 0
    """How many records the model failed on."""


def scores_of(
    campaign: ScoreCampaign,
    records: ScoreRecords,
    rows: NDArray[np.int64],
    *,
    key: bytes,
    hashes: Hashes,
    load: Callable[[], Predictor],
    on_progress: OnProgress,
) -> Scored:
    """The scores of the records at these rows, and NaN for the others, which nobody asks.

    Randomized scores use numbers of the campaign key, the same whenever a record is scored.
    `load` gives the campaign's model, and is called if there are features to be scored. Where it
    gives NaN, the model failed: such a record has the largest score, since only a set of all
    classes surely holds its label.
    """
    scores = np.full(len(records), np.nan)
    if records.scores is not None:
        scores[rows] = records.scores[rows]
        return Scored(scores)
    score = campaign.conformity_score()
    predict, evidence = _probabilities(records, load if rows.size else None)
    failed = 0
    for start in range(0, len(rows), _ROWS):
        some = rows[start : start + _ROWS]
        drawn = uniforms(key, hashes[some]) if score.randomized else None
        found = predict(evidence[some])
        failed += int(np.count_nonzero(np.isnan(found[:, 0])))
        scores[some] = _scores(score, found, records.labels[some], drawn)
        if records.features is not None:
            on_progress(start + len(some), len(rows), "records scored")
    return Scored(scores, failed)


def _scores(
    score: Score,
    probabilities: NDArray[Any],
    labels: NDArray[np.int64],
    drawn: NDArray[np.float64] | None,
) -> NDArray[np.float64]:
    """The scores of labels; the largest one where there are no probabilities."""
    scores = np.full(len(labels), score.range(probabilities.shape[1]).high)
    known = ~np.isnan(probabilities[:, 0])
    if known.any():
        uniform = None if drawn is None else drawn[known]
        scores[known] = score.of_labels(probabilities[known], labels[known], uniform)
    return scores


def _probabilities(
    records: ScoreRecords, load: Callable[[], Predictor] | None
) -> tuple[Callable[[NDArray[Any]], NDArray[Any]], NDArray[Any]]:
    """What gives probabilities, and what it is given."""
    if records.probabilities is not None:
        return lambda rows: rows, records.probabilities
    evidence = records.features
    if evidence is None or load is None:
        return lambda rows: rows, np.empty(0)
    return load(), evidence
