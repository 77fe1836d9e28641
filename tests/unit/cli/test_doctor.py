from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tacit.protocol import ServerInfo
from tacit_client.cli import checks
from tacit_client.cli.exits import ExitCode
from tacit_client.home import Home
from tacit_client.transport import Network
from tests.support.cli import NOWHERE, Site, tacit
from tests.support.cli_files import campaign

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def info(protocol: str = "1.0", key: str = "a" * 64) -> ServerInfo:
    return ServerInfo(
        service="tacit-aggregator",
        version="0.1.0",
        protocols=(protocol,),
        time=NOW,
        keys=(key,),
        most_body_bytes=1,
    )


@pytest.mark.parametrize(("seconds", "says"), [(300, "ahead of"), (-300, "behind")])
def test_a_clock_that_is_wrong_is_a_problem(seconds: int, says: str) -> None:
    check = checks.check_clock(info(), NOW + timedelta(seconds=seconds))
    assert check.problem is not None
    assert f"300 s {says}" in check.problem
    assert "NTP" in str(check.fix)
    assert checks.check_clock(info(), NOW + timedelta(seconds=seconds / 10)).problem is None


def test_another_protocol_and_another_key_are_problems() -> None:
    assert checks.check_protocol(info()).problem is None
    assert checks.check_protocol(info("9.0")).code is ExitCode.REFUSED_THERE
    assert checks.check_key(info(), "a" * 64).problem is None
    assert checks.check_key(info(), "b" * 64).code is ExitCode.UNVERIFIED


def test_a_server_that_is_not_there_is_exit_code_four(tmp_path: Path) -> None:
    ended = tacit("doctor", "--url", NOWHERE, "--json", home=tmp_path / "home")
    assert ended.code == ExitCode.TRY_LATER
    problem = ended.json["checks"][-1]
    assert problem["name"] == "server"
    assert NOWHERE in problem["fix"]


def test_an_old_copy_of_the_ledger_is_noticed(tmp_path: Path) -> None:
    site = Site.invited(tmp_path, campaign())
    assert site.join().code == 0
    Home(site.home).witness.unlink()
    ended = site.run("doctor", "--json")
    assert ended.code == ExitCode.REFUSED_HERE
    problem = next(check for check in ended.json["checks"] if check["name"] == "ledger")
    assert "old copy" in problem["problem"]


def test_looking_changes_nothing_at_a_place_without_ledger(tmp_path: Path) -> None:
    assert tacit("doctor", home=tmp_path / "home").code == 0
    assert not (tmp_path / "home").exists()


def test_a_proxys_password_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://somebody:hidden@proxy.example:3128")
    proxy = checks.check_network(Network())[0]
    assert "proxy.example:3128" in proxy.found
    assert "hidden" not in proxy.found
    assert "somebody" not in proxy.found
