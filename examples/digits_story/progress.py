"""What a person sees while the demo works; imports little, so that it is there at once."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn


@contextmanager
def steps(console: Console, total: int) -> Iterator[Callable[[str], None]]:
    """A function to call at the start of each step: a bar on a terminal, plain lines elsewhere."""
    if not console.is_terminal:
        yield lambda activity: console.print(f"{activity} …")
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=total, completed=-1)

        def begin(activity: str) -> None:
            progress.update(task, advance=1, description=activity)

        yield begin
