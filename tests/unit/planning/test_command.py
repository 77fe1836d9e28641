import json
import os
import subprocess
import sys

import pytest

from tacit.planning import plan_labels, plan_scores
from tacit.planning.__main__ import main

Capture = pytest.CaptureFixture[str]


def test_the_command_prints_a_row_for_every_combination(capsys: Capture) -> None:
    assert main(["--n", "1000", "9000", "--k", "10", "20", "--epsilon", "1", "2.5"]) == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if line[:6].strip()[:1].isdigit()]
    found = {tuple(row.split()[:3]) for row in rows}
    wanted = {(n, k, e) for n in ("1,000", "9,000") for k in ("10", "20") for e in ("1", "2.5")}
    assert len(rows) == 8
    assert found == wanted


def test_the_row_has_the_numbers_of_the_plans_and_marks_what_is_not_certifiable(
    capsys: Capture,
) -> None:
    assert main(["--n", "2000", "--k", "10", "--epsilon", "4"]) == 0
    row = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("2,000"))
    labels, scores = plan_labels(2000, 10, 4, 0.1, 0.05), plan_scores(2000, 4, 0.1, 0.05)
    assert row.split()[3:7] == [
        f"{labels.correction:.3f}",
        f"{labels.needed:,}",
        f"{scores.correction:.3f}!",
        f"{scores.needed:,}",
    ]
    assert row.endswith("L    the only Δ below α")


def test_columns_are_aligned(capsys: Capture) -> None:
    assert main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    start = next(index for index, line in enumerate(lines) if "because" in line)
    column = lines[start].index("use")
    rows = lines[start + 1 : lines.index("", start)]
    assert len(rows) == 18
    assert {row[column] for row in rows} == {"L", "S"}
    assert {row[column - 2 : column] for row in rows} == {"  "}


def test_a_newcomer_is_told_what_delta_means_and_what_is_protected(capsys: Capture) -> None:
    assert main(["--n", "2000"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    for needed in (
        "Δ is the price of finite n and of privacy, in coverage",
        "features or probabilities, which are disclosed",
        "ε protects the whole record",
        "Shuffling does not amplify ε",
        "rule of thumb without a δ",
        "not proved",
    ):
        assert needed in text


def test_json_has_every_number_and_null_for_an_infinite_delta(capsys: Capture) -> None:
    assert main(["--n", "3", "5000", "--k", "10", "--epsilon", "2", "--json"]) == 0
    few, enough = json.loads(capsys.readouterr().out)
    assert few["scores"]["correction"] is None
    assert few["scores"]["shuffled_epsilon_rule_of_thumb"] is None
    assert enough["use"] == "labels"
    plan = plan_labels(5000, 10, 2, 0.1, 0.05)
    assert enough["labels"]["correction"] == plan.correction
    assert enough["labels"]["certifiable"] is True
    assert enough["scores"]["needed"] == plan_scores(5000, 2, 0.1, 0.05).needed


def test_features_that_stay_change_the_method(capsys: Capture) -> None:
    terms = ["--n", "9000", "--k", "10", "--epsilon", "4", "--json"]
    main(terms)
    assert json.loads(capsys.readouterr().out)[0]["use"] == "labels"
    main([*terms, "--features-stay"])
    assert json.loads(capsys.readouterr().out)[0]["use"] == "scores"


@pytest.mark.parametrize(
    "terms",
    [
        ["--n", "0"],
        ["--k", "1"],
        ["--epsilon", "-1"],
        ["--epsilon", "nan"],
        ["--epsilon", "1e-30"],
        ["--alpha", "1"],
        ["--delta", "0"],
        ["--tau", "-1"],
    ],
)
def test_a_value_out_of_range_is_one_sentence_and_exit_code_two(
    terms: list[str], capsys: Capture
) -> None:
    assert main(terms) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("tacit.planning: ")
    assert captured.err.endswith(".\n")
    assert captured.err.count("\n") == 1


def test_a_word_where_a_number_belongs_is_exit_code_two(capsys: Capture) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["--n", "many"])
    assert stopped.value.code == 2
    assert "'many' is not a whole number" in capsys.readouterr().err


def test_whole_numbers_may_be_written_with_an_exponent(capsys: Capture) -> None:
    assert main(["--n", "2e4", "--k", "1e1", "--json"]) == 0
    assert {plan["labels"]["n"] for plan in json.loads(capsys.readouterr().out)} == {20_000}


@pytest.mark.parametrize("text", ["1.5", "1e-1", "inf", "nan", "1e999"])
def test_a_number_that_is_not_whole_is_exit_code_two(text: str, capsys: Capture) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["--n", text])
    assert stopped.value.code == 2
    assert f"'{text}' is not a whole number" in capsys.readouterr().err


def test_fewer_records_than_rounds_have_a_dash_for_what_they_cannot_have(capsys: Capture) -> None:
    assert main(["--n", "3", "--k", "10", "--epsilon", "1"]) == 0
    out = capsys.readouterr().out
    row = next(line for line in out.splitlines() if line.startswith("3 "))
    assert row.split()[5] == row.split()[7] == "–"
    assert "inf" not in out


@pytest.mark.parametrize("option", ["--n=2000", "--json", "--help"])
def test_a_terminal_that_knows_only_ascii_gets_the_numbers(option: str) -> None:
    environment = {**os.environ, "LC_ALL": "C", "PYTHONIOENCODING": "ascii"}
    printed = subprocess.run(
        [sys.executable, "-m", "tacit.planning", option],
        check=False,
        env=environment,
        capture_output=True,
    )
    assert (printed.returncode, printed.stderr) == (0, b"")
    assert printed.stdout.isascii()
    if option == "--json":
        assert "ε protects" in json.loads(printed.stdout)[0]["labels"]["protects"]


def test_a_reader_that_leaves_early_is_no_cause_for_a_traceback() -> None:
    readable, writable = os.pipe()
    os.close(readable)
    with os.fdopen(writable, "w") as pipe:
        ended = subprocess.run(
            [sys.executable, "-m", "tacit.planning"],
            check=False,
            stdout=pipe,
            stderr=subprocess.PIPE,
        )
    assert ended.stderr == b""
    assert ended.returncode == 1
