"""What every command does about a standard output that is not as it would like it."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper


@contextmanager
def forgiving_stdout() -> Iterator[None]:
    """Print ? for what a terminal cannot show, and end quietly when the reader leaves early."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    try:
        try:
            yield
        finally:
            print(end="", flush=True)
    except BrokenPipeError:
        # Python flushes once more when it ends; now into nothing.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(1) from None
