"""Scores where the campaign's model fails: the largest one, and nobody else hears of it."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tacit.protocol import Model
from tacit.scores import APS, HPS, RandomizedAPS, Score
from tacit_client.coins import uniforms
from tacit_client.notice import notice
from tacit_client.rounds.records import ScoreRecords
from tacit_client.rounds.scoring import scores_of
from tests.support.score_world import dealt, joined_part, names, score_world

MODEL = Model(digest="0" * 64, dtype="float32", shape=(2,), outputs="logits")
N = 1000


def fails_on_large(features: NDArray[np.generic]) -> NDArray[np.float64]:
    """What a model that fails where a feature is above 1 gives, as `one_by_one` tells it."""
    values = np.asarray(features, dtype=np.float64)
    found = np.column_stack([values[:, 0], 1 - values[:, 0], np.zeros(len(values))])
    found[(values > 1).any(axis=1)] = np.nan
    return found


@pytest.mark.parametrize("score", [HPS(), APS(), RandomizedAPS()])
@pytest.mark.parametrize("failures", [0, 3, N])
def test_a_record_that_the_model_fails_on_has_the_largest_score_and_only_their_number_is_told(
    tmp_path: Path, score: Score, failures: int
) -> None:
    world = score_world(score=score, model=MODEL)
    generator = np.random.default_rng(9)
    features = generator.random((N, 2)).astype(np.float32)
    failed = np.sort(generator.permutation(N)[:failures])
    usual = fails_on_large(features)
    features[failed] = 5
    labels = generator.integers(0, 3, N)
    told: list[tuple[int, int, str]] = []
    with joined_part(world, tmp_path / "home") as part:
        key, hand = part.joined.usable_key(), dealt(part, N)
        found = scores_of(
            world.campaign,
            ScoreRecords.of(world.campaign, labels, names(N), features=features),
            np.arange(N),
            key=key,
            hashes=hand.records,
            load=lambda: fails_on_large,
            on_progress=lambda *what: told.append(what),
        )
        drawn = uniforms(key, hand.records) if score.randomized else None
    expected = score.of_labels(usual, labels, drawn)
    expected[failed] = score.range(3).high
    assert found.scores.tolist() == expected.tolist()
    assert found.failed == failures
    assert told[-1] == (N, N, "records scored")


def test_the_notice_says_that_the_time_a_model_takes_is_not_protected_and_what_to_do() -> None:
    url = "https://tacit.example"
    said = notice(score_world(model=MODEL).campaign, url)
    assert (
        "how long that takes can be seen, may depend on the records, and is not protected" in said
    )
    assert "give probabilities or scores instead" in said
    assert "how long that takes" not in notice(score_world().campaign, url)
