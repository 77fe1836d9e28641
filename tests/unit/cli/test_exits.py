import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import tacit.errors as core
import tacit_client.errors as client
from tacit.errors import InvalidEpsilon, UpgradeRequired, WrongSignature
from tacit.protocol import Problem, Problems
from tacit_client.cli import registering
from tacit_client.cli.app import app
from tacit_client.cli.errors import BadFile
from tacit_client.cli.exits import MEANINGS, ExitCode, exit_code, sentence
from tests.support.cli import Ended, tacit

REFERENCE = Path(__file__).parents[3] / "docs" / "reference" / "command-line.md"


def problem(kind: Problems) -> client.ServerProblem:
    value = kind.value
    document = Problem(
        type=value.urn, title=value.title, status=value.status, detail="Why.", next=value.next
    )
    return client.problem_error(document)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RuntimeError("oops"), ExitCode.MISTAKE),
        (BadFile(), ExitCode.BAD_INPUT),
        (client.BadRecords(), ExitCode.BAD_INPUT),
        (client.RecordsAbsent(), ExitCode.BAD_INPUT),
        (client.RecordsAbsent.so_many(60), ExitCode.BAD_INPUT),
        (client.InvalidPolicy(), ExitCode.BAD_INPUT),
        (client.NotJoined(), ExitCode.BAD_INPUT),
        (client.InsecureUrl(), ExitCode.BAD_INPUT),
        (InvalidEpsilon(), ExitCode.BAD_INPUT),
        (UpgradeRequired(), ExitCode.BAD_INPUT),
        (FileNotFoundError(2, "No such file", "x.csv"), ExitCode.BAD_INPUT),
        (client.PolicyRefused(), ExitCode.REFUSED_HERE),
        (client.BudgetExceeded(), ExitCode.REFUSED_HERE),
        (client.LedgerInUse(), ExitCode.REFUSED_HERE),
        (client.AnotherLedger(), ExitCode.REFUSED_HERE),
        (client.LedgerRestored(), ExitCode.REFUSED_HERE),
        (client.AlreadyLeft(), ExitCode.REFUSED_HERE),
        (client.CampaignEnded(), ExitCode.REFUSED_THERE),
        (client.Unreachable(), ExitCode.TRY_LATER),
        (client.CertificateRefused(), ExitCode.TRY_LATER),
        (client.Timeout(), ExitCode.TRY_LATER),
        (client.NotYetOpen(opens_in=60.0), ExitCode.TRY_LATER),
        (client.NotOver(), ExitCode.TRY_LATER),
        (client.BadTerms(), ExitCode.BAD_INPUT),
        (client.NotAServer(), ExitCode.TRY_LATER),
        (client.NotEnoughRecords(needed=7), ExitCode.REFUSED_THERE),
        (client.TermsDiffer(), ExitCode.UNVERIFIED),
        (WrongSignature(), ExitCode.UNVERIFIED),
        (KeyboardInterrupt(), ExitCode.INTERRUPTED),
    ],
)
def test_an_error_has_its_exit_code_and_a_sentence(error: BaseException, code: ExitCode) -> None:
    assert exit_code(error) is code
    assert sentence(error).endswith(".")
    assert "\n" not in sentence(error)


@pytest.mark.parametrize("kind", Problems)
def test_a_problem_is_to_be_tried_later_if_its_type_may_be_and_refused_for_good_if_not(
    kind: Problems,
) -> None:
    expected = ExitCode.TRY_LATER if kind.value.may_retry else ExitCode.REFUSED_THERE
    assert exit_code(problem(kind)) is expected


def test_every_error_of_ours_but_a_process_that_failed_has_a_code_of_its_own() -> None:
    ours = [
        kind
        for module in (core, client)
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, core.TacitError | client.TacitClientError)
    ]
    assert len(ours) > 40
    mistakes = {
        kind
        for kind in ours
        if not issubclass(kind, client.ServerProblem)
        and exit_code(kind.__new__(kind)) is ExitCode.MISTAKE
    }
    assert mistakes == {client.TacitClientError, client.AggregatorFailed}


def test_every_exit_code_is_in_the_help_and_in_the_reference() -> None:
    shown = " ".join(tacit("--help").out.replace("│", " ").split())
    page = REFERENCE.read_text()
    assert set(MEANINGS) == set(ExitCode)
    for code, meaning in MEANINGS.items():
        assert f"{code.value} {meaning}" in shown
        assert f"| {code.value} | {meaning}" in page


def test_every_command_is_in_the_reference() -> None:
    page = REFERENCE.read_text()
    group = typer.main.get_command(app)
    names = {
        f"{name} {inner}".strip()
        for name, command in group.commands.items()  # type: ignore[attr-defined]  # a group has
        for inner in (getattr(command, "commands", None) or {"": None})
    }
    assert len(names) >= 19
    assert sorted(name for name in names if f"`tacit {name}" not in page) == []


def failing(error: BaseException) -> Ended:
    """How a command ends that fails in this way."""
    alone = typer.Typer()

    def fail(run: registering.Run) -> None:
        assert not run.json
        raise error

    registering.command(alone, "fail")(fail)
    result = CliRunner().invoke(alone, [])
    return Ended(result.exit_code, result.stdout, result.stderr)


def test_a_mistake_in_tacit_shows_no_words_of_the_exception(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("TACIT_DEBUG", raising=False)
    mistake = KeyError("the label of somebody")
    ended = failing(mistake)
    assert ended.code == ExitCode.MISTAKE
    assert "mistake in Tacit (KeyError)" in ended.err
    assert "somebody" not in ended.err + ended.out
    monkeypatch.setenv("TACIT_DEBUG", "1")
    assert "Traceback" in failing(mistake).err


def test_an_interrupted_command_is_130_and_says_to_run_it_again() -> None:
    ended = failing(KeyboardInterrupt())
    assert ended.code == ExitCode.INTERRUPTED
    assert "nothing is lost; run the same command again" in ended.err


@pytest.mark.skipif(os.name == "nt", reason="signals as on POSIX")
def test_control_c_stops_a_running_command_with_130(tmp_path: Path) -> None:
    fifo = tmp_path / "invitation"
    os.mkfifo(fifo)  # nobody writes into it: the command waits there
    process = subprocess.Popen(
        [sys.executable, "-m", "tacit_client.cli", "join", str(fifo)],
        env={**os.environ, "TACIT_HOME": str(tmp_path / "home")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with fifo.open("w"):  # opening waits until the command reads
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert out == b""
    assert b"run the same command again" in err
