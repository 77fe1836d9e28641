"""Progress: what long calls tell whoever waits for them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

OnProgress = Callable[[int, int, str], None]
"""Told how much is done, of how much, and what it is."""


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
        TextColumn("{task.description}"),
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
        tasks = {}

        def show(done: int, total: int, what: str) -> None:
            if what not in tasks:
                tasks[what] = progress.add_task(what, total=total)
            progress.update(tasks[what], completed=done, total=total)

        yield show
