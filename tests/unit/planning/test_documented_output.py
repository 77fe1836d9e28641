"""The pages that show what a command prints show what it prints."""

import doctest
import re
import runpy
import shlex
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
HOW_TO = ROOT / "docs" / "how-to" / "plan-a-campaign.md"
NOTE = ROOT / "docs" / "notes" / "thesis-table-of-corrections.md"
LEFT_OUT = "…"
CONSOLE = re.compile(r"^```console\n\$ python (.*)\n((?:.*\n)*?)```$", re.MULTILINE)


def blocks(page: Path) -> list[tuple[str, str]]:
    """Every command of a page with the output shown below it."""
    return CONSOLE.findall(page.read_text(encoding="utf-8"))


def printed_by(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> str:
    words = shlex.split(command)
    as_module = words[0] == "-m"
    monkeypatch.setattr(sys, "argv", words[1:] if as_module else words)
    try:
        if as_module:
            monkeypatch.delitem(sys.modules, f"{words[1]}.__main__", raising=False)
            runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(str(ROOT / words[0]), run_name="__main__")
    except SystemExit:
        pass
    captured = capsys.readouterr()
    return captured.out + captured.err


def shows(shown: str, printed: str) -> bool:
    """Whether the shown lines are the printed ones, `…` standing for any lines left out."""
    parts = re.split(rf"^{LEFT_OUT}\n", shown, flags=re.MULTILINE)
    return re.fullmatch("(?:.*\n)*?".join(map(re.escape, parts)), printed) is not None


@pytest.mark.parametrize(
    ("command", "shown"), [*blocks(HOW_TO), *blocks(NOTE)], ids=lambda value: value.split("\n")[0]
)
def test_a_command_prints_what_its_page_shows(
    command: str,
    shown: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert shows(shown, printed_by(command, monkeypatch, capsys))


def test_every_console_block_is_checked() -> None:
    for page in (HOW_TO, NOTE):
        fences = page.read_text(encoding="utf-8").count("```console")
        assert len(blocks(page)) == fences > 0


def test_a_changed_number_or_a_missing_line_is_noticed() -> None:
    assert shows("a 1\n…\nc 3\n", "a 1\nb 2\nc 3\n")
    assert not shows("a 1\nc 3\n", "a 1\nb 2\nc 3\n")
    assert not shows("a 1\n…\nc 4\n", "a 1\nb 2\nc 3\n")


def test_the_python_session_of_the_how_to_is_true() -> None:
    text = HOW_TO.read_text(encoding="utf-8").replace("\n```", "\n\n```")
    session = doctest.DocTestParser().get_doctest(text, {}, HOW_TO.name, str(HOW_TO), 0)
    assert session.examples
    assert doctest.DocTestRunner().run(session).failed == 0
