"""One setup at a time."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]  # not on every system: setups are not kept apart


@contextmanager
def held(path: Path, on_wait: Callable[[], None]) -> Iterator[None]:
    """Hold the lock at `path`, after a call of `on_wait` if someone else holds it.

    The system releases the lock when its process ends, however it ends; the file stays, because
    whoever removed it could remove it from under those who wait.
    """
    with path.open("w") as file:
        if fcntl is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                on_wait()
                fcntl.flock(file, fcntl.LOCK_EX)
            except OSError:
                pass  # a file system without locks
        yield
