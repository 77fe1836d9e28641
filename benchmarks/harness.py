"""What every benchmark shares: fair timing, tables, bars, and the line that programs read."""

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from tacit.command import forgiving_stdout

Result = TypeVar("Result")


@dataclass(frozen=True)
class Bar:
    """A figure that must be at least, or at most, a stated value."""

    name: str
    value: float
    at_least: float | None = None
    at_most: float | None = None

    def __post_init__(self) -> None:
        if (self.at_least is None) == (self.at_most is None):
            raise ValueError(f"The bar {self.name!r} needs either at_least or at_most.")

    @property
    def holds(self) -> bool:
        """Whether the value is on the right side of the bar; NaN and infinity never are."""
        if not math.isfinite(self.value):
            return False
        if self.at_least is not None:
            return self.value >= self.at_least
        return self.at_most is not None and self.value <= self.at_most

    @property
    def asked(self) -> str:
        """The bar in words."""
        if self.at_least is not None:
            return f"at least {self.at_least:g}"
        return f"at most {self.at_most:g}"

    def __str__(self) -> str:
        return f"{self.name}: {self.value:.4g}, {self.asked} asked"

    def to_dict(self) -> dict[str, Any]:
        """The bar as the JSON line shows it."""
        limit = (
            {"at_least": self.at_least} if self.at_least is not None else {"at_most": self.at_most}
        )
        return {"name": self.name, "value": _or_null(self.value), **limit, "holds": self.holds}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> "Bar":
        """The bar that `to_dict` wrote; whether it holds is judged anew."""
        value = _or_nan(fields["value"])
        return cls(fields["name"], value, fields.get("at_least"), fields.get("at_most"))


@dataclass(frozen=True)
class Report:
    """What a benchmark found: named figures, and the bars they are held against."""

    benchmark: str
    figures: Mapping[str, float]
    bars: tuple[Bar, ...]

    def to_json(self) -> str:
        """One line of JSON, which has no NaN and no infinity: null stands for both."""
        figures = {name: _or_null(value) for name, value in self.figures.items()}
        bars = [bar.to_dict() for bar in self.bars]
        fields = {"benchmark": self.benchmark, "figures": figures, "bars": bars}
        return json.dumps(fields, allow_nan=False)

    @classmethod
    def from_json(cls, line: str) -> "Report":
        """The report that `to_json` wrote."""
        fields = json.loads(line)
        figures = {name: _or_nan(value) for name, value in fields["figures"].items()}
        bars = tuple(Bar.from_dict(bar) for bar in fields["bars"])
        return cls(fields["benchmark"], figures, bars)


def _or_null(number: float) -> float | None:
    return number if math.isfinite(number) else None


def _or_nan(number: float | None) -> float:
    return math.nan if number is None else number


@dataclass(frozen=True)
class Measured(Generic[Result]):
    """The least time of several runs, and what the last of them returned."""

    seconds: float
    result: Result


def interleaved(
    contestants: Mapping[str, Callable[[], Result]], repeats: int
) -> dict[str, Measured[Result]]:
    """Time contestants in turns (A B A B …) and keep the best time of each.

    In turns, so that a busy minute of the machine falls on all of them; the best time, because
    what else runs on the machine can only add to it.
    """
    measured: dict[str, Measured[Result]] = {}
    for _ in range(repeats):
        for name, run in contestants.items():
            start = time.perf_counter()
            result = run()
            seconds = time.perf_counter() - start
            if name in measured:
                seconds = min(seconds, measured[name].seconds)
            measured[name] = Measured(seconds, result)
    return measured


def show_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table; the first column is aligned left, as is the last when it holds words."""
    widths = [max(len(row[i]) for row in (columns, *rows)) for i in range(len(columns))]
    print(f"\n{title}")
    for row in (columns, ["-" * width for width in widths], *rows):
        cells = [
            cell.ljust(width) if i in {0, len(widths) - 1} else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        print("  " + "  ".join(cells).rstrip())
    sys.stdout.flush()


def show_bars(bars: Sequence[Bar]) -> None:
    """Print the bars and whether each holds."""
    rows = [
        (bar.name, f"{bar.value:.4g}", bar.asked, "holds" if bar.holds else "DOES NOT HOLD")
        for bar in bars
    ]
    show_table("Bars", ("bar", "value", "asked", ""), rows)


def progress(message: str) -> None:
    """Say what is being done, apart from the results."""
    print(f"… {message}", file=sys.stderr, flush=True)


def main(measure: Callable[[bool], Report], arguments: Sequence[str] | None = None) -> None:
    """Run one benchmark from the command line; `measure` is told whether to be quick."""
    parser = argparse.ArgumentParser(description=sys.modules[measure.__module__].__doc__)
    parser.add_argument("--json", action="store_true", help="end with one line of JSON")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="small sizes, to see that it runs: the bars mean nothing",
    )
    with forgiving_stdout():
        options = parser.parse_args(arguments)
        report = measure(options.quick)
        show_bars(report.bars)
        if options.json:
            print(report.to_json())
