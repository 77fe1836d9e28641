"""Prose, lists and pictures for a terminal of any width."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tacit.conformal import Calibration
from tacit_client.demo.data import BRIGHTEST, Records
from tacit_client.demo.figures import Result, instructive

SHADES = " ░▒▓█"
WIDEST_PROSE = 96
WIDTH_OF_TABLE = 76


def say(console: Console, sentence: str) -> None:
    """A paragraph, no wider than is good to read."""
    console.print(Text(sentence), width=min(console.width, WIDEST_PROSE))
    console.print()


def heading(console: Console, title: str) -> None:
    """What the next part is about."""
    console.print(Text(title, "bold underline"))


def entries(console: Console, named: dict[str, str]) -> None:
    """Sentences beside their names."""
    width = min(console.width, WIDEST_PROSE)
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0), width=width)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(ratio=1)
    for name, sentence in named.items():
        table.add_row(name, Text(sentence))
    console.print(table)
    console.print()


def results_table() -> Table:
    """An empty table whose first column names a method."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("method", style="bold", no_wrap=True)
    table.add_column("coverage", justify="right", min_width=len("coverage"))
    table.add_column("set size", justify="right", no_wrap=True)
    return table


def blocks(image: NDArray[np.float64]) -> str:
    """An image in [0, 1] as text, two characters for a pixel."""
    levels = np.rint(image * (len(SHADES) - 1)).astype(int)
    return "\n".join("".join(2 * SHADES[level] for level in line) for line in levels)


def journey(
    console: Console,
    records: Records,
    probabilities: NDArray[np.float64],
    results: Mapping[str, Result],
) -> None:
    """One record, the model's opinion of it and its set by every method; the first one chooses."""
    calibrations = {
        name: result for name, result in results.items() if isinstance(result, Calibration)
    }
    chooser = next(iter(calibrations.values()))
    row = instructive(chooser.sets(probabilities), probabilities, records.labels)
    label = int(records.labels[row])
    guesses = np.argsort(-probabilities[row])[:3]
    opinion = ", ".join(f"{guess} ({probabilities[row, guess]:.0%})" for guess in guesses)
    say(console, f"The model's first guesses: {opinion}. It is a {label}.")
    lines = Table.grid(padding=(0, 2, 0, 0))
    for name, calibration in calibrations.items():
        members = np.flatnonzero(calibration.sets(probabilities[[row]])[0])
        lines.add_row(Text(name, "bold"), _prediction_set(members, label))
    side_by_side = Table.grid(padding=(0, 3, 0, 2))
    side_by_side.add_row(Text(blocks(records.images[row] / BRIGHTEST)), lines)
    console.print(side_by_side)
    console.print()


def _prediction_set(members: NDArray[np.int64], label: int) -> Text:
    digits = Text(", ").join(
        Text(str(member), "bold underline" if member == label else "") for member in members
    )
    verdict = "holds it" if label in members else "misses it"
    return Text.assemble("{ ", digits, f" }}  {verdict}")
