"""Progress: what long calls tell whoever waits for them."""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)

from tacit_client.printable import printable

OnProgress = Callable[[int, int, str], None]
"""Told how much is done, of how much, and what it is, like "records sent"; where more is to be said
that changes, it follows a colon: "rounds: round 4 of 10 waits for 2 sites"."""


_EVERY = 5.0
"""Seconds between two lines of progress, at least."""
_CLOCKS = re.compile(r"\d+(\.\d+)? (s|min|h|days)\b")


def silent(done: int, total: int, what: str) -> None:
    """Tell nobody."""


@contextmanager
def progress_bar(
    console: Console | None = None, *, passing: bool = False, hidden: bool = False
) -> Iterator[OnProgress]:
    """A bar in the terminal, one line for each kind of thing that is told.

    A `passing` one is gone when the block ends; a `hidden` one is never shown.
    """
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(
        *columns,
        console=console or Console(stderr=True),
        transient=passing,
        disable=hidden,
    ) as progress:
        tasks: dict[str, TaskID] = {}

        def show(done: int, total: int, what: str) -> None:
            kind, _, more = what.partition(":")
            shown = printable(" ".join((more or kind).split()))
            if kind not in tasks:
                tasks[kind] = progress.add_task(shown, total=total)
            progress.update(tasks[kind], completed=done, total=total, description=shown)

        yield show


def progress_lines(
    say: Callable[[str], None], clock: Callable[[], float] = time.monotonic
) -> OnProgress:
    """What is waited for, as lines for a log: when it changes, and at most every few seconds.

    Only what is more than numbers is said, and not again for a clock that has gone on.
    """
    said: dict[str, tuple[str, float]] = {}

    def show(done: int, total: int, what: str) -> None:
        kind, _, more = (" ".join(part.split()) for part in what.partition(":"))
        news, now = _CLOCKS.sub("", more), clock()
        before, then = said.get(kind, ("", -inf))
        if news != before and now - then >= _EVERY:
            said[kind] = news, now
            say(f"{done:,} of {total:,} {kind}: {more}")

    return show
