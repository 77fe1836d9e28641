"""Features: sent as they are, scored at the aggregator, the same threshold as the library's."""

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto

from tacit.conformal import Calibration
from tacit.protocol import Features, Reports, Upload, sha256_hex
from tacit.scores import softmax
from tacit_client import Owner
from tacit_client.errors import UnknownModel
from tacit_client.testing import RunningAggregator
from tests.integration.client.scenes import SMALL_UPLOADS, closed, create, join
from tests.support.tiny_models import SHAPE, expected_logits, save_onnx


def test_features_are_scored_by_the_campaigns_model(
    aggregator: RunningAggregator, owner: Owner, tmp_path: Path
) -> None:
    model = save_onnx(tmp_path / "model.onnx", dtype=TensorProto.UINT8)
    options = ("--name", "tiny", "--dtype", "uint8", "--shape", ",".join(map(str, SHAPE)))
    aggregator.command("models", "add", str(model), *options)
    evidence = Features(model=sha256_hex(model.read_bytes()), dtype="uint8", shape=SHAPE)
    campaign = create(owner, evidence=evidence, epsilon=3.0)
    generator = np.random.default_rng(5)
    features = generator.integers(0, 256, (35, *SHAPE), dtype=np.uint8)
    labels = generator.integers(0, 3, 35)
    with join(aggregator, campaign, tmp_path / "home", network=SMALL_UPLOADS) as site:
        assert "features" in site.notice
        done = site.contribute(labels, range(35), features=features)
        assert (done.accepted, done.uploads) == (35, 4)
        bodies = [site.outbox.body(entry.upload) for entry in site.outbox.entries()]
    reports = [Reports.of(Upload.model_validate_json(b), campaign.document) for b in bodies]
    assert np.array_equal(np.concatenate([r.evidence for r in reports]), features)
    owner.close(campaign.digest)
    closed(owner, campaign.digest)
    sketch = campaign.document.empty_sketch().add(
        softmax(expected_logits(features)), np.concatenate([r.labels for r in reports])
    )
    found = owner.threshold(campaign.digest, wait=30).calibration
    expected = sketch.calibrate(campaign.document.channel, campaign.document.alpha)
    assert isinstance(expected, Calibration)
    # The runtime may round a logit otherwise than numpy: a score can fall into the next cell.
    assert found.threshold == pytest.approx(expected.threshold, abs=0.01)
    assert found.n == 35


def test_a_model_that_is_not_registered_is_refused(owner: Owner) -> None:
    with pytest.raises(UnknownModel):
        create(owner, evidence=Features(model="0" * 64, dtype="uint8", shape=SHAPE))
