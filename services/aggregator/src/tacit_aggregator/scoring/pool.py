"""The worker processes."""

from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import ParamSpec

from tacit_aggregator.models.registered import RegisteredModel
from tacit_aggregator.scoring import worker
from tacit_aggregator.scoring.worker import Counts, ModelTrouble, Task

Scored = Future[tuple[Counts | ModelTrouble, ...]]
_Parameters = ParamSpec("_Parameters")


class Pool:
    """Workers that are started afresh when one of them died, or took too long and was ended."""

    def __init__(self, workers: int, seconds: float) -> None:
        self.workers = workers
        self._seconds = seconds
        self._executor = self._started()

    def submit(self, tasks: tuple[Task, ...]) -> Scored:
        """Have a worker score these."""
        return self._begin(worker.score, tasks, self._seconds)

    def rehearse(self, model: RegisteredModel | None) -> Scored:
        """Have a worker start and run the model on zeros; the result is its trouble, or nothing."""
        return self._begin(worker.rehearse, model, self._seconds)

    def restart(self) -> None:
        """Replace all workers."""
        self._executor.shutdown(wait=False, cancel_futures=True)
        self._executor = self._started()

    def stop(self) -> None:
        """End the workers, whatever they are at: nobody would take the result."""
        for process in list(self._executor._processes.values()):  # no public way before 3.14
            process.kill()
        self._executor.shutdown(wait=True, cancel_futures=True)

    def _begin(
        self,
        work: Callable[_Parameters, tuple[Counts | ModelTrouble, ...]],
        *args: _Parameters.args,
        **kwargs: _Parameters.kwargs,
    ) -> Scored:
        try:
            return self._executor.submit(work, *args, **kwargs)
        except BrokenProcessPool:  # a worker died that had nothing to do: nobody's fault
            self.restart()
            return self._executor.submit(work, *args, **kwargs)

    def _started(self) -> ProcessPoolExecutor:
        # Spawned, not forked: a fork of a process with threads and connections is a trap. Each is
        # started when there is work for it, so a server that never scores has none.
        return ProcessPoolExecutor(
            self.workers, mp_context=get_context("spawn"), initializer=worker.start
        )
