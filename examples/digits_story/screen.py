"""What the terminal shows when everything is done."""

from rich.console import Console
from rich.table import Table

from examples.digits_story import words
from examples.digits_story.campaigns import Comparison
from examples.digits_story.story import Setting
from tacit.conformal import Calibration
from tacit_client.demo.display import (
    WIDTH_OF_TABLE,
    entries,
    heading,
    journey,
    results_table,
    say,
)
from tacit_client.demo.figures import Result, promise


def show(console: Console, comparison: Comparison, setting: Setting) -> None:
    """The whole story, from the question to the caveats."""
    say(console, words.introduction(setting.accuracy(), comparison.terms))
    held = " · ".join(f"{site.name} {len(site)}" for site in setting.sites)
    say(console, f"Labelled records at the sites: {held}.")
    console.print(_table(comparison, setting, wide=console.width >= WIDTH_OF_TABLE))
    console.print()
    certified = isinstance(comparison.scores_star, Calibration)
    if certified and comparison.terms.alpha > words.USUAL_ALPHA:
        say(console, words.choice(comparison.terms, setting.n))
    heading(console, "What left the sites, and what it could reveal")
    entries(console, words.what_left(comparison))
    heading(console, "One new image")
    probabilities = setting.model.probabilities(setting.held_out.images)
    journey(console, setting.held_out, probabilities, comparison.results())
    heading(console, "Keep in mind")
    entries(console, words.caveats(comparison, len(setting.held_out)))


def _table(comparison: Comparison, setting: Setting, *, wide: bool) -> Table:
    """The methods side by side; a narrow terminal goes without the thresholds."""
    table = results_table()
    if wide:
        table.add_column("threshold", justify="right")
    table.add_column("the promise")
    for name, result in comparison.results().items():
        coverage, size, threshold = _figures(result, setting)
        figures = (coverage, size, threshold) if wide else (coverage, size)
        table.add_row(name, *figures, promise(result))
    return table


def _figures(result: Result, setting: Setting) -> tuple[str, str, str]:
    if not isinstance(result, Calibration):
        return "–", "–", "–"
    return (*setting.figures(result).in_words(), f"{result.threshold:.3f}")
