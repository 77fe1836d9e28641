"""Group commit: one thread stores all uploads that wait, in one transaction, then answers them."""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from tacit.protocol import Problems, UploadState
from tacit_aggregator.database.engine import Database
from tacit_aggregator.database.failures import is_away
from tacit_aggregator.errors import Refusal
from tacit_aggregator.ingest.answers import AnswerSubmission, StoringAnswers
from tacit_aggregator.ingest.storing import Outcome, Storing
from tacit_aggregator.ingest.submission import Stored, Submission
from tacit_aggregator.metrics import Metrics
from tacit_aggregator.scoring.backlog import Backlog
from tacit_aggregator.settings import MEBIBYTE

_MOST_WAITING = 4096
_MOST_WAITING_BYTES = 256 * MEBIBYTE
_MOST_AT_ONCE = 1024
_MOST_BYTES_AT_ONCE = 32 * MEBIBYTE
_COMPANY_SECONDS = 0.001

_log = structlog.get_logger("tacit_aggregator.ingest")


@dataclass(frozen=True, eq=False, repr=False)
class _Waiting:
    submission: Submission | AnswerSubmission
    answer: "asyncio.Future[Stored]"


class Writer:
    """Stores uploads; an answer is given only after the commit that makes it true."""

    def __init__(self, database: Database, backlog: Backlog, metrics: Metrics) -> None:
        self._database = database
        self._backlog = backlog
        self._metrics = metrics
        self._waiting: deque[_Waiting] = deque()
        self._waiting_bytes = 0
        self._changed = threading.Condition()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="ingest", daemon=True)

    @property
    def running(self) -> bool:
        """Whether uploads are taken."""
        return self._thread.is_alive() and not self._stopping

    def start(self) -> None:
        """Begin to store."""
        self._thread.start()

    def stop(self) -> None:
        """Store nothing more; whoever waits is told to come again."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join()
        self._answer_all(list(self._waiting), Refusal(Problems.UNAVAILABLE, retry_after=1))
        self._waiting.clear()

    async def store(self, submission: Submission | AnswerSubmission) -> Stored:
        """What became of the upload, once that is durable."""
        answer: asyncio.Future[Stored] = asyncio.get_running_loop().create_future()
        with self._changed:
            if self._stopping:
                raise Refusal(Problems.UNAVAILABLE, retry_after=1)
            full = self._waiting_bytes + submission.size > _MOST_WAITING_BYTES
            if len(self._waiting) >= _MOST_WAITING or (full and self._waiting):
                raise Refusal(Problems.OVERLOADED, retry_after=1)
            self._waiting.append(_Waiting(submission, answer))
            self._waiting_bytes += submission.size
            self._changed.notify()
        return await answer

    def _run(self) -> None:
        together = False
        while True:
            with self._changed:
                while not self._waiting and not self._stopping:
                    self._changed.wait()
            # Where some came together there are more to come, and a commit costs them all the same.
            if together:
                time.sleep(_COMPANY_SECONDS)
            with self._changed:
                if self._stopping:
                    return
                batch = self._take()
            self._store(batch)
            together = len(batch) > 1

    def _take(self) -> list[_Waiting]:
        batch: list[_Waiting] = []
        size = 0
        while self._waiting and len(batch) < _MOST_AT_ONCE:
            size += self._waiting[0].submission.size
            if batch and size > _MOST_BYTES_AT_ONCE:
                break
            batch.append(self._waiting.popleft())
            self._waiting_bytes -= batch[-1].submission.size
        return batch

    def _store(self, batch: Sequence[_Waiting]) -> None:
        try:
            with self._database.transaction("store uploads") as connection:
                now = self._database.now(connection)
                labels = Storing(connection, now, self._backlog.room)
                answers = StoringAnswers(connection, now)
                outcomes = _stored(labels, answers, [waiting.submission for waiting in batch])
        except Exception as error:
            # Nobody is told what was in it: the text of a database error may hold the row.
            _log.error("uploads not stored", error=type(error).__name__, uploads=len(batch))
            problem = Problems.UNAVAILABLE if is_away(error) else Problems.INTERNAL
            self._answer_all(batch, Refusal(problem, retry_after=2))
            return
        self._backlog.accepted(labels.accepted)
        for state in (UploadState.ACCEPTED, UploadState.LATE):
            self._metrics.answers(state.value, answers.records(state))
        _answer(batch, outcomes)

    def _answer_all(self, batch: Sequence[_Waiting], refusal: Refusal) -> None:
        _answer(batch, [refusal] * len(batch))


def _stored(
    labels: Storing, answers: StoringAnswers, batch: Sequence[Submission | AnswerSubmission]
) -> list[Outcome]:
    """Store uploads of both kinds: all locks first, then all that is written."""
    of_labels = labels.decide([one for one in batch if isinstance(one, Submission)])
    of_answers = answers.decide([one for one in batch if isinstance(one, AnswerSubmission)])
    labels.write()
    answers.write()
    next_label, next_answer = iter(of_labels), iter(of_answers)
    return [next(next_label if isinstance(one, Submission) else next_answer) for one in batch]


def _answer(batch: Sequence[_Waiting], outcomes: Sequence[Outcome]) -> None:
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[_Waiting, Outcome]]] = {}
    for waiting, outcome in zip(batch, outcomes, strict=True):
        by_loop.setdefault(waiting.answer.get_loop(), []).append((waiting, outcome))
    for loop, answers in by_loop.items():
        # One wake-up of the loop for all of them.
        loop.call_soon_threadsafe(_resolve, answers)


def _resolve(answers: Sequence[tuple[_Waiting, Outcome]]) -> None:
    for waiting, outcome in answers:
        if waiting.answer.done():  # its request was cancelled
            continue
        if isinstance(outcome, Refusal):
            waiting.answer.set_exception(outcome)
        else:
            waiting.answer.set_result(outcome)
