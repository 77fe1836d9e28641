import sqlite3
from pathlib import Path

import pytest

from tacit_client.cli.exits import ExitCode
from tests.support.cli import Site
from tests.support.cli_files import campaign


@pytest.fixture
def site(tmp_path: Path) -> Site:
    joined = Site.invited(tmp_path, campaign())
    assert joined.join("--json").code == 0
    return joined


def keys(site: Site) -> list[tuple[object, ...]]:
    with sqlite3.connect(site.home / "ledger.db") as connection:
        return connection.execute("SELECT campaign_key, token FROM campaigns").fetchall()


def test_leaving_without_its_server_fails_unless_it_is_offline(site: Site) -> None:
    ended = site.run("leave", "--yes")
    assert ended.code == ExitCode.TRY_LATER
    assert keys(site) != [(None, None)]
    left = site.run("leave", "--offline", "--yes")
    assert left.code == 0
    assert "The server was not told" in left.out
    assert keys(site) == [(None, None)]


def test_leaving_offline_twice_is_told_once(site: Site) -> None:
    assert site.run("leave", "--offline", "--yes", "--json").json["state"] == "left"
    again = site.run("leave", site.campaign.digest, "--offline")
    assert again.code == 0
    assert "not told" not in again.out
