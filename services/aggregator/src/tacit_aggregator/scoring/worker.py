"""What runs in a worker process: from evidence to counts. It never sees the database."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing import connection, parent_process
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.conformal import CoverageSketch
from tacit.errors import TacitError
from tacit.protocol import Campaign, label_dtype
from tacit.protocol.columns import Dtype, array_of
from tacit_aggregator.models.loading import load
from tacit_aggregator.models.registered import ModelError, ModelMisbehaved, RegisteredModel


@dataclass(frozen=True, repr=False)
class Task:
    """Reports of one site for one campaign: uploads one after another, as columns of bytes."""

    payload: str
    model: RegisteredModel | None
    sizes: tuple[int, ...]
    """Records of each upload."""
    labels: bytes
    evidence: bytes
    evidence_dtype: Dtype
    uniforms: bytes | None


@dataclass(frozen=True, repr=False)
class Counts:
    """What a task adds to the site's sketch, and the uploads that could not be scored."""

    noisy: bytes
    every: bytes
    failed: tuple[tuple[int, str], ...]
    """Their places in the task, and why."""


@dataclass(frozen=True)
class ModelTrouble:
    """The model cannot be used: not the uploads' fault, and the operator's to put right."""

    reason: str


def start() -> None:
    """Set a new worker up: it ends with its parent, which alone decides about signals."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def ready() -> bool:
    """Nothing: the first task makes a worker import what it needs."""
    return True


def score(tasks: tuple[Task, ...]) -> tuple[Counts | ModelTrouble, ...]:
    """The counts of each task."""
    return tuple(_score(task) for task in tasks)


def _score(task: Task) -> Counts | ModelTrouble:
    campaign = _campaign(task.payload)
    try:
        predict = None if task.model is None else _predictor(task.model)
    except ModelError as error:
        return ModelTrouble(str(error))
    try:
        return _counts(_sketch(campaign, predict, _columns(task, campaign)), ())
    except (TacitError, ModelMisbehaved):
        return _one_by_one(task, campaign, predict)


def _one_by_one(task: Task, campaign: Campaign, predict: "_Predict | None") -> Counts:
    """Count every upload that can be; one that cannot takes no other with it."""
    total = campaign.empty_sketch()
    failed = []
    columns = _columns(task, campaign)
    for place, rows in enumerate(_rows(task.sizes)):
        try:
            total += _sketch(campaign, predict, columns.part(rows))
        except (TacitError, ModelMisbehaved) as error:
            failed.append((place, str(error)))
    return _counts(total, tuple(failed))


_Predict = Callable[[NDArray[Any]], NDArray[np.float64]]


@dataclass(frozen=True, repr=False)
class _Columns:
    labels: NDArray[np.generic]
    evidence: NDArray[np.generic]
    uniforms: NDArray[np.generic] | None

    def part(self, rows: slice) -> "_Columns":
        uniforms = None if self.uniforms is None else self.uniforms[rows]
        return _Columns(self.labels[rows], self.evidence[rows], uniforms)


def _columns(task: Task, campaign: Campaign) -> _Columns:
    n = sum(task.sizes)
    asked = campaign.evidence
    shape = (n, campaign.k) if asked.kind == "probabilities" else asked.column_shape(n)
    uniforms = task.uniforms
    return _Columns(
        array_of(task.labels, label_dtype(campaign.k), (n,)),
        array_of(task.evidence, task.evidence_dtype, shape),
        None if uniforms is None else array_of(uniforms, "float64", (n,)),
    )


def _sketch(campaign: Campaign, predict: _Predict | None, columns: _Columns) -> CoverageSketch:
    evidence = columns.evidence
    probabilities = evidence if predict is None else predict(evidence)
    return campaign.empty_sketch().add(probabilities, columns.labels, columns.uniforms)


def _rows(sizes: tuple[int, ...]) -> Iterator[slice]:
    start = 0
    for size in sizes:
        yield slice(start, start + size)
        start += size


def _counts(sketch: CoverageSketch, failed: tuple[tuple[int, str], ...]) -> Counts:
    return Counts(
        sketch.noisy.astype("<i8").tobytes(), sketch.every.astype("<i8").tobytes(), failed
    )


@lru_cache(maxsize=64)
def _campaign(payload: str) -> Campaign:
    return Campaign.from_bytes(payload.encode())


@lru_cache(maxsize=4)
def _predictor(model: RegisteredModel) -> _Predict:
    return load(model)


def _end_with(sentinel: int) -> None:
    connection.wait([sentinel])
    os._exit(1)
