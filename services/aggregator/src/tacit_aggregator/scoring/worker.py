"""What runs in a worker process: from evidence to counts. It never sees the database."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing import connection, parent_process

import numpy as np
from numpy.typing import NDArray

from tacit.conformal import CoverageSketch
from tacit.errors import TacitError
from tacit.protocol import LabelCampaign, label_dtype
from tacit.protocol.columns import Dtype, array_of
from tacit_aggregator.models.loading import Predictor, load, rows_at_once, zeros
from tacit_aggregator.models.registered import ModelError, ModelMisbehaved, RegisteredModel

_LOADING_SECONDS = 60.0


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
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def score(tasks: tuple[Task, ...], seconds: float) -> tuple[Counts | ModelTrouble, ...]:
    """The counts of each task; a worker that needs longer for one step of them ends."""
    with _alarm(seconds):
        return tuple(_score(task) for task in tasks)


def rehearse(model: RegisteredModel | None, seconds: float) -> tuple[ModelTrouble, ...]:
    """Load the model and run it on zeros: what goes wrong here is no upload's fault."""
    with _alarm(seconds):
        try:
            if model is not None:
                predict = _predictor(model)
                _progress()
                predict(zeros(model, rows_at_once(model)))
        except ModelError as error:
            return (ModelTrouble(str(error)),)
    return ()


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    # The kernel's own alarm: a model that hangs in native code lets no thread of ours run.
    # The model comes first: loading it is given more time where little is allowed.
    signal.setitimer(signal.ITIMER_REAL, max(seconds, _LOADING_SECONDS), seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _progress() -> None:
    """Have the alarm wait anew: a large upload may take long, one batch of the model may not."""
    _, seconds = signal.getitimer(signal.ITIMER_REAL)
    if seconds:
        signal.setitimer(signal.ITIMER_REAL, seconds, seconds)


def _score(task: Task) -> Counts | ModelTrouble:
    campaign = _campaign(task.payload)
    try:
        if task.model is not None:
            _predictor(task.model)
    except ModelError as error:
        return ModelTrouble(str(error))
    try:
        return _counts(_sketch(campaign, task.model, _columns(task, campaign)), ())
    except (TacitError, ModelMisbehaved):
        return _one_by_one(task, campaign)


def _one_by_one(task: Task, campaign: LabelCampaign) -> Counts:
    """Count every upload that can be; one that cannot takes no other with it."""
    total = campaign.empty_sketch()
    failed = []
    columns = _columns(task, campaign)
    for place, rows in enumerate(_rows(task.sizes)):
        try:
            total += _sketch(campaign, task.model, columns.part(rows))
        except (TacitError, ModelMisbehaved) as error:
            failed.append((place, str(error)))
    return _counts(total, tuple(failed))


@dataclass(frozen=True, repr=False)
class _Columns:
    labels: NDArray[np.generic]
    evidence: NDArray[np.generic]
    uniforms: NDArray[np.generic] | None

    def part(self, rows: slice) -> "_Columns":
        uniforms = None if self.uniforms is None else self.uniforms[rows]
        return _Columns(self.labels[rows], self.evidence[rows], uniforms)


def _columns(task: Task, campaign: LabelCampaign) -> _Columns:
    n = sum(task.sizes)
    asked = campaign.evidence
    shape = (n, campaign.k) if asked.kind == "probabilities" else asked.column_shape(n)
    uniforms = task.uniforms
    return _Columns(
        array_of(task.labels, label_dtype(campaign.k), (n,)),
        array_of(task.evidence, task.evidence_dtype, shape),
        None if uniforms is None else array_of(uniforms, "float64", (n,)),
    )


def _sketch(
    campaign: LabelCampaign, model: RegisteredModel | None, columns: _Columns
) -> CoverageSketch:
    """The counts of these records; of what a model gives no more is in memory than one batch."""
    if model is None:
        _progress()
        return campaign.empty_sketch().add(columns.evidence, columns.labels, columns.uniforms)
    predict = _predictor(model)
    sketch = campaign.empty_sketch()
    step = rows_at_once(model)
    for start in range(0, len(columns.labels), step):
        _progress()
        part = columns.part(slice(start, start + step))
        sketch = sketch.add(predict(part.evidence), part.labels, part.uniforms)
    return sketch


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
def _campaign(payload: str) -> LabelCampaign:
    return LabelCampaign.from_bytes(payload.encode())


@lru_cache(maxsize=4)
def _predictor(model: RegisteredModel) -> Predictor:
    return load(model)


def _end_with(sentinel: int) -> None:
    connection.wait([sentinel])
    os._exit(1)
