"""The ledger's file: held by one process, private, and noticed when it is an old copy."""

import shutil
import sqlite3
import stat
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tacit_client import Contributor, Home, Ledger, Policy
from tacit_client.errors import (
    LedgerCorrupt,
    LedgerInUse,
    LedgerRestored,
    LedgerTooNew,
    PolicyRefused,
)
from tacit_client.ledger import joined_campaigns
from tests.support.client_world import ALLOWING, given, world

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
        for pragma, value in (("journal_mode", "wal"), ("synchronous", 2), ("secure_delete", 1)):
            assert ledger.read(f"PRAGMA {pragma}") == [(value,)]


def test_a_damaged_ledger_is_said_to_be(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.create()
    home.ledger.write_bytes(b"this is not a database, but it is long enough to be read" * 50)
    with pytest.raises(LedgerCorrupt):
        Ledger.open(home)


def test_a_ledger_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    Ledger.open(tmp_path / "home").close()
    connection = sqlite3.connect(tmp_path / "home" / "ledger.db")
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(LedgerTooNew):
        Ledger.open(tmp_path / "home")


def copied(home: Path, name: str) -> Path:
    return Path(shutil.copytree(home, home.parent / name))


def put_back(copy: Path, home: Path) -> None:
    shutil.rmtree(home)
    shutil.copytree(copy, home)


def test_an_old_copy_put_back_refuses_the_campaigns_of_its_time(tmp_path: Path) -> None:
    home, one = tmp_path / "home", world()
    one.join(home).close()
    old = copied(home, "old")
    with one.join(home) as site:
        site.export(tmp_path / "bundle", **given(3).arguments())
    put_back(old, home)
    with Contributor.open(None, home, ALLOWING) as site:
        with pytest.raises(LedgerRestored, match="new campaign"):
            site.export(tmp_path / "bundle", **given(3).arguments())
        with pytest.raises(LedgerRestored):
            site.preview(**given(3).arguments())
    for _ in range(2):  # it stays so
        with pytest.raises(LedgerRestored):
            world().join(home)


def test_a_campaign_that_opens_after_the_copy_was_put_back_is_welcome(tmp_path: Path) -> None:
    home = tmp_path / "home"
    world().join(home).close()
    old = copied(home, "old")
    world().join(home).close()
    put_back(old, home)
    later = world(opens=datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1))
    with later.join(home) as site:
        assert site.export(tmp_path / "bundle", **given(3).arguments()).drawn == 3


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


@pytest.mark.parametrize("content", [None, b"", b"[]", b"nonsense", b'{"ledger": "x"}'])
def test_a_used_ledger_without_its_witness_counts_as_restored(
    tmp_path: Path, content: bytes | None
) -> None:
    home = tmp_path / "home"
    world().join(home).close()
    Home(home).witness.unlink()
    if content is not None:
        Home(home).witness.write_bytes(content)
    with pytest.raises(LedgerRestored):
        world().join(home)


def test_a_ledger_that_was_deleted_cannot_draw_its_campaigns_again(tmp_path: Path) -> None:
    home, one = tmp_path / "home", world()
    with one.join(home) as site:
        site.export(tmp_path / "bundle", **given(3).arguments())
    shutil.rmtree(home)
    with pytest.raises(LedgerRestored):
        one.join(home)
    with Ledger.open(home) as ledger:
        assert joined_campaigns(ledger) == []


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
