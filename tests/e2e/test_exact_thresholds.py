"""The service's threshold is exactly the library's, on the very reports that were sent."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.protocol import CampaignState, Features, LabelCampaign, Opened, Role
from tacit.scores import APS, HPS, RAPS, SAPS, Margin, RandomizedAPS, Score
from tacit_aggregator.models.loading import load
from tacit_aggregator.models.service import RegisteredModel
from tacit_client import Contributor, Ledger, Owner, Policy
from tacit_client.errors import PolicyRefused
from tests.support.aggregator import AggregatorProcess, as_process, migrated
from tests.support.liar import tacit, told
from tests.support.parallel_sites import SiteRecords, contribute
from tests.support.registering import registered
from tests.support.scene import ROOT
from tests.support.tiny_models import CLASSES, SHAPE, save_safetensors

SITES = 3
RECORDS = 400


@dataclass(frozen=True)
class World:
    aggregator: AggregatorProcess
    owner: Owner
    model: RegisteredModel

    def create(self, **terms: Any) -> Opened[LabelCampaign]:
        chosen: dict[str, Any] = {
            "title": "exact",
            "classes": [f"c{number}" for number in range(CLASSES)],
            "epsilon": 2.0,
            "alpha": 0.2,
            "delta": 0.2,
            "planned_n": SITES * RECORDS,
            "closes": timedelta(hours=1),
        }
        return self.owner.create(**(chosen | terms))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("exact")
    settings = migrated(folder)
    model = registered(
        settings,
        save_safetensors(folder / "tiny.safetensors"),
        dtype="float32",
        shape=SHAPE,
        module="tests.support.tiny_models:Linear",
    )
    with as_process(settings, PYTHONPATH=str(ROOT)) as aggregator:
        owner = Owner(aggregator.url, aggregator.token(Role.OWNER, "owner"), aggregator.key)
        yield World(aggregator, owner, model)


def table_of(seed: int, dtype: type[np.floating[Any]]) -> SiteRecords:
    """Probabilities with ties and certainties among them, and labels that follow them."""
    generator = np.random.default_rng(seed)
    table = generator.dirichlet((0.4,) * CLASSES, RECORDS)
    table[:20] = 1 / CLASSES
    table[20:40] = np.eye(CLASSES)[generator.integers(0, CLASSES, 20)]
    labels = np.array([generator.choice(CLASSES, p=row) for row in table])
    return SiteRecords(labels, table.astype(dtype))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "score",
    [HPS(), APS(), RandomizedAPS(), RAPS(a=0.1, b=1), SAPS(weight=0.2), Margin()],
    ids=lambda score: type(score).__name__,
)
def test_the_threshold_of_probabilities_is_the_librarys_to_the_last_bit(
    world: World, tmp_path: Path, score: Score, dtype: type[np.floating[Any]]
) -> None:
    campaign = world.create(score=score)
    sites = [table_of(seed, dtype) for seed in range(SITES)]
    reported = contribute(world.aggregator, campaign, sites, tmp_path, records_per_upload=97)
    terms = campaign.document
    sketch = terms.empty_sketch()
    for uploads in reported:
        assert len(uploads) == -(-RECORDS // 97)
        for reports in uploads:
            assert reports.evidence.dtype == dtype
            sketch = sketch.add(reports.evidence, reports.labels, reports.uniforms)

    starred = world.owner.threshold(campaign.digest, "starred", wait=60)
    nominal = world.owner.threshold(campaign.digest)
    assert starred.outcome == sketch.calibrate(terms.channel, terms.alpha, terms.delta)
    assert nominal.outcome == sketch.calibrate(terms.channel, terms.alpha)
    assert (nominal.document.sites, nominal.outcome.n) == (SITES, SITES * RECORDS)


def test_reports_that_are_off_by_one_record_have_another_sketch(
    world: World, tmp_path: Path
) -> None:
    """Or the equality above would say nothing: true labels, and one record less, are told apart."""
    campaign = world.create(planned_n=10_000)
    sites = [table_of(seed, np.float64) for seed in range(SITES)]
    reported = contribute(world.aggregator, campaign, sites, tmp_path)
    world.owner.close(campaign.digest)
    *_, last = world.owner.follow(campaign.digest, every=0.1, timeout=60)
    assert last.state is CampaignState.CLOSED
    found = world.owner.threshold(campaign.digest).outcome
    terms = campaign.document
    truth = terms.empty_sketch()
    for given, (reports,) in zip(sites, reported, strict=True):
        assert np.array_equal(given.evidence, reports.evidence)
        changed = np.mean(given.labels != reports.labels)
        assert 0.05 < changed < 0.4
        truth = truth.add(given.evidence, given.labels)
    assert truth.calibrate(terms.channel, terms.alpha) != found
    less = terms.empty_sketch()
    for (reports,) in reported:
        less = less.add(reports.evidence[1:], reports.labels[1:])
    assert less.calibrate(terms.channel, terms.alpha) != found


def test_the_threshold_of_features_is_that_of_the_models_probabilities(
    world: World, tmp_path: Path
) -> None:
    evidence = Features(model=world.model.digest, dtype="float32", shape=SHAPE)
    campaign = world.create(evidence=evidence, score=RandomizedAPS())
    generator = np.random.default_rng(9)
    sites = [
        SiteRecords(
            generator.integers(0, CLASSES, RECORDS),
            generator.normal(0, 500, (RECORDS, *SHAPE)).astype(np.float32),
        )
        for _ in range(SITES)
    ]
    reported = contribute(world.aggregator, campaign, sites, tmp_path)
    terms = campaign.document
    predict = load(world.model)
    sketch = terms.empty_sketch()
    for (reports,) in reported:  # one upload, and so one batch, for each site
        sketch = sketch.add(predict(reports.evidence), reports.labels, reports.uniforms)
    starred = world.owner.threshold(campaign.digest, "starred", wait=60)
    assert starred.outcome == sketch.calibrate(terms.channel, terms.alpha, terms.delta)


def test_a_policy_that_forbids_features_refuses_such_a_campaign_and_nothing_is_drawn(
    world: World, tmp_path: Path
) -> None:
    evidence = Features(model=world.model.digest, dtype="float32", shape=SHAPE)
    campaign = world.create(evidence=evidence)
    invitation = world.aggregator.invitation(campaign.digest, "careful")
    policy = Policy(may_leave={"probabilities"})
    with pytest.raises(PolicyRefused, match="features"):
        Contributor.join(invitation, tmp_path / "sdk", policy)
    ended = tacit(
        tmp_path / "cli",
        *("join", invitation.to_text(), "--may-leave", "probabilities", "--json"),
    )
    assert (ended.returncode, told(ended)["error"]) == (3, "PolicyRefused")
    for home in (tmp_path / "sdk", tmp_path / "cli"):
        with Ledger.open(home) as ledger:
            assert ledger.read("SELECT count(*) FROM campaigns") == [(0,)]
            assert ledger.meta.sequence == 0
