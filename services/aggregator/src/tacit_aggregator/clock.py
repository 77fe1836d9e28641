"""The clock, which is passed in wherever the time matters."""

from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], float]
"""UTC seconds since 1970."""


def moment(seconds: float) -> str:
    """A time as documents write it."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
