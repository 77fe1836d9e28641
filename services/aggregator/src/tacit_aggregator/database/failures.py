"""Which errors of the database pass by themselves."""

from typing import Any

from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as NoConnection

_LOCK_NOT_AVAILABLE = "55P03"


def is_locked(error: BaseException) -> bool:
    """Whether others held a row for longer than was waited for."""
    original: Any = getattr(error, "orig", None)
    return getattr(original, "sqlstate", None) == _LOCK_NOT_AVAILABLE


def is_away(error: BaseException) -> bool:
    """Whether the database could not do its work just now, so that the same may succeed later.

    It is gone or restarting, a lock or a connection was not to be had in time, the disk is full.
    Whether a commit took place of which this was the answer, nobody knows.
    """
    if isinstance(error, DBAPIError) and error.connection_invalidated:
        return True
    return isinstance(error, OperationalError | InterfaceError | NoConnection)
