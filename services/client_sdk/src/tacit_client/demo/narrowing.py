"""How a search narrows, round by round: numbers, and where they lie in the score's range."""

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from tacit.protocol import RoundStatus

WIDTH = 24
"""Characters for the range of the score."""


def narrowing(rounds: Sequence[RoundStatus], *, wide: bool) -> Table:
    """A row for each round; a narrow terminal goes without the bracket."""
    whole = (rounds[0].low, rounds[0].high)
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for heading in ("round", "score ≤ t?", "bits", "estimate"):
        table.add_column(heading, justify="right", no_wrap=True)
    if wide:
        table.add_column("from", justify="right")
        table.add_column("to", justify="right")
        table.add_column(f"{whole[0]:<{WIDTH - 4}g}{whole[1]:>4g}", no_wrap=True)
    for each in rounds:
        estimate = "–" if each.coverage is None else f"{each.coverage:.1%}"
        numbers = (f"{each.round + 1}", f"{each.threshold:.4f}", f"{each.answers}", estimate)
        searched = (f"{each.low:.4f}", f"{each.high:.4f}", Text(bracket(each, whole)))
        table.add_row(*numbers, *(searched if wide else ()))
    return table


def bracket(asked: RoundStatus, whole: tuple[float, float]) -> str:
    """The part of the score's range that a round searches, with its question in the middle."""
    low, high, question = (
        _place(value, whole) for value in (asked.low, asked.high, asked.threshold)
    )
    line = ["·"] * WIDTH
    line[low : high + 1] = "─" * (high + 1 - low)
    line[low], line[high] = "├", "┤"
    line[question] = "┼" if low < question < high else "│"
    return "".join(line)


def _place(value: float, whole: tuple[float, float]) -> int:
    first, last = whole
    return min(WIDTH - 1, int((value - first) / (last - first) * WIDTH))
