"""The worker processes."""

from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context

from tacit_aggregator.scoring import worker
from tacit_aggregator.scoring.worker import Counts, ModelTrouble, Task

Scored = Future[tuple[Counts | ModelTrouble, ...]]


class Pool:
    """Workers that are started afresh when one of them died."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._executor = self._started()

    def submit(self, tasks: tuple[Task, ...]) -> Scored:
        """Have a worker score these."""
        return self._executor.submit(worker.score, tasks)

    def restart(self) -> None:
        """Replace all workers."""
        self._executor.shutdown(wait=False, cancel_futures=True)
        self._executor = self._started()

    def stop(self) -> None:
        """End the workers; what they are at is finished, what waits is not begun."""
        self._executor.shutdown(wait=True, cancel_futures=True)

    def _started(self) -> ProcessPoolExecutor:
        # Spawned, not forked: a fork of a process with threads and connections is a trap.
        executor = ProcessPoolExecutor(
            self.workers, mp_context=get_context("spawn"), initializer=worker.start
        )
        executor.submit(worker.ready)
        return executor
