"""What every command does: read whole numbers, and bear a standard output as it is."""

import math
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper


def whole_number(text: str) -> int:
    """An integer, which may be written like 1e6 or 10_000; anything else is a `ValueError`."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not number.is_integer():
        raise ValueError(f"{text} is not a whole number.")
    return int(number)


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
