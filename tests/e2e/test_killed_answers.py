"""Sites killed with SIGKILL while they answer in rounds: the same command again goes on."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tacit.protocol import Model, Opened, ScoreCampaign
from tacit.scores import HPS, softmax
from tacit_client import Owner
from tests.e2e.kill_points import Story, killed_at
from tests.support import tiny_models
from tests.support.exactly_once import rows
from tests.support.killable import Kill
from tests.support.registering import registered
from tests.support.scene import KILLED, Service, finished
from tests.support.score_oracle import ScoreOracle
from tests.support.score_scene import (
    ScoreSite,
    answering_here,
    create_score_campaign,
    score_sites,
    some_scores,
)

EACH = 12
ROUNDS = 3
SITES = ("killed", "patient")


def check_exactly_once(
    running: Service, owner: Owner, campaign: Opened[ScoreCampaign], sites: list[ScoreSite]
) -> None:
    """Every record of every site has answered in its round, once, and counts."""
    oracle = ScoreOracle(running.database_url, campaign, sites)
    oracle.check(owner)
    for site in sites:
        oracle.check_arrived(site)
        assert sum(upload.records for upload in site.answers()) == len(site.scores)
    assert sum(taken.records for taken in oracle.counted) == sum(len(one.scores) for one in sites)


@killed_at(Story.ANSWERS)
def test_a_site_killed_while_it_answers_goes_on_with_the_same_answers(
    running: Service, owner: Owner, kill: Kill, tmp_path: Path
) -> None:
    campaign = create_score_campaign(owner, 2 * EACH, rounds=ROUNDS)
    sites = score_sites(
        running.aggregator, campaign, tmp_path, some_scores(SITES, EACH), per_upload=3
    )
    killed, patient = sites
    with answering_here([patient]):
        assert killed.answer(kill).returncode == KILLED
        before, asked = killed.drawn(), killed.questions()
        finished(killed.answer, most=1)
    assert before.items() <= killed.drawn().items()
    assert asked.items() <= killed.questions().items()
    check_exactly_once(running, owner, campaign, sites)
    ended = rows(killed.ledger, "SELECT state, campaign_key, token FROM campaigns")
    assert ended == [("ended", None, None)]


@pytest.fixture(scope="module")
def model(running: Service) -> Model:
    file = tiny_models.save_onnx(running.folder / "tiny.onnx")
    settings, shape = running.aggregator.settings, tiny_models.SHAPE
    digest = registered(settings, file, dtype="float32", shape=shape).digest
    return Model(digest=digest, dtype="float32", shape=shape, outputs="logits")


@dataclass
class ModelSite(ScoreSite):
    """A site that has features, and runs the campaign's model on them."""

    features: NDArray[np.uint8] = field(kw_only=True)
    labels: NDArray[np.int64] = field(kw_only=True)

    @property
    def records_file(self) -> Path:
        path = self.folder / "records.npz"
        np.savez(path, ids=np.array(self.ids), features=self.features, labels=self.labels)
        return path


@killed_at(Story.RUNS_A_MODEL)
def test_a_site_killed_while_it_fetches_the_model_fetches_it_again_and_answers(
    running: Service, owner: Owner, model: Model, kill: Kill, tmp_path: Path
) -> None:
    campaign = create_score_campaign(
        *(owner, EACH), rounds=ROUNDS, classes=("a", "b", "c"), model=model
    )
    generator = np.random.default_rng(4)
    features = generator.integers(0, 256, (EACH, *tiny_models.SHAPE), dtype=np.uint8)
    labels = generator.integers(0, tiny_models.CLASSES, EACH)
    site = ModelSite(
        tmp_path / "site",
        running.aggregator.invitation(campaign.digest, "site"),
        scores=HPS().of_labels(softmax(tiny_models.expected_logits(features)), labels),
        features=features.astype(np.float32),
        labels=labels,
    )
    site.join_here()
    assert site.answer(kill).returncode == KILLED
    assert site.drawn() == {}
    finished(site.answer, most=1)
    check_exactly_once(running, owner, campaign, [site])
