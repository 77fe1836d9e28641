"""What a person sees while the demo works; imports little, so that it is there at once."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.text import Text


class Steps:
    """Steps with the time each took: a spinner on a terminal, plain lines elsewhere."""

    def __init__(self, console: Console, *, quiet: bool = False) -> None:
        self._console = console
        self._quiet = quiet

    @contextmanager
    def __call__(self, doing: str) -> Iterator[None]:
        """One step, from its beginning to its end."""
        if self._quiet:
            yield
            return
        began = time.monotonic()
        with self._console.status(Text(f"{doing} …")):
            yield
        self.note(f"{time.monotonic() - began:5.1f} s  {doing}")

    def note(self, sentence: str) -> None:
        """Something that happened within a step."""
        if not self._quiet:
            self._console.print(Text(sentence))
