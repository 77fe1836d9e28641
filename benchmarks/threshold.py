"""NACP thresholds from probabilities, beside the usual bisection; and the sketch's memory."""

import functools
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # to be run by path, too

from benchmarks import usual
from benchmarks.harness import Bar, Measured, Report, interleaved, main, progress, show_table
from benchmarks.synthetic import EPSILON, Records, make_records
from tacit.conformal import nacp
from tacit.scores import APS, HPS, Score

ALPHA = 0.1
ROUNDING = 1e-14
"""Two ways to add up a row differ by less; a second score hardly ever lies that near."""

PUBLISHED_SHARE = usual.PUBLISHED_STEPS / usual.STEPS
"""Of the bisection's time, what it takes to an interval of 5e-5: halvings cost the same."""

TACIT, USUAL, SORTED_ONCE = "tacit", "usual", "usual, sorted once"


@dataclass(frozen=True)
class Cell:
    """One size to measure at, and how often."""

    n: int
    k: int
    repeats: int


CELLS = (Cell(5_000, 10, 7), Cell(10_000, 100, 5), Cell(25_000, 1000, 2))
QUICK_CELLS = (Cell(300, 10, 1), Cell(200, 100, 1))
AT_LEAST = {("hps", 1000): 8.0, ("aps", 1000): 60.0}
AT_LEAST_ELSEWHERE = 20.0

STREAM_RECORDS = 10_000_000
STREAM_CLASSES = 10
STREAM_MEGABYTES = 300


@dataclass(frozen=True)
class Outcome:
    """The contestants at one size and score."""

    cell: Cell
    score: Score
    runs: dict[str, Measured[float]]

    @property
    def name(self) -> str:
        """The cell in words."""
        return f"{self.score.name}, n={self.cell.n}, k={self.cell.k}"

    @property
    def lower_by(self) -> float:
        """By how much the bisection's crossing lies below the largest one."""
        return self.runs[TACIT].result - self.runs[USUAL].result

    def times_faster_than(self, contestant: str) -> float:
        """How many times as long the contestant takes."""
        return self.runs[contestant].seconds / self.runs[TACIT].seconds


def usual_sets(score: Score, records: Records) -> usual.MakeSets:
    """The usual prediction sets of a score, rebuilt from the probabilities at every call."""
    make = usual.aps_sets if isinstance(score, APS) else usual.hps_sets
    return functools.partial(make, records.probabilities)


def contestants(score: Score, records: Records) -> dict[str, Callable[[], float]]:
    """Every way to the threshold, end to end from probabilities."""

    def tacit() -> float:
        return nacp(
            records.probabilities, records.labels, beta=records.beta, score=score, alpha=ALPHA
        ).threshold

    def bisect(make_sets: usual.MakeSets) -> float:
        k = records.probabilities.shape[1]
        return usual.bisection(make_sets, records.labels, k, float(records.beta), ALPHA)

    def bisect_sorted_once() -> float:
        scores = usual.aps_scores(records.probabilities)
        return bisect(lambda threshold: usual.members(scores <= threshold))

    ways = {TACIT: tacit, USUAL: lambda: bisect(usual_sets(score, records))}
    return {**ways, SORTED_ONCE: bisect_sorted_once} if isinstance(score, APS) else ways


def check(outcome: Outcome, records: Records) -> None:
    """Hold both thresholds against the usual curve: crossings both, and none above ours.

    The bisection finds some crossing to within its last step. Ours must be one too (below the
    target just before it, not below at it), and may not lie below theirs.
    """
    ours, k = outcome.runs[TACIT].result, records.probabilities.shape[1]
    make_sets = usual_sets(outcome.score, records)

    def covered(threshold: float) -> float:
        return usual.coverage(make_sets(threshold), records.labels, k, float(records.beta))

    crosses = covered(ours - ROUNDING) < 1 - ALPHA + ROUNDING
    crosses = crosses and covered(ours + ROUNDING) >= 1 - ALPHA - ROUNDING
    if not crosses or outcome.lower_by < -(2.0**-usual.STEPS):
        raise RuntimeError(f"The two thresholds disagree at {outcome.name}.")


def measure_cell(cell: Cell, score: Score) -> Outcome:
    """Measure one size and score, and check that the thresholds agree."""
    progress(f"{score.name}, n = {cell.n}, k = {cell.k}")
    records = make_records(cell.n, cell.k, np.random.default_rng(cell.k))
    outcome = Outcome(cell, score, interleaved(contestants(score, records), cell.repeats))
    check(outcome, records)
    return outcome


def show(outcomes: list[Outcome]) -> None:
    """Print the cells."""
    rows = [
        (
            outcome.name,
            contestant,
            f"{run.seconds:.4f}",
            f"{outcome.times_faster_than(contestant):.1f}×",
            f"{run.result:.9f}",
        )
        for outcome in outcomes
        for contestant, run in outcome.runs.items()
    ]
    title = f"NACP threshold, ε = {EPSILON:g}, 1-α = {1 - ALPHA:g} (best of runs in turns)"
    show_table(title, ("cell", "way", "seconds", "of tacit", "threshold"), rows)
    print(
        "  Where F̂^c crosses the target often, a bisection may end at a lower crossing.\n"
        f"  The usual way takes {usual.STEPS} halvings, to tell a score from its neighbour.\n"
        f"  Research code stops at 5e-5, after {usual.PUBLISHED_STEPS}: "
        f"in {PUBLISHED_SHARE:.0%} of the time."
    )


def measure_stream(records: int) -> dict[str, float]:
    """Rate and peak memory of the sketch, measured in a process of its own."""
    progress(f"coverage sketch, n = {records}, k = {STREAM_CLASSES}")
    script = Path(__file__).with_name("stream.py")
    command = [sys.executable, str(script), str(records), str(STREAM_CLASSES)]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    figures = json.loads(output)
    rate, megabytes = figures["records_per_second"], figures["peak_bytes"] / 1e6
    rows = [(f"n={records}, k={STREAM_CLASSES}", f"{rate:,.0f}", f"{megabytes:.0f}")]
    show_table("Coverage sketch (APS), in chunks", ("stream", "records/s", "peak MB"), rows)
    return {"records/s": rate, "peak MB": megabytes}


def measure(quick: bool) -> Report:
    """Measure the stream and every cell.

    The stream comes first: a process that is started inherits, on Linux, the peak of the one that
    starts it, and the cells take more memory than the stream.
    """
    stream = measure_stream(20_000 if quick else STREAM_RECORDS)
    cells = QUICK_CELLS if quick else CELLS
    outcomes = [measure_cell(cell, score) for cell in cells for score in (HPS(), APS())]
    show(outcomes)
    figures = {f"sketch: {name}": value for name, value in stream.items()}
    bars = []
    for outcome in outcomes:
        for contestant, run in outcome.runs.items():
            figures[f"{outcome.name}: {contestant}, s"] = run.seconds
        at_least = AT_LEAST.get((outcome.score.name, outcome.cell.k), AT_LEAST_ELSEWHERE)
        ratio = outcome.times_faster_than(USUAL)
        bars.append(Bar(f"{outcome.name}: {USUAL} / {TACIT}", ratio, at_least=at_least))
        figures[f"{outcome.name}: {USUAL} at 5e-5 / {TACIT}"] = ratio * PUBLISHED_SHARE
    bars.append(Bar("sketch: peak MB", stream["peak MB"], at_most=STREAM_MEGABYTES))
    return Report("threshold", figures, tuple(bars))


if __name__ == "__main__":
    main(measure)
