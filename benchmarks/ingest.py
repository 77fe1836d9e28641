"""Uploads per second from the socket to the count, beside a bare endpoint that only stores them.

Both are real processes with one worker, on a fully synced SQLite file and on PostgreSQL, and take
the same bodies from the same load over as many connections. What the site spends before it sends
is measured apart.
"""

import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # to be run by path, too

from benchmarks.harness import Bar, Report, main, progress, show_table
from benchmarks.ingest_stage import ENGINES, Engine, Stage, Turn
from benchmarks.ingest_trials import BARE, TACIT, Case, best, trial_of

TURNS = 5
BUSY = 16
CONNECTIONS = (BUSY, 4, 1)
"""Many sites at once, which the bars are about; few; and one alone, which waits for each commit."""

CASES = (
    Case("uploads of 1000", 1000, 1000, 0.4),
    Case("lone reports", 1, 5000, 0.5),
    Case("score bits, uploads of 1000", 1000, 2000, 0.6, bits=True),
)

Measured = dict[tuple[str, int, Engine], dict[str, Turn]]
"""The best turns by case, connections and database."""


def measure(quick: bool) -> Report:
    """Measure every case at every number of connections on both databases, and check all of it."""
    cases = [replace(case, uploads=20) if quick else case for case in CASES]
    measured: Measured = {}
    figures: dict[str, float] = {}
    for engine in ENGINES:
        with Stage.running(engine) as stage:
            for case in cases:
                progress(f"{engine}, {case.name}: drawing")
                turns = 1 if quick else TURNS
                trial = trial_of(stage, case, turns=1 + turns * len(CONNECTIONS))
                trial.turn(BUSY)  # warms up
                for connections in CONNECTIONS:
                    progress(f"{engine}, {case.name}: connections: {connections}")
                    taken = [trial.turn(connections) for _ in range(turns)]
                    measured[case.name, connections, engine] = best(taken)
                trial.check()
                if trial.client_rate is not None:
                    figures[f"{engine}, {case.name}: client, records/s"] = trial.client_rate
    bars = []
    for case in cases:
        for connections in CONNECTIONS:
            show(case, connections, measured)
        bars.append(_bar(case, measured))
        figures |= _figures(case, measured)
    _show_clients(figures)
    return Report("ingest", figures, tuple(bars))


def show(case: Case, connections: int, measured: Measured) -> None:
    """Print both servers on both databases at one number of connections."""
    rows = []
    for name in (TACIT, BARE):
        row = [name]
        for engine in ENGINES:
            turns = measured[case.name, connections, engine]
            row += [
                f"{case.uploads / turns[name].timing.counted:,.0f}",
                f"{turns[BARE].timing.counted / turns[name].timing.counted:.2f}",
                _processor(case, turns[name]),
                f"{turns[name].timing.own / turns[name].timing.answered:.0%}",
            ]
        rows.append(row)
    columns = ["server"]
    for engine in ENGINES:
        columns += [f"{engine} done/s", "of bare", "processor", "load busy"]
    show_table(f"{case.name}, connections: {connections} (best of turns)", columns, rows)


def _processor(case: Case, turn: Turn) -> str:
    return "-" if turn.processor is None else f"{turn.processor / case.uploads * 1e3:.2f} ms"


def _bar(case: Case, measured: Measured) -> Bar:
    turns = measured[case.name, BUSY, "SQLite"]
    ratio = turns[BARE].timing.counted / turns[TACIT].timing.counted
    return Bar(f"{case.name}: {TACIT} / {BARE}", ratio, case.at_least)


def _figures(case: Case, measured: Measured) -> dict[str, float]:
    figures: dict[str, float] = {}
    for connections in CONNECTIONS:
        for engine in ENGINES:
            for name, turn in measured[case.name, connections, engine].items():
                place = f"{engine}, {case.name}, connections={connections}: {name}"
                figures[f"{place}, uploads/s"] = case.uploads / turn.timing.counted
                figures[f"{place}, answered/s"] = case.uploads / turn.timing.answered
                if turn.processor is not None:
                    figures[f"{place}, processor ms/upload"] = turn.processor / case.uploads * 1e3
    return figures


def _show_clients(figures: dict[str, float]) -> None:
    rows = [
        (name.partition(": client")[0], f"{rate:,.0f}")
        for name, rate in figures.items()
        if name.endswith("client, records/s")
    ]
    show_table("the client, before it sends", ("case", "records/s"), rows)


if __name__ == "__main__":
    main(measure)
