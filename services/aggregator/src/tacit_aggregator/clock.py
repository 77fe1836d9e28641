"""The clock, which is passed in wherever the time matters."""

from collections.abc import Callable

Clock = Callable[[], float]
"""UTC seconds since 1970."""
