import json

import pytest

from tacit.planning.__main__ import main as planning
from tacit_client.cli.exits import ExitCode
from tests.support.cli import tacit

TERMS = ("--alpha", "0.2", "--delta", "0.01")


def test_plan_prints_what_the_core_prints(capsys: pytest.CaptureFixture[str]) -> None:
    planning(["--n", "1000", "20000", "--k", "10", "--epsilon", "1", "4", *TERMS])
    expected = capsys.readouterr().out
    assert tacit("plan", "--n", "1000,2e4", "--k", "10", "--epsilon", "1,4", *TERMS).out == expected


def test_plan_has_the_same_figures_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    planning(["--features-stay", "--json"])
    expected = json.loads(capsys.readouterr().out)
    assert tacit("plan", "--features-stay", "--json").json == {"plans": expected}


@pytest.mark.parametrize(
    "options", [("--n", "0"), ("--k", "x"), ("--epsilon", "1,y"), ("--alpha", "1")]
)
def test_a_value_out_of_range_is_a_sentence_and_exit_code_two(options: tuple[str, str]) -> None:
    ended = tacit("plan", *options)
    assert ended.code == ExitCode.BAD_INPUT
    assert ended.out == ""
    assert ended.err.startswith("tacit: ")
