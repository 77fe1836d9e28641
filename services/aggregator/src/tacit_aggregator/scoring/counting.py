"""The thread that counts: it takes what waits, has it scored, folds it, and tidies up."""

import threading
import time
from collections import deque
from concurrent.futures import FIRST_COMPLETED, wait
from dataclasses import dataclass

import structlog

from tacit_aggregator.campaigns.documents import Documents
from tacit_aggregator.database.duty import Duty
from tacit_aggregator.database.engine import Database
from tacit_aggregator.database.lock import Advisory
from tacit_aggregator.metrics import Metrics
from tacit_aggregator.scoring import queries
from tacit_aggregator.scoring.backlog import Amount, Backlog
from tacit_aggregator.scoring.batches import MOST_BYTES, Batch, Group, gather
from tacit_aggregator.scoring.finishing import finish_due
from tacit_aggregator.scoring.folding import fold, lock, nothing_but
from tacit_aggregator.scoring.pool import Pool, Scored
from tacit_aggregator.scoring.recovery import forget_lost
from tacit_aggregator.scoring.tasks import task_of
from tacit_aggregator.scoring.worker import Counts, ModelTrouble

_POLL_SECONDS = 1.0
_BETWEEN_BATCHES = 0.1
"""Folding in few, large groups leaves the disk to ingest."""
_BETWEEN_ERASURES = 0.5
_LONGEST_WITHOUT_ERASURE = 10.0
_AFTER_TROUBLE = 5.0
_AFTER_DEADLY_MODEL = 300.0
"""Long: while such a model is tried, nothing else is counted."""
_MOST_ATTEMPTS = 3

_DEADLY = "A worker process dies or hangs before it has an upload: the model or the memory fails."

_log = structlog.get_logger("tacit_aggregator.scoring")


@dataclass(frozen=True, repr=False)
class _Flight:
    """What a worker is at."""

    batch: Batch
    began: float
    alone: bool = False
    """One upload and nothing else, because something failed before."""
    rehearsal: bool = False
    """Its model is run without it first, so that no upload is blamed for what a model does."""


class Counting:
    """Counts each accepted upload exactly once, also after a crash: what waits is in the database.

    An upload is taken once by its number. After trouble (a model's file is gone, the disk is full)
    all that still waits is taken again; after a worker died, took too long or failed, one upload
    at a time. Only what fails alone, again and again, with a model that works, is dropped.

    Of several servers on one database, the one on duty counts. Folding sees to it that nothing is
    counted twice even if two believe that they are.
    """

    def __init__(
        self,
        database: Database,
        documents: Documents,
        backlog: Backlog,
        secret: bytes,
        *,
        workers: int,
        seconds: float,
        metrics: Metrics,
    ) -> None:
        self._database = database
        self._documents = documents
        self._backlog = backlog
        self._secret = secret
        self._metrics = metrics
        self._duty = Duty(database, Advisory.SCORING)
        self._pool = Pool(workers, seconds)
        self._in_flight: dict[Scored, _Flight] = {}
        self._alone: deque[int] = deque()
        self._rehearsed: set[str] = set()
        self._taken = 0
        self._took_at = self._erased_at = self._tidied_at = self._looked_at = 0.0
        self._paused: dict[str, str] = {}
        self._again_at: float | None = None
        self._failing: str | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="counting", daemon=True)

    @property
    def trouble(self) -> str | None:
        """Why nothing, or not everything, is counted; None if all is well.

        Also None while another server is on duty.
        """
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
        self._duty.give_up()

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
        self._look_at_backlog()
        if not self._duty.ask():
            self._rest()
            return
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
            finish_due(self._database, self._documents, self._secret)
            self._erase(now)
        if not self._in_flight and not self._alone:
            self._backlog.wait(_POLL_SECONDS)
            self._stopping.wait(self._took_at + _BETWEEN_BATCHES - time.monotonic())

    def _look_at_backlog(self) -> None:
        """Learn how much waits by what other servers have accepted and counted."""
        now = time.monotonic()
        if self._database.is_shared and now - self._looked_at > _POLL_SECONDS:
            self._looked_at = now
            with self._database.read() as connection:
                self._backlog.is_now(Amount(*queries.waiting(connection)))

    def _rest(self) -> None:
        """Another server counts: forget what was begun, and be ready to begin with everything."""
        self._in_flight.clear()  # workers finish, and nobody takes the result
        self._take_all_again()
        self._failing = None
        self._stopping.wait(_POLL_SECONDS)

    def _take(self) -> None:
        if any(flight.alone for flight in self._in_flight.values()):
            return
        if self._alone:
            if not self._in_flight:
                self._take_alone(self._alone.popleft())
            return
        while len(self._in_flight) <= self._pool.workers:
            since = time.monotonic() - self._took_at
            if self._in_flight and since < _BETWEEN_BATCHES and self._backlog.size < MOST_BYTES:
                return
            with self._database.read() as connection:
                batch = gather(queries.after(connection, self._taken, self._paused))
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
            reason = f"Scoring it ended the worker, failed or took too long, {row.attempts} times."
            self._fold([(batch.groups[0], nothing_but(reason, 1))])
        else:
            self._submit(batch, alone=True)

    def _take_all_again(self) -> None:
        self._again_at = None
        self._taken = 0
        self._alone.clear()
        self._paused.clear()

    def _submit(self, batch: Batch, *, alone: bool = False) -> None:
        self._took_at = time.monotonic()
        ready = []
        tasks = []
        for group in batch.groups:
            task = task_of(group, self._documents, self._database)
            if isinstance(task, ModelTrouble):
                self._pause(group.campaign, task.reason, _AFTER_TROUBLE)
            else:
                ready.append(group)
                tasks.append(task)
        if not tasks:
            return
        batch = Batch(tuple(ready), batch.last)
        if alone and ready[0].campaign not in self._rehearsed:
            scored = self._pool.rehearse(tasks[0].model)
            self._in_flight[scored] = _Flight(batch, self._took_at, alone=True, rehearsal=True)
        else:
            scored = self._pool.submit(tuple(tasks))
            self._in_flight[scored] = _Flight(batch, self._took_at, alone=alone)

    def _finish(self, scored: Scored) -> None:
        flight = self._in_flight.pop(scored, None)
        if flight is None:  # it was given up with the pool it was in
            return
        try:
            results = scored.result()
        except Exception as error:  # whatever a model, or too little memory, can raise
            self._after_death([flight, *self._in_flight.values()], type(error).__name__)
            return
        if flight.rehearsal and not results:
            self._rehearsed.add(flight.batch.groups[0].campaign)
            self._submit(flight.batch, alone=True)
            return
        counted = []
        for group, result in zip(flight.batch.groups, results, strict=True):
            if isinstance(result, ModelTrouble):
                self._pause(group.campaign, result.reason, _AFTER_TROUBLE)
            else:
                counted.append((group, result))
        self._fold(counted)
        self._metrics.fold_seconds.observe(time.monotonic() - flight.began)

    def _fold(self, counted: list[tuple[Group, Counts]]) -> None:
        if not counted:
            return
        with self._database.transaction("fold uploads") as connection:
            lock(connection, [group for group, _ in counted])
            now = self._database.now(connection)
            folded = [fold(connection, group, counts, now) for group, counts in counted]
        for result in folded:
            if result is None:
                self._again_at = time.monotonic()  # some of it may still wait
                continue
            self._backlog.counted(result.counted)
            if result.dropped.uploads:
                _log.warning("uploads dropped", uploads=result.dropped.uploads)
                self._backlog.dropped(result.dropped)

    def _after_death(self, flights: list[_Flight], error: str) -> None:
        _log.error("worker died", batches=len(flights), error=error)
        self._in_flight.clear()
        self._rehearsed.clear()
        self._pool.restart()
        for flight in flights:
            if flight.rehearsal:
                self._pause(flight.batch.groups[0].campaign, _DEADLY, _AFTER_DEADLY_MODEL)
            elif flight.alone:
                with self._database.transaction("count attempts") as connection:
                    queries.try_again(connection, flight.batch.last)
        self._alone.extend(sorted(number for one in flights for number in one.batch.numbers))

    def _pause(self, campaign: str, reason: str, seconds: float) -> None:
        _log.error("model trouble", reason=reason, campaign=campaign)
        self._paused[campaign] = reason
        self._again_at = max(self._again_at or 0.0, time.monotonic() + seconds)

    def _erase(self, now: float) -> None:
        """Cut the log off when there is nothing to do, and now and then when there is."""
        pause = _LONGEST_WITHOUT_ERASURE if self._in_flight else _BETWEEN_ERASURES
        if self._backlog.erased.is_set() and now - self._erased_at > pause:
            self._erased_at = now
            self._backlog.erased.clear()
            if not self._database.erase_log():
                self._backlog.erased.set()
