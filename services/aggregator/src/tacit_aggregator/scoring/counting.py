"""The thread that counts: it takes what waits, has it scored, folds it, and tidies up."""

import threading
import time
from collections import deque
from concurrent.futures import FIRST_COMPLETED, wait
from concurrent.futures.process import BrokenProcessPool

import structlog

from tacit.protocol import Features
from tacit_aggregator.campaigns.documents import Documents
from tacit_aggregator.clock import Clock
from tacit_aggregator.database.engine import Database
from tacit_aggregator.http.metrics import Metrics
from tacit_aggregator.models.registered import RegisteredModel
from tacit_aggregator.models.service import find as find_model
from tacit_aggregator.scoring import queries
from tacit_aggregator.scoring.backlog import Amount, Backlog
from tacit_aggregator.scoring.batches import MOST_BYTES, MOST_UPLOADS, Batch, Group, gather
from tacit_aggregator.scoring.finishing import finish_due
from tacit_aggregator.scoring.folding import fold, nothing_but
from tacit_aggregator.scoring.pool import Pool, Scored
from tacit_aggregator.scoring.recovery import forget_lost
from tacit_aggregator.scoring.worker import Counts, ModelTrouble, Task

_POLL_SECONDS = 1.0
_BETWEEN_BATCHES = 0.1
"""Folding in few, large groups leaves the disk to ingest."""
_BETWEEN_ERASURES = 0.5
_LONGEST_WITHOUT_ERASURE = 10.0
_AFTER_TROUBLE = 5.0
_MOST_ATTEMPTS = 3

GONE = "The model of this campaign is not registered any more; register it again."

_log = structlog.get_logger("tacit_aggregator.scoring")


class Counting:
    """Counts each accepted upload exactly once, also after a crash: what waits is in the database.

    An upload is taken once by its number. After trouble (a model's file is gone, the disk is full)
    all that still waits is taken again; after a worker died, one upload at a time.
    """

    def __init__(
        self,
        database: Database,
        documents: Documents,
        backlog: Backlog,
        secret: bytes,
        *,
        workers: int,
        clock: Clock,
        metrics: Metrics,
    ) -> None:
        self._database = database
        self._documents = documents
        self._backlog = backlog
        self._secret = secret
        self._clock = clock
        self._metrics = metrics
        self._pool = Pool(workers)
        self._in_flight: dict[Scored, tuple[Batch, float]] = {}
        self._alone: deque[int] = deque()
        self._taken = 0
        self._took_at = self._erased_at = self._tidied_at = 0.0
        self._paused: dict[str, str] = {}
        self._again_at: float | None = None
        self._failing: str | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="counting", daemon=True)

    @property
    def trouble(self) -> str | None:
        """Why nothing, or not everything, is counted; None if all is well."""
        if not self._thread.is_alive() or self._stopping.is_set():
            return "The scoring is not running."
        return self._failing or next(iter(self._paused.values()), None)

    def start(self) -> None:
        """Begin with whatever waits."""
        forget_lost(self._database)
        with self._database.read() as connection:
            self._backlog.found(Amount(*queries.waiting(connection)))
        self._backlog.erased.set()  # the last run may have ended before it cut the log off
        self._thread.start()

    def stop(self) -> None:
        """Take nothing more; what is not folded stays where it is."""
        self._stopping.set()
        self._backlog.wake()
        if self._thread.is_alive():
            self._thread.join()
        self._pool.stop()
        if self._backlog.erased.is_set():
            self._database.erase_log()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._step()
                self._failing = None
            except Exception as error:
                _log.error("counting failed", error=type(error).__name__)
                self._failing = "Counting fails; the log says why."
                self._again_at = time.monotonic()
                self._stopping.wait(_POLL_SECONDS)

    def _step(self) -> None:
        if self._again_at is None or time.monotonic() < self._again_at:
            self._take()
        elif not self._in_flight:
            self._take_all_again()
        if self._in_flight:
            done, _ = wait(self._in_flight, timeout=_BETWEEN_BATCHES, return_when=FIRST_COMPLETED)
            for scored in done:
                self._finish(scored)
        now = time.monotonic()
        if not self._in_flight or now - self._tidied_at > _POLL_SECONDS:
            self._tidied_at = now
            finish_due(self._database, self._documents, self._secret, self._clock())
            self._erase(now)
        if not self._in_flight and not self._alone:
            self._backlog.wait(_POLL_SECONDS)
            self._stopping.wait(self._took_at + _BETWEEN_BATCHES - time.monotonic())

    def _take(self) -> None:
        if self._alone:
            if not self._in_flight:
                self._take_alone(self._alone.popleft())
            return
        while len(self._in_flight) <= self._pool.workers:
            since = time.monotonic() - self._took_at
            if self._in_flight and since < _BETWEEN_BATCHES and self._backlog.size < MOST_BYTES:
                return
            with self._database.read() as connection:
                batch = gather(queries.after(connection, self._taken, self._paused, MOST_UPLOADS))
            if batch is None:
                return
            self._taken = batch.last
            if any(row.attempts for group in batch.groups for row in group.rows):
                self._alone.extend(batch.numbers)
                return
            self._submit(batch)

    def _take_alone(self, number: int) -> None:
        with self._database.read() as connection:
            row = queries.one(connection, number)
        if row is None or row.campaign in self._paused:
            return
        batch = Batch((Group(row.campaign, row.site, row.evidence_dtype, [row]),), number)
        if row.attempts >= _MOST_ATTEMPTS:
            reason = f"Scoring ended the worker process {row.attempts} times."
            self._fold([(batch.groups[0], nothing_but(reason, 1))])
            return
        with self._database.transaction("count attempts") as connection:
            queries.try_again(connection, number)
        self._submit(batch)

    def _take_all_again(self) -> None:
        self._again_at = None
        self._taken = 0
        self._alone.clear()
        self._paused.clear()

    def _submit(self, batch: Batch) -> None:
        self._took_at = time.monotonic()
        ready = []
        tasks = []
        for group in batch.groups:
            task = self._task(group)
            if isinstance(task, ModelTrouble):
                self._pause(group.campaign, task.reason)
            else:
                ready.append(group)
                tasks.append(task)
        if tasks:
            batch = Batch(tuple(ready), batch.last)
            try:
                scored = self._pool.submit(tuple(tasks))
            except BrokenProcessPool:
                self._after_death([batch])
            else:
                self._in_flight[scored] = (batch, self._took_at)

    def _task(self, group: Group) -> Task | ModelTrouble:
        terms = self._documents.get(group.campaign)
        if terms is None:
            return ModelTrouble("A campaign is gone from the database.")
        model: RegisteredModel | None = None
        if isinstance(terms.campaign.evidence, Features):
            with self._database.read() as connection:
                model = find_model(connection, terms.campaign.evidence.model)
            if model is None:
                return ModelTrouble(GONE)
        rows = group.rows
        drawn = [row.uniforms for row in rows if row.uniforms is not None]
        return Task(
            payload=terms.payload,
            model=model,
            sizes=tuple(row.records for row in rows),
            labels=b"".join([row.labels for row in rows]),
            evidence=b"".join([row.evidence for row in rows]),
            evidence_dtype=group.evidence_dtype,
            uniforms=b"".join(drawn) if drawn else None,
        )

    def _finish(self, scored: Scored) -> None:
        batch, began = self._in_flight.pop(scored)
        try:
            results = scored.result()
        except BrokenProcessPool:
            self._after_death([batch, *(other for other, _ in self._in_flight.values())])
            return
        counted = []
        for group, result in zip(batch.groups, results, strict=True):
            if isinstance(result, ModelTrouble):
                self._pause(group.campaign, result.reason)
            else:
                counted.append((group, result))
        self._fold(counted)
        self._metrics.fold_seconds.observe(time.monotonic() - began)

    def _fold(self, counted: list[tuple[Group, Counts]]) -> None:
        if not counted:
            return
        with self._database.transaction("fold uploads") as connection:
            now = self._clock()
            folded = [fold(connection, group, counts, now) for group, counts in counted]
        for result in folded:
            if result is not None:
                self._backlog.counted(result.counted)
                if result.dropped.uploads:
                    _log.warning("uploads dropped", uploads=result.dropped.uploads)
                    self._backlog.dropped(result.dropped)

    def _after_death(self, batches: list[Batch]) -> None:
        _log.error("worker died", batches=len(batches))
        self._in_flight.clear()
        self._alone.extend(sorted(number for batch in batches for number in batch.numbers))
        self._pool.restart()

    def _pause(self, campaign: str, reason: str) -> None:
        _log.error("model trouble", reason=reason, campaign=campaign)
        self._paused[campaign] = reason
        self._again_at = time.monotonic() + _AFTER_TROUBLE

    def _erase(self, now: float) -> None:
        """Cut the log off when there is nothing to do, and now and then when there is."""
        pause = _LONGEST_WITHOUT_ERASURE if self._in_flight else _BETWEEN_ERASURES
        if self._backlog.erased.is_set() and now - self._erased_at > pause:
            self._erased_at = now
            self._backlog.erased.clear()
            if not self._database.erase_log():
                self._backlog.erased.set()
