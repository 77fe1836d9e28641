import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Self

import numpy as np
import pytest

from benchmarks import threshold, usual
from benchmarks.__main__ import BENCHMARKS, ROOT, Finished, conclude, run
from benchmarks.harness import Bar, Measured, Report, interleaved, main
from benchmarks.mechanisms import PEERS, peer_rows, peers_python, plain_randomized_response
from benchmarks.peers.environment import Unavailable, make_environment
from benchmarks.synthetic import make_records
from tacit.scores import APS, HPS, Score

REPORT = Report(
    "example",
    {"labels/s": 2.0},
    (Bar("fast", 2.0, at_least=3.0), Bar("small", 100.0, at_most=300.0)),
)


def python(program: str) -> list[str]:
    return [sys.executable, "-c", program]


@pytest.mark.parametrize(
    ("bar", "holds"),
    [
        (Bar("at the limit", 3.0, at_least=3.0), True),
        (Bar("below", 2.9, at_least=3.0), False),
        (Bar("at the limit", 300.0, at_most=300.0), True),
        (Bar("above", 300.1, at_most=300.0), False),
        (Bar("zero is a limit, too", 0.1, at_most=0.0), False),
        (Bar("not a number", math.nan, at_least=3.0), False),
        (Bar("not a number", math.nan, at_most=3.0), False),
        (Bar("not finite", math.inf, at_least=3.0), False),
    ],
)
def test_a_bar_holds_up_to_and_including_its_limit(bar: Bar, holds: bool) -> None:
    assert bar.holds is holds


@pytest.mark.parametrize("limits", [{}, {"at_least": 1.0, "at_most": 2.0}])
def test_a_bar_needs_exactly_one_limit(limits: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="either at_least or at_most"):
        Bar("unclear", 1.0, **limits)


def test_a_report_is_one_line_of_the_promised_shape() -> None:
    line = REPORT.to_json()
    assert "\n" not in line
    assert json.loads(line) == {
        "benchmark": "example",
        "figures": {"labels/s": 2.0},
        "bars": [
            {"name": "fast", "value": 2.0, "at_least": 3.0, "holds": False},
            {"name": "small", "value": 100.0, "at_most": 300.0, "holds": True},
        ],
    }


def test_a_report_survives_its_line() -> None:
    assert Report.from_json(REPORT.to_json()) == REPORT


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_not_finite_is_null_in_the_line_and_does_not_hold_after_it(value: float) -> None:
    line = Report("example", {"rate": value}, (Bar("fast", value, at_least=3.0),)).to_json()
    fields = json.loads(line)
    assert fields["figures"]["rate"] is fields["bars"][0]["value"] is None
    again = Report.from_json(line)
    assert math.isnan(again.figures["rate"])
    assert not again.bars[0].holds


def test_json_is_the_last_line_only_when_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    main(lambda _quick: REPORT, ["--json"])
    *table, last = capsys.readouterr().out.splitlines()
    assert Report.from_json(last) == REPORT
    assert any("DOES NOT HOLD" in line for line in table)
    main(lambda _quick: REPORT, [])
    assert capsys.readouterr().out.splitlines() == table


def test_a_benchmark_is_told_to_be_quick() -> None:
    told: list[bool] = []

    def measure(quick: bool) -> Report:
        told.append(quick)
        return REPORT

    main(measure, ["--quick"])
    main(measure, [])
    assert told == [True, False]


def test_contestants_take_turns_and_the_last_result_is_kept() -> None:
    turns: list[str] = []

    def contestant(name: str) -> int:
        turns.append(name)
        return len(turns)

    measured = interleaved({name: partial(contestant, name) for name in "ab"}, repeats=3)
    assert turns == list("ababab")
    assert {name: one.result for name, one in measured.items()} == {"a": 5, "b": 6}


def test_the_best_time_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 5.0, 10.0, 12.0, 20.0, 29.0])
    monkeypatch.setattr("benchmarks.harness.time.perf_counter", lambda: next(clock))
    assert interleaved({"a": lambda: None}, repeats=3)["a"].seconds == 2.0


def test_a_run_passes_on_the_table_and_keeps_the_report(
    capsys: pytest.CaptureFixture[str],
) -> None:
    finished = run("example", python(f"print('a table'); print({REPORT.to_json()!r})"))
    assert finished == Finished("example", REPORT.bars)
    assert capsys.readouterr().out == "a table\n"


def test_a_line_of_a_table_is_passed_on_before_the_next_one_comes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    passed_on: list[str] = []

    class TableThenReport:
        returncode = 0

        def __init__(self, *_: object, **__: object) -> None:
            self.stdout = self.lines()

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None:
            return

        def lines(self) -> Iterator[str]:
            yield "last row\n"
            passed_on.append(capsys.readouterr().out)
            yield "{not the report}\n"
            passed_on.append(capsys.readouterr().out)
            yield f"{REPORT.to_json()}\n"
            passed_on.append(capsys.readouterr().out)

    monkeypatch.setattr("benchmarks.__main__.subprocess.Popen", TableThenReport)
    assert run("example", []) == Finished("example", REPORT.bars)
    assert passed_on == ["last row\n", "", "{not the report}\n"]


@pytest.mark.parametrize(
    ("program", "failure"),
    [
        ("print('a table'); raise SystemExit(3)", "exit code 3"),
        ("print('a table')", "not a report"),
        ("print('[]')", "not a report"),
        ("print('{\"figures\": []}')", "not a report"),
        ("", "not a report"),
    ],
)
def test_a_benchmark_that_fails_is_reported(
    program: str, failure: str, capsys: pytest.CaptureFixture[str]
) -> None:
    finished = run("example", python(program))
    assert conclude([finished]) == 1
    assert failure in capsys.readouterr().out.splitlines()[-1]


def test_the_end_names_the_bars_that_do_not_hold_and_no_others(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert conclude([Finished("example", REPORT.bars)]) == 1
    assert capsys.readouterr().out.splitlines()[1:] == [
        "Bars that do not hold:",
        "  example: fast: 2, at least 3 asked",
    ]


def test_the_end_says_so_when_all_bars_hold(capsys: pytest.CaptureFixture[str]) -> None:
    assert conclude([Finished("one", REPORT.bars[1:]), Finished("two", REPORT.bars[1:])]) == 0
    assert "All 2 bars hold." in capsys.readouterr().out


def test_after_a_quick_run_only_a_benchmark_that_fails_counts(
    capsys: pytest.CaptureFixture[str],
) -> None:
    slow = Finished("slow", REPORT.bars)
    assert conclude([slow], quick=True) == 0
    assert "with --quick they mean nothing" in capsys.readouterr().out
    assert conclude([slow, Finished("broken", failure="it broke")], quick=True) == 1
    assert capsys.readouterr().out.splitlines()[1:] == [
        "Benchmarks that do not run:",
        "  broken: it broke",
    ]


def test_all_benchmarks_can_be_run_by_path_from_anywhere(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "__main__.py"), "--help"]
    told = subprocess.run(command, check=True, capture_output=True, text=True, cwd=tmp_path).stdout
    assert "--quick" in told


def test_a_terminal_that_knows_only_ascii_gets_the_figures() -> None:
    environment = {**os.environ, "LC_ALL": "C", "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "benchmarks.mechanisms", "--quick"]
    told = subprocess.run(command, check=True, capture_output=True, cwd=ROOT, env=environment)
    assert told.stdout.isascii()
    assert b"k-RR, k = 10, ? = 1" in told.stdout


def test_the_ratio_at_the_published_precision_is_among_the_figures() -> None:
    report = threshold.measure(quick=True)
    (published, *_) = [
        name for name in report.figures if name.startswith("hps, n=300, k=10: usual at 5e-5")
    ]
    (full, *_) = [bar for bar in report.bars if bar.name.startswith("hps, n=300, k=10")]
    assert report.figures[published] == pytest.approx(full.value / 2)


def run_quickly(command: Sequence[str], folder: Path) -> Report:
    output = subprocess.run(
        [sys.executable, *command, "--quick", "--json"],
        check=True,
        capture_output=True,
        text=True,
        cwd=folder,
    ).stdout
    return Report.from_json(output.splitlines()[-1])


@pytest.mark.parametrize(
    "name",
    # It starts two databases and four servers, twice.
    [pytest.param(name, marks=pytest.mark.long if name == "ingest" else ()) for name in BENCHMARKS],
)
def test_every_benchmark_runs_as_a_module_and_by_path_from_anywhere(
    name: str, tmp_path: Path
) -> None:
    as_module = run_quickly(["-m", f"benchmarks.{name}"], ROOT)
    by_path = run_quickly([str(ROOT / "benchmarks" / f"{name}.py")], tmp_path)
    assert as_module.benchmark == by_path.benchmark == name
    assert as_module.bars
    assert [bar.name for bar in as_module.bars] == [bar.name for bar in by_path.bars]
    assert all(value > 0 for value in as_module.figures.values())


def test_the_usual_sets_are_those_of_the_formulas() -> None:
    table = np.array([[0.5, 0.125, 0.375], [0.25, 0.5, 0.25]])
    assert [list(held) for held in usual.hps_sets(table, 0.625)] == [[0, 2], [1]]
    assert [len(held) for held in usual.aps_sets(table, 0.5)] == [1, 1]
    assert list(usual.aps_sets(table, 0.9)[0]) == [0, 2]
    assert [sorted(held) for held in usual.aps_sets(table, 1.0)] == [[0, 1, 2], [0, 1, 2]]


def test_the_usual_bisection_ends_at_the_quantile_when_there_is_no_noise() -> None:
    table = np.array([[1 - score, score] for score in np.linspace(0.01, 0.49, 100)])
    labels = np.zeros(100, dtype=np.int64)
    found = usual.bisection(lambda t: usual.hps_sets(table, t), labels, 2, 0.0, 0.1)
    assert found == pytest.approx(np.sort(1 - table[:, 0])[89], abs=2.0**-usual.STEPS)


def test_plain_numpy_is_randomized_response() -> None:
    """4e5 draws; a share off by 8 standard deviations has probability below 1e-14."""
    k, epsilon, n = 4, 1.0, 400_000
    reports = plain_randomized_response(np.full(n, 2), k, epsilon)
    kept = math.exp(epsilon) / (math.exp(epsilon) + k - 1)
    expected = np.where(np.arange(k) == 2, kept, (1 - kept) / (k - 1))
    deviation = np.sqrt(expected * (1 - expected) / n)
    assert (np.abs(np.bincount(reports, minlength=k) / n - expected) < 8 * deviation).all()


def test_peers_that_cannot_be_installed_are_said_to_be_unavailable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run_without_network(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        if "pip" in command:
            raise subprocess.CalledProcessError(1, command, stderr="much ado\nno such package\n")
        return subprocess.CompletedProcess(command, 0, stdout="")

    monkeypatch.setattr("benchmarks.peers.environment.subprocess.run", run_without_network)
    for _ in range(2):  # what could not be made is not taken for made
        with pytest.raises(Unavailable, match=r"cannot be installed \(no such package\)"):
            make_environment(tmp_path / "peers")


def test_the_other_rows_stand_without_the_peers(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> Path:
        raise Unavailable("there is no network")

    monkeypatch.setattr("benchmarks.mechanisms.make_environment", refuse)
    rows = list(peer_rows(10, peers_python()))
    assert [row.name for row in rows] == list(PEERS)
    assert {(row.rate, row.note) for row in rows} == {(None, "not available: there is no network")}


@pytest.mark.parametrize("score", [HPS(), APS()])
@pytest.mark.parametrize("shift", [-0.01, 0.01])
def test_the_check_refuses_a_threshold_that_is_no_crossing(score: Score, shift: float) -> None:
    records = make_records(300, 10, np.random.default_rng(1))
    exact = threshold.contestants(score, records)[threshold.TACIT]()
    usual_way = {threshold.USUAL: Measured(1.0, 0.0)}
    cell = threshold.Cell(300, 10, 1)
    right = {threshold.TACIT: Measured(1.0, exact), **usual_way}
    wrong = {threshold.TACIT: Measured(1.0, exact + shift), **usual_way}
    threshold.check(threshold.Outcome(cell, score, right), records)
    with pytest.raises(RuntimeError, match="disagree"):
        threshold.check(threshold.Outcome(cell, score, wrong), records)


def test_the_check_refuses_a_threshold_below_the_bisections() -> None:
    records = make_records(300, 10, np.random.default_rng(1))
    exact = threshold.contestants(HPS(), records)[threshold.TACIT]()
    runs = {threshold.TACIT: Measured(1.0, exact), threshold.USUAL: Measured(1.0, exact + 1e-6)}
    with pytest.raises(RuntimeError, match="disagree"):
        threshold.check(threshold.Outcome(threshold.Cell(300, 10, 1), HPS(), runs), records)
