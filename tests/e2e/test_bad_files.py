"""Bad files through the real command: one sentence, an exit code, and nothing drawn."""

from pathlib import Path

import pytest

from tacit_client import Ledger
from tests.support.cli import Site
from tests.support.cli_files import BAD, GOOD, UNSHOWN, Bad, campaign
from tests.support.liar import tacit, told

CHOSEN = (
    "missing file",
    "latin-1",
    "utf-16",
    "empty file",
    "no rows",
    "no id column",
    "no label column",
    "a class without its column",
    "unknown class",
    "duplicate ids",
    "NaN",
    "npz with NaN",
    "pickled npz",
)
"""What the command makes of all the others is in the unit tests; these are run as processes."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    invited = Site.invited(tmp_path_factory.mktemp("site"), campaign())
    joined = tacit(
        invited.home,
        *("join", invited.invitation, "--campaign", invited.signed),
        *("--may-leave", "probabilities"),
    )
    assert joined.returncode == 0, joined.stderr
    return invited


def assert_nothing_was_drawn(home: Path) -> None:
    with Ledger.open(home) as ledger:
        assert ledger.read("SELECT count(*) FROM records") == [(0,)]
        assert ledger.read("SELECT count(*) FROM uploads") == [(0,)]


def test_every_file_that_is_chosen_is_in_the_table() -> None:
    assert set(CHOSEN) <= {bad.name for bad in BAD}


@pytest.mark.parametrize(
    "bad", [bad for bad in BAD if bad.name in CHOSEN], ids=lambda bad: str(bad.name)
)
def test_a_bad_file_is_one_sentence_and_exit_code_two(site: Site, bad: Bad, tmp_path: Path) -> None:
    ended = tacit(site.home, "export", bad.write(tmp_path), "-o", tmp_path / "bundle.zip")
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert ended.stderr.count("\n") == 1
    assert "Traceback" not in ended.stderr
    for words in bad.says:
        assert words in ended.stderr
    assert UNSHOWN not in ended.stderr
    assert not (tmp_path / "bundle.zip").exists()
    assert_nothing_was_drawn(site.home)


def test_the_same_command_takes_a_good_file(site: Site, tmp_path: Path) -> None:
    good = tmp_path / "records.csv"
    good.write_text(GOOD, encoding="utf-8")
    home = tmp_path / "home"
    options = ("--campaign", site.signed, "--may-leave", "probabilities")
    assert tacit(home, "join", site.invitation, *options).returncode == 0
    ended = tacit(home, "export", good, "-o", tmp_path / "bundle.zip", "--json")
    assert (ended.returncode, told(ended)["drawn"]) == (0, 3)
