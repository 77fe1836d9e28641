from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tacit.protocol import ServerInfo
from tacit_client import errors
from tacit_client.cli import checks
from tacit_client.cli.exits import ExitCode
from tacit_client.cli.fixes import fix_of
from tacit_client.errors import (
    AnswerTooLarge,
    InvalidPolicy,
    LedgerError,
    NotAServer,
    TacitClientError,
    TransportError,
)
from tacit_client.home import Home
from tacit_client.transport import Network
from tests.support.cli import NOWHERE, Site, tacit
from tests.support.cli_files import campaign

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def info(protocol: str = "1.1", key: str = "a" * 64) -> ServerInfo:
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


def test_a_damaged_ledger_is_not_mended_by_waiting(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "ledger.db").write_bytes(b"this is no database, " * 100)
    found = tacit("doctor", "--json", home=home).json
    checks = {check["name"]: check for check in found["checks"]}
    assert "damaged" in checks["ledger"]["problem"]
    assert "Put a copy" in checks["ledger"]["fix"]
    assert "Wait" not in checks["ledger"]["fix"]
    assert checks["server"]["state"] == "not checked"
    assert "the ledger cannot be read" in checks["server"]["found"]


@pytest.mark.parametrize("kind", [LedgerError, TransportError, InvalidPolicy])
def test_every_error_of_a_check_has_its_own_fix(kind: type[TacitClientError]) -> None:
    kinds = [each for each in vars(errors).values() if isinstance(each, type)]
    ours = [each for each in kinds if issubclass(each, kind) and each is not TransportError]
    for each in ours:
        assert "Ask the operator about" not in fix_of(each(), "here")
    same = {NotAServer, AnswerTooLarge}
    fixes = [fix_of(each(), "here") for each in ours if each not in same]
    assert len(set(fixes)) == len(fixes)


def test_what_is_not_checked_is_not_said_to_be_well(tmp_path: Path) -> None:
    ended = tacit("doctor", "--json", home=tmp_path / "home")
    assert ended.json["ok"] is True
    assert ended.json["not_checked"] == ["server"]
    assert {c["state"] for c in ended.json["checks"] if c["name"] == "server"} == {"not checked"}
    assert checks.check_key(info(), None).state is checks.State.NOT_CHECKED


def test_looking_changes_nothing_at_a_place_without_ledger(tmp_path: Path) -> None:
    assert tacit("doctor", home=tmp_path / "home").code == 0
    assert not (tmp_path / "home").exists()


def test_a_proxys_password_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://somebody:hidden@proxy.example:3128")
    proxy = checks.check_network(Network())[0]
    assert "proxy.example:3128" in proxy.found
    assert "hidden" not in proxy.found
    assert "somebody" not in proxy.found
