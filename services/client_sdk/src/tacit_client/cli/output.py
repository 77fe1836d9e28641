"""Where a command prints: results on standard output, everything else on standard error."""

import json
import sys
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

_WIDTH_OF_FILES = 160
"""How wide lines may be where no terminal says it."""

ReportProgress = Callable[[int, int, str], None]
"""Called with what is done, the total, and what is being done."""


def printable(text: str) -> str:
    """`text` without control characters: a server's words must not steer a terminal."""
    return "".join(
        character if character == "\n" or unicodedata.category(character)[0] != "C" else "�"
        for character in text
    )


def short(digest: str) -> str:
    """Enough of a digest to name a campaign by."""
    return digest[:12]


def many(count: int, thing: str) -> str:
    """So many of a thing: 1 upload, 2,000 uploads."""
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"


def _console(*, stderr: bool = False) -> Console:
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else _WIDTH_OF_FILES
    return Console(file=stream, width=width, markup=False, emoji=False, highlight=False)


@dataclass(frozen=True)
class Screen:
    """One place to print: with `json` standard output gets a single object, nothing else."""

    json: bool = False
    quiet: bool = False
    _out: Console = field(default_factory=_console)
    _err: Console = field(default_factory=lambda: _console(stderr=True))

    def show(self, document: Mapping[str, Any], *parts: RenderableType) -> None:
        """The result of a command, for a program or for a person."""
        if self.json:
            self._out.file.write(json.dumps(document, ensure_ascii=True, allow_nan=False) + "\n")
            return
        for part in parts:
            self._out.print(printable(part) if isinstance(part, str) else part, soft_wrap=True)

    def say(self, text: str) -> None:
        """Something to know, beside the result."""
        if not self.quiet:
            self._err.print(printable(text), soft_wrap=True)

    def complain(self, text: str) -> None:
        """What went wrong; said also when quiet."""
        self._err.print(printable(text), soft_wrap=True)

    @contextmanager
    def progress(self) -> Iterator[ReportProgress]:
        """A progress bar on standard error, gone when it is done; none when quiet."""
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        hidden = self.quiet or not self._err.is_terminal
        with Progress(
            *columns, TimeRemainingColumn(), console=self._err, transient=True, disable=hidden
        ) as bar:
            task = bar.add_task("", total=None)

            def report(done: int, total: int, what: str) -> None:
                bar.update(task, completed=done, total=total, description=printable(what))

            yield report


def table(headings: Sequence[str], rows: Sequence[Sequence[object]], numbers: str = "") -> Table:
    """A plain table; the columns whose headings are named in `numbers` stand to the right."""
    made = Table(box=None, pad_edge=False, header_style="bold")
    right = numbers.split(",")
    for heading in headings:
        made.add_column(heading, justify="right" if heading in right else "left")
    for row in rows:
        made.add_row(*(printable(str(cell)) for cell in row))
    return made


def facts(pairs: Sequence[tuple[str, object]]) -> Table:
    """Names and values below one another."""
    made = Table(box=None, pad_edge=False, show_header=False)
    made.add_column(style="bold", no_wrap=True)
    made.add_column(overflow="fold")
    for name, value in pairs:
        made.add_row(name, printable(str(value)))
    return made
