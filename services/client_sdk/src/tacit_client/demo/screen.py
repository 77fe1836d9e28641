"""What the terminal shows when everything is done."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tacit.conformal import Calibration
from tacit_client.demo import words
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
    heading(console, words.headline_of_crash())
    for sentence in words.crash(outcome.crash, counted_at_site(outcome)):
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


def counted_at_site(outcome: Outcome) -> int:
    """How many records of the site that crashed the server counted."""
    return sum(
        site.records.counted for site in outcome.status.sites if site.site == outcome.crash.site
    )


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
