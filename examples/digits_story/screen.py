"""What the terminal shows when everything is done."""

import math

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from rich.text import Text

from examples.digits_story import words
from examples.digits_story.campaigns import Comparison, Result
from examples.digits_story.story import Setting
from tacit.conformal import Calibration

SHADES = " ░▒▓█"
WIDEST_PROSE = 96
WIDTH_OF_TABLE = 76


def show(console: Console, comparison: Comparison, setting: Setting) -> None:
    """The whole story, from the question to the caveats."""
    _say(console, words.introduction(setting.accuracy(), comparison.terms))
    held = " · ".join(f"{site.name} {len(site)}" for site in setting.sites)
    _say(console, f"Labelled records at the sites: {held}.")
    console.print(_table(comparison, setting, wide=console.width >= WIDTH_OF_TABLE))
    console.print()
    certified = isinstance(comparison.scores_star, Calibration)
    if certified and comparison.terms.alpha > words.USUAL_ALPHA:
        _say(console, words.choice(comparison.terms, setting.n))
    _heading(console, "What left the sites, and what it could reveal")
    _list(console, words.what_left(comparison))
    _heading(console, "One new image")
    _journey(console, comparison, setting)
    _heading(console, "Keep in mind")
    _list(console, words.caveats(comparison, len(setting.held_out)))


def _table(comparison: Comparison, setting: Setting, *, wide: bool) -> Table:
    """The methods side by side; a narrow terminal goes without the thresholds."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("method", style="bold", no_wrap=True)
    table.add_column("coverage", justify="right", min_width=len("coverage"))
    table.add_column("classes per set", justify="right")
    if wide:
        table.add_column("threshold", justify="right")
    table.add_column("the promise")
    for name, result in comparison.results().items():
        coverage, size, threshold = _figures(result, setting)
        figures = (coverage, size, threshold) if wide else (coverage, size)
        table.add_row(name, *figures, words.promise(result))
    return table


def _figures(result: Result, setting: Setting) -> tuple[str, str, str]:
    if not isinstance(result, Calibration):
        return "–", "–", "–"
    coverage, size = setting.coverage_and_size(result)
    margin = sampling_error(coverage, len(setting.held_out))
    return f"{coverage:.1%} ± {100 * margin:.1f}", f"{size:.2f}", f"{result.threshold:.3f}"


def sampling_error(share: float, n: int) -> float:
    """Half the width of Wilson's 95 % interval, which is not 0 even where every record is a hit."""
    z = 1.96
    return z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))


def _journey(console: Console, comparison: Comparison, setting: Setting) -> None:
    """One held-out image, its model's opinion and its set by every method."""
    probabilities = setting.model.probabilities(setting.held_out.images)
    sets = comparison.not_private.sets(probabilities)
    row = instructive(sets, probabilities, setting.held_out.labels)
    image, label = setting.held_out.images[row], int(setting.held_out.labels[row])
    guesses = np.argsort(-probabilities[row])[:3]
    opinion = ", ".join(f"{guess} ({probabilities[row, guess]:.0%})" for guess in guesses)
    _say(console, f"The model's first guesses: {opinion}. It is a {label}.")
    lines = Table.grid(padding=(0, 2, 0, 0))
    for name, result in comparison.results().items():
        if isinstance(result, Calibration):
            members = np.flatnonzero(result.sets(probabilities[[row]])[0])
            lines.add_row(Text(name, "bold"), _set(members, label))
    side_by_side = Table.grid(padding=(0, 3, 0, 2))
    side_by_side.add_row(Text(blocks(image)), lines)
    console.print(side_by_side)
    console.print()


def instructive(
    sets: NDArray[np.bool_], probabilities: NDArray[np.float64], labels: NDArray[np.int64]
) -> int:
    """Of the images whose set makes up for a wrong first guess, the one the model knows best."""
    chosen = (np.arange(len(labels)), labels)
    rescued = sets[chosen] & (probabilities.argmax(axis=1) != labels)
    return int(np.argmax(np.where(rescued, probabilities[chosen], -1)))


def blocks(image: NDArray[np.float64]) -> str:
    """An image as text, two characters for a pixel."""
    levels = np.rint(image * (len(SHADES) - 1)).astype(int)
    return "\n".join("".join(2 * SHADES[level] for level in line) for line in levels)


def _set(members: NDArray[np.int64], label: int) -> Text:
    digits = Text(", ").join(
        Text(str(member), "bold underline" if member == label else "") for member in members
    )
    verdict = "holds it" if label in members else "misses it"
    return Text.assemble("{ ", digits, f" }}  {verdict}")


def _list(console: Console, entries: dict[str, str]) -> None:
    width = min(console.width, WIDEST_PROSE)
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0), width=width)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(ratio=1)
    for name, sentence in entries.items():
        table.add_row(name, Text(sentence))
    console.print(table)
    console.print()


def _heading(console: Console, title: str) -> None:
    console.print(Text(title, "bold underline"))


def _say(console: Console, sentence: str) -> None:
    console.print(Text(sentence), width=min(console.width, WIDEST_PROSE))
    console.print()
