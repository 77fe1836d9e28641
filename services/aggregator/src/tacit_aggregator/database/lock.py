"""The lock beside a database: one server, and no migration under it."""

from collections.abc import Iterator
from contextlib import contextmanager

from filelock import FileLock, Timeout

from tacit_aggregator.database.location import database_file
from tacit_aggregator.errors import OperatorError


@contextmanager
def only_server(url: str) -> Iterator[None]:
    """Hold the lock, or refuse; it goes with the process, however that ends."""
    file = database_file(url)
    lock = FileLock(file.with_name(file.name + ".lock"))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise OperatorError(
            f"Another server is running on {file}; stop it first, or set TACIT_DATABASE_URL."
        ) from None
    except OSError as error:
        raise OperatorError(f"{lock.lock_file} cannot be locked: {error.strerror}.") from None
    try:
        yield
    finally:
        lock.release()
