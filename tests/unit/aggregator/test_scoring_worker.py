"""A worker's memory: of what a model gives, no more than one batch at a time."""

import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np

from tacit.protocol import Features
from tacit.scores import APS, RandomizedAPS, Score
from tacit_aggregator.models.loading import load
from tacit_aggregator.models.service import RegisteredModel, examine
from tacit_aggregator.scoring import worker
from tests.support.label_campaigns import campaign_document
from tests.support.tiny_models import SHAPE, save_safetensors

CLASSES = 2100


def wide(folder: Path) -> RegisteredModel:
    return examine(
        save_safetensors(folder / "model.safetensors"),
        name="wide",
        format="safetensors",
        module="tests.support.tiny_models:Wide",
        dtype="uint8",
        shape=SHAPE,
        outputs="logits",
    )


def task(model: RegisteredModel, n: int, score: Score) -> worker.Task:
    generator = np.random.default_rng(5)
    document = campaign_document(
        k=CLASSES,
        score=score,
        evidence=Features(model=model.digest, dtype="uint8", shape=SHAPE),
    )
    return worker.Task(
        payload=document.to_bytes().decode(),
        model=model,
        sizes=(n - n // 3, n // 3),
        labels=generator.integers(0, CLASSES, n).astype("<u2").tobytes(),
        evidence=generator.integers(0, 256, (n, *SHAPE)).astype(np.uint8).tobytes(),
        evidence_dtype="uint8",
        uniforms=generator.random(n).tobytes() if score.randomized else None,
    )


def test_a_small_upload_for_a_model_of_many_classes_takes_little_memory(tmp_path: Path) -> None:
    n = 20_000
    given = task(wide(tmp_path), n, APS())
    one = replace(given, sizes=(1,), labels=given.labels[:2], evidence=given.evidence[:8])
    worker.score((one,), 60)  # loads the model
    tracemalloc.start()
    try:
        (counts,) = worker.score((given,), 60)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert isinstance(counts, worker.Counts)
    assert np.frombuffer(counts.noisy, "<i8").sum() == n
    assert most < n * CLASSES * 8 / 4


def test_records_that_are_scored_batch_by_batch_are_counted_as_the_library_counts_them(
    tmp_path: Path,
) -> None:
    model = wide(tmp_path)
    given = task(model, 1300, RandomizedAPS())
    (counts,) = worker.score((given,), 60)
    assert isinstance(counts, worker.Counts)
    features = np.frombuffer(given.evidence, np.uint8).reshape(1300, *SHAPE)
    sketch = (
        worker._campaign(given.payload)
        .empty_sketch()
        .add(
            load(model)(features),
            np.frombuffer(given.labels, "<u2"),
            np.frombuffer(given.uniforms or b""),
        )
    )
    assert counts.noisy == sketch.noisy.tobytes()
    assert counts.every == sketch.every.tobytes()
