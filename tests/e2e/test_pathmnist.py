"""A campaign on raw images of colon tissue, through a network that the operator registered."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tacit.protocol import Features, Role
from tacit.scores import HPS, softmax
from tacit_aggregator.models.loading import load
from tacit_aggregator.models.service import RegisteredModel
from tacit_client import Owner
from tests.support.aggregator import AggregatorProcess, as_process, migrated
from tests.support.parallel_sites import SiteRecords, contribute
from tests.support.pathmnist import CLASSES, SHAPE
from tests.support.registering import registered
from tests.support.scene import ROOT

SITES = 4
PER_SITE = 300
ALPHA = 0.1


@dataclass(frozen=True, eq=False)
class Images:
    images: NDArray[np.uint8]
    labels: NDArray[np.int64]
    logits: NDArray[np.float32]


@pytest.fixture(scope="module")
def data() -> Path:
    folder = os.environ.get("TACIT_DATA")
    if not folder:
        pytest.skip("TACIT_DATA is not set")
    for name in ("pathmnist_raw.npz", "pathmnist_cnn.safetensors"):
        if not (Path(folder) / name).exists():
            pytest.skip(f"TACIT_DATA has no {name}")
    return Path(folder)


@pytest.fixture(scope="module")
def images(data: Path) -> Images:
    with np.load(data / "pathmnist_raw.npz", allow_pickle=False) as file:
        return Images(file["images"], file["labels"].astype(np.int64), file["logits_f32"])


@dataclass(frozen=True)
class Service:
    aggregator: AggregatorProcess
    owner: Owner
    model: RegisteredModel


@pytest.fixture(scope="module")
def service(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    settings = migrated(tmp_path_factory.mktemp("pathmnist"))
    model = registered(
        settings,
        data / "pathmnist_cnn.safetensors",
        dtype="uint8",
        shape=SHAPE,
        module="tests.support.pathmnist:Network",
    )
    with as_process(settings, PYTHONPATH=str(ROOT)) as aggregator:
        owner = Owner(aggregator.url, aggregator.token(Role.OWNER, "owner"), aggregator.key)
        yield Service(aggregator, owner, model)


def test_the_registered_network_gives_the_logits_that_came_with_it(
    service: Service, images: Images
) -> None:
    assert service.model.classes == len(CLASSES)
    found = load(service.model)(images.images)
    assert np.allclose(found, softmax(images.logits), rtol=0, atol=1e-3)
    # Up to a constant a logit is the logarithm of its probability.
    logarithms = np.log(np.maximum(found, 1e-300))
    wanted = images.logits - images.logits.max(1, keepdims=True)
    assert np.allclose(logarithms - logarithms.max(1, keepdims=True), wanted, rtol=0, atol=1e-3)


def test_a_campaign_on_raw_images_gives_the_librarys_threshold_and_its_coverage(
    service: Service, images: Images, tmp_path: Path
) -> None:
    """The coverage is off by more than the tolerance with probability 10⁻⁶ at most.

    F̂ = (F̃ - β·Ḡ)/(1-β), where Ḡ is the mean of k empirical distributions: by Massart's inequality
    all k + 1 of them, of n reports each, are near their expectation at every threshold at once but
    with probability 5·10⁻⁷. So is, by Hoeffding's, the coverage of the images held out.
    """
    order = np.random.default_rng(4).permutation(len(images.labels))
    calibration = order[: SITES * PER_SITE]
    held_out = order[SITES * PER_SITE :]
    campaign = service.owner.create(
        title="Colon tissue",
        classes=CLASSES,
        epsilon=4.0,
        alpha=ALPHA,
        delta=0.2,
        planned_n=SITES * PER_SITE,
        closes=timedelta(hours=1),
        evidence=Features(model=service.model.digest, dtype="uint8", shape=SHAPE),
        score=HPS(),
    )
    sites = [
        SiteRecords(images.labels[rows], images.images[rows])
        for rows in np.split(calibration, SITES)
    ]
    reported = contribute(service.aggregator, campaign, sites, tmp_path)
    terms = campaign.document
    predict = load(service.model)
    sketch = terms.empty_sketch()
    for given, (reports,) in zip(sites, reported, strict=True):
        assert np.array_equal(reports.evidence, given.evidence)
        sketch = sketch.add(predict(reports.evidence), reports.labels)

    starred = service.owner.threshold(campaign.digest, "starred", wait=120)
    nominal = service.owner.threshold(campaign.digest)
    assert starred.outcome == sketch.calibrate(terms.channel, ALPHA, terms.delta)
    assert nominal.outcome == sketch.calibrate(terms.channel, ALPHA)

    sets = nominal.sets(predict(images.images[held_out]))
    tolerance = _tolerance(float(terms.channel.beta), len(held_out))
    assert abs(_coverage(sets, images.labels[held_out]) - (1 - ALPHA)) < tolerance
    of_others = _coverage(sets, np.roll(images.labels[held_out], 1))
    assert abs(of_others - (1 - ALPHA)) > tolerance, "sets of other images would do as well"


def _coverage(sets: NDArray[np.bool_], labels: NDArray[np.int64]) -> float:
    return float(sets[np.arange(len(labels)), labels].mean())


def _tolerance(beta: float, held_out: int) -> float:
    n, alarm = SITES * PER_SITE, 5e-7
    each = np.sqrt(np.log(2 * (len(CLASSES) + 1) / alarm) / (2 * n))
    return float((1 + beta) / (1 - beta) * each + np.sqrt(np.log(2 / alarm) / (2 * held_out)))
