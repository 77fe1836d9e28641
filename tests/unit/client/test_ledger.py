"""The ledger's file: held by one process, private, and no copy as long as its witness agrees."""

import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tacit_client import Home, Ledger, Policy
from tacit_client.errors import (
    LedgerCorrupt,
    LedgerError,
    LedgerInUse,
    LedgerTooNew,
    PolicyRefused,
)
from tests.support.client_world import given, world

HOLDING = "import sys; from tacit_client import Ledger; Ledger.open(sys.argv[1]); print('open')"


def test_a_second_holder_is_refused_in_this_and_in_another_process(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDING, str(tmp_path / "home")]
    with Ledger.open(tmp_path / "home"):
        with pytest.raises(LedgerInUse):
            Ledger.open(tmp_path / "home")
        other = subprocess.run(command, capture_output=True, text=True, check=False)
        assert "LedgerInUse" in other.stderr
    free = subprocess.run(command, capture_output=True, text=True, check=False)
    assert free.stdout == "open\n"


def test_the_ledger_is_free_after_a_refusal(tmp_path: Path) -> None:
    with pytest.raises(PolicyRefused):
        world().join(tmp_path / "home", Policy())
    Ledger.open(tmp_path / "home").close()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such permissions")
def test_only_its_owner_may_read_the_ledger(tmp_path: Path) -> None:
    with world().join(tmp_path / "home") as site:
        site.export(tmp_path / "bundle", **given(3).arguments())
        assert stat.S_IMODE((tmp_path / "home").stat().st_mode) == 0o700
        for path in (tmp_path / "home").glob("ledger.db*"):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_ledger_is_fully_synced_and_overwrites_what_it_erases(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "home") as ledger:
        for pragma, value in (
            ("journal_mode", "wal"),
            ("synchronous", 2),
            ("secure_delete", 1),
            ("recursive_triggers", 1),
        ):
            assert ledger.read(f"PRAGMA {pragma}") == [(value,)]


def test_a_damaged_ledger_is_said_to_be(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.create()
    home.ledger.write_bytes(b"this is not a database, but it is long enough to be read" * 50)
    with pytest.raises(LedgerCorrupt):
        Ledger.open(home)


def test_a_closed_ledger_is_said_to_be_closed_and_not_damaged(tmp_path: Path) -> None:
    site = world().join(tmp_path / "home")
    site.close()
    with pytest.raises(LedgerError, match="closed") as caught:
        site.export(tmp_path / "bundle", **given(3).arguments())
    assert not isinstance(caught.value, LedgerCorrupt)


def test_a_ledger_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    Ledger.open(tmp_path / "home").close()
    connection = sqlite3.connect(tmp_path / "home" / "ledger.db")
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(LedgerTooNew):
        Ledger.open(tmp_path / "home")


def test_an_up_to_date_ledger_is_not_taken_for_a_copy(tmp_path: Path) -> None:
    home, one = tmp_path / "home", world()
    for index in range(4):
        with one.join(home) as site:
            site.export(tmp_path / "bundle", **given(3, prefix=f"{index}-").arguments())
    with Ledger.open(home) as ledger:
        assert ledger.meta.restored_floor is None


def test_a_crash_before_the_witness_was_told_is_no_restoring(tmp_path: Path) -> None:
    home, one = tmp_path / "home", world()
    one.join(home).close()
    witness = Home(home).witness.read_bytes()
    with one.join(home) as site:
        site.export(tmp_path / "bundle", **given(3).arguments())
    Home(home).witness.write_bytes(witness)
    with Ledger.open(home) as ledger:
        assert ledger.meta.restored_floor is None


def test_a_crash_before_the_first_witness_is_no_restoring(tmp_path: Path) -> None:
    Ledger.open(tmp_path / "home").close()
    Home(tmp_path / "home").witness.unlink()
    with world().join(tmp_path / "home") as site:
        assert site.export(tmp_path / "bundle", **given(3).arguments()).drawn == 3


def test_the_witness_lies_outside_the_home(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    assert home.path not in home.witness.parents
    elsewhere = Home(tmp_path / "home", witness=tmp_path / "state" / "witness")
    Ledger.open(elsewhere).close()
    assert elsewhere.witness.exists()
    assert not home.witness.exists()


def test_the_home_is_the_one_that_the_environment_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TACIT_HOME", str(tmp_path / "named"))
    assert Home.default().path == tmp_path / "named"
    monkeypatch.delenv("TACIT_HOME")
    assert Home.default().path.name == "tacit"
