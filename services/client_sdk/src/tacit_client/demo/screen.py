"""What the terminal shows when everything is done."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tacit.conformal import Calibration
from tacit_client.demo import passages, words
from tacit_client.demo.display import (
    WIDTH_OF_TABLE,
    entries,
    heading,
    journey,
    results_table,
    say,
)
from tacit_client.demo.figures import Result, promise
from tacit_client.demo.messages import Message, spread
from tacit_client.demo.narrowing import narrowing
from tacit_client.demo.scores import ScorePart
from tacit_client.demo.story import Outcome


def show(console: Console, outcome: Outcome) -> None:
    """The whole story, from the question to where to look next."""
    console.print(Text("Tacit: calibrate a model on labels that nobody discloses", "bold"))
    console.print()
    say(console, words.introduction(outcome))
    console.print(_table(console, outcome))
    console.print()
    heading(console, "What is guaranteed, and what is not")
    entries(console, words.guaranteed(outcome))
    _rounds(console, outcome.scores)
    heading(console, passages.HEADLINE_OF_CRASHES)
    for sentence in (
        *passages.crash_of_labels(outcome.labels),
        *passages.crash_of_scores(outcome.scores),
    ):
        say(console, sentence)
    heading(console, "One message of each kind, as it went over the wire")
    say(console, words.ABOUT_MESSAGES)
    for message in outcome.messages:
        _message(console, message)
    heading(console, "Who saw what")
    entries(console, words.seen(outcome))
    heading(console, "One new image")
    held_out = outcome.setting.digits.held_out
    journey(console, held_out, outcome.setting.held_out, outcome.results())
    heading(console, "Keep in mind")
    entries(console, words.caveats(outcome))
    heading(console, "Where to look next")
    entries(console, words.NEXT)


def _rounds(console: Console, part: ScorePart) -> None:
    """How the score campaign found its threshold."""
    heading(console, "How the rounds narrow")
    say(console, passages.before_rounds(part))
    console.print(narrowing(part.status.rounds, wide=console.width >= WIDTH_OF_TABLE))
    console.print()
    say(console, passages.after_rounds(part))


def _table(console: Console, outcome: Outcome) -> Table:
    """The methods side by side; a narrow terminal goes without thresholds and ε."""
    wide = console.width >= WIDTH_OF_TABLE
    table = results_table()
    if wide:
        table.add_column("threshold", justify="right")
        table.add_column("ε", justify="right")
    table.add_column("what is promised")
    for name, result in outcome.results().items():
        figures = _figures(result, outcome)
        table.add_row(name, *(figures if wide else figures[:2]), promise(result))
    return table


def _figures(result: Result, outcome: Outcome) -> tuple[str, str, str, str]:
    """Coverage, set size, threshold and ε."""
    epsilon = "–" if result.epsilon is None else f"{result.epsilon:g}"
    if not isinstance(result, Calibration):
        return "–", "–", "–", epsilon
    worth = outcome.setting.figures(result)
    return (*worth.in_words(), f"{result.threshold:.3f}", epsilon)


def _message(console: Console, message: Message) -> None:
    console.print(Text.assemble((message.what, "bold"), f"  {message.travelled}"))
    console.print(Text(spread(message.content, console.width)))
    console.print()
