"""Where a command prints: results on standard output, everything else on standard error."""

import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console, RenderableType
from rich.table import Table

from tacit_client.printable import printable
from tacit_client.progress import OnProgress, progress_bar, progress_lines

_WIDTH_OF_FILES = 160
"""How wide lines may be where no terminal says it."""

RANDOMIZED_ALONE = "nothing but what is randomized"
"""What may leave where a policy names nothing."""


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
        self._print(*parts)

    def explain(self, *parts: RenderableType) -> None:
        """What stands around a result and what to do next; not for programs, nor when quiet."""
        if not self.json and not self.quiet:
            self._print(*parts)

    def say(self, text: str) -> None:
        """Something to know, beside the result."""
        if not self.quiet:
            self._err.print(printable(text), soft_wrap=True)

    def complain(self, text: str) -> None:
        """What went wrong; said also when quiet."""
        self._err.print(printable(text), soft_wrap=True)

    def _print(self, *parts: RenderableType) -> None:
        for part in parts:
            self._out.print(printable(part) if isinstance(part, str) else part, soft_wrap=True)

    def progress(self) -> AbstractContextManager[OnProgress]:
        """A progress bar on standard error, gone when it is done; none when quiet.

        Where there is no terminal, a line whenever what is waited for changes.
        """
        if self.quiet or self._err.is_terminal:
            return progress_bar(self._err, passing=True, hidden=self.quiet)
        return nullcontext(progress_lines(self.say))


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
