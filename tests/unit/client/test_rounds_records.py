"""Records of a score campaign: checked whole, scored here, and the scores stay."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.protocol import Model
from tacit.scores import APS, HPS, RandomizedAPS, Score
from tacit_client import Policy
from tacit_client.coins import uniforms
from tacit_client.errors import BadRecords, EnrolmentClosed, NeedsNetwork, PolicyRefused
from tacit_client.progress import silent
from tacit_client.rounds.records import ScoreRecords
from tacit_client.rounds.scoring import scores_of
from tests.support.client_world import given
from tests.support.score_world import (
    answer,
    dealt,
    joined_part,
    names,
    part_of,
    score_world,
    scores,
)

MODEL = Model(digest="0" * 64, dtype="uint8", shape=(2,), outputs="logits")
FEATURES = np.zeros((3, 2), dtype=np.uint8)


def no_model() -> Any:
    raise AssertionError


@pytest.mark.parametrize("score", [HPS(), APS(), RandomizedAPS()])
def test_scores_are_those_of_the_library_and_uniforms_those_of_the_record(
    tmp_path: Path, score: Score
) -> None:
    world, records = score_world(score=score), given(5000)
    with joined_part(world, tmp_path / "home") as part:
        key = part.joined.usable_key()
        hand = dealt(part, 5000)
        checked = ScoreRecords.of(world.campaign, **records.arguments())
        rows = np.arange(0, 5000, 2)
        found = scores_of(
            *(world.campaign, checked, rows),
            key=key,
            hashes=hand.records,
            load=no_model,
            on_progress=silent,
        )
        drawn = uniforms(key, hand.records) if score.randomized else None
    expected = score.of_labels(records.probabilities, records.labels, drawn)
    assert found.scores[rows].tolist() == expected[rows].tolist()
    assert np.isnan(found.scores[1::2]).all()
    assert found.failed == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({}, "Give labels with probabilities"),
        ({"scores": [0.1, 0.2, 0.3], "probabilities": np.eye(3)}, "Give labels with"),
        ({"probabilities": np.eye(3)}, "Give labels with"),
        ({"scores": [0.1, 0.2, 1.5]}, r"row 2 is not a number from 0 to 1.*\(1 such rows"),
        ({"scores": [0.1, float("nan"), -1.0]}, r"row 1 is not .*\(2 such rows"),
        ({"scores": [[0.1, 0.2, 0.3]]}, "one number per record"),
        ({"scores": ["a", "b", "c"]}, "one number per record"),
        ({"scores": []}, "There are no records"),
        ({"scores": [0.1, 0.2]}, "one name for each of the 2 records"),
        ({"scores": [0.1, 0.2, 0.3], "labels": [0]}, "one label for each score"),
        ({"labels": [0, 1, 2], "features": FEATURES}, "names no model"),
        ({"labels": [0, 1], "probabilities": np.eye(3)}, "one name for each of the 2"),
    ],
)
def test_records_that_do_not_fit_are_refused_and_no_value_is_shown(
    arguments: dict[str, Any], says: str
) -> None:
    labels = arguments.pop("labels", None)
    with pytest.raises(BadRecords, match=says) as caught:
        ScoreRecords.of(score_world().campaign, labels, names(3), **arguments)
    assert "1.5" not in str(caught.value)


def test_features_are_taken_where_the_campaign_names_a_model() -> None:
    campaign = score_world(model=MODEL).campaign
    records = ScoreRecords.of(campaign, [0, 1, 2], names(3), features=FEATURES)
    assert records.features is not None
    with pytest.raises(BadRecords, match="shape"):
        ScoreRecords.of(campaign, [0, 1, 2], names(3), features=FEATURES[:, :1])


def test_a_preview_says_how_many_records_answer_in_which_round_and_draws_nothing(
    tmp_path: Path,
) -> None:
    world = score_world(shares=(1, 1, 2), epsilon=0.5)
    with world.join(tmp_path / "home") as site:
        sequence = site.ledger.meta.sequence
        shown = site.preview(ids=names(100), scores=scores(100))
        assert shown.rounds == (25, 25, 50)
        assert (shown.to_draw, shown.uploads, shown.enrolled) == (100, 3, 100)
        (bits,) = shown.columns
        assert (bits.name, bits.dtype, bits.as_it_is) == ("bits", "uint8", False)
        assert shown.epsilon == world.campaign.epsilon
        assert shown.first_upload is not None
        assert shown.first_upload["bits"]["data"] == "(not drawn yet)"
        assert site.ledger.meta.sequence == sequence
        assert site.ledger.read("SELECT * FROM dealt") == []
        part = part_of(site, world.campaign)
        hand = dealt(part, 100)
        for number in range(3):
            answer(part, hand, world.asked(number))
        sizes = [len(site.outbox.body(entry.upload)) for entry in site.outbox.entries()]
        assert sum(sizes) == shown.bytes
        assert site.preview(ids=names(100), scores=scores(100)).already == 100
        with pytest.raises(EnrolmentClosed):
            site.preview(ids=names(101), scores=scores(101))


def test_rounds_cannot_be_exported(tmp_path: Path) -> None:
    with (
        score_world().join(tmp_path / "home") as site,
        pytest.raises(NeedsNetwork, match="has a network"),
    ):
        site.export(tmp_path / "bundle", **given(3).arguments())


def test_the_notice_says_that_one_bit_leaves_and_what_protects_it(tmp_path: Path) -> None:
    world = score_world(epsilon=1.0)
    with world.join(tmp_path / "home") as site:
        assert "one randomized bit leaves this site" in site.notice
        assert "With probability 0.269 the bit is flipped" in site.notice
        assert "protects the whole record" in site.notice


def test_score_campaigns_are_allowed_by_default_and_can_be_forbidden() -> None:
    campaign = score_world().campaign
    Policy().check(campaign)
    with pytest.raises(PolicyRefused, match='add "scores" to methods'):
        Policy(methods=frozenset({"labels"})).check(campaign)
