"""The operator's commands killed with SIGKILL at every commit: nothing is half done."""

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tacit.protocol import Invitation, Role
from tests.e2e.kill_points import Story, killed_at
from tests.support import tiny_models
from tests.support.exactly_once import rows
from tests.support.killable import Kill
from tests.support.scene import KILLED, Service, create_campaign, run, service


@pytest.fixture
def stopped(tmp_path: Path) -> Iterator[Service]:
    with service(tmp_path / "aggregator") as made:
        yield made


def content(database: Path) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of all tables."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        tables = [
            name
            for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        ]
        return {name: connection.execute(f"SELECT * FROM {name}").fetchall() for name in tables}  # noqa: S608 -- our tables


def killed_then_again(
    stopped: Service, kill: Kill, *arguments: str, again: tuple[str, ...] = ()
) -> tuple[bool, Any]:
    """Whether the killed command had done its work, and what it prints when run again."""
    before = content(stopped.database)
    ended = stopped.operate(*arguments, "--json", kill=kill)
    assert ended.returncode == KILLED, ended.stderr
    assert ended.stdout == ""
    applied = content(stopped.database) != before
    assert applied == (kill.moment == "after")
    repeated = stopped.operate(*(again or arguments), "--json")
    assert repeated.returncode == 0, repeated.stderr
    return applied, json.loads(repeated.stdout)


@killed_at(Story.MIGRATES)
def test_a_migration_that_was_killed_is_completed_when_run_again(
    tmp_path: Path, kill: Kill
) -> None:
    database = tmp_path / "aggregator.db"
    variables = {"TACIT_DATABASE_URL": f"sqlite:///{database}", "TACIT_PORT": "0"}

    def migrate(kill: Kill | None = None) -> Any:
        return run("tacit_aggregator", "migrate", "--json", kill=kill, variables=variables)

    assert migrate(kill).returncode == KILLED
    known = rows(database, "SELECT name FROM sqlite_master WHERE name = 'signing_keys'")
    keys = rows(database, "SELECT fingerprint FROM signing_keys") if known else []
    done = migrate()
    assert done.returncode == 0, done.stderr
    made = [(json.loads(done.stdout)["key"],)]
    assert rows(database, "SELECT fingerprint FROM signing_keys") == made
    assert keys in ([], made)
    # The secret opens the key that was made with it.
    assert run("tacit_aggregator", "keys", "rotate", variables=variables).returncode == 0


@killed_at(Story.MINTS)
def test_a_token_whose_command_was_killed_is_not_there_or_is_listed_to_be_revoked(
    stopped: Service, kill: Kill
) -> None:
    create = ("token", "create", "--role", "owner", "--name", "owner")
    applied, made = killed_then_again(stopped, kill, *create)
    listed = {token for (token,) in rows(stopped.database, "SELECT id FROM tokens")}
    assert made["id"] in listed
    assert len(listed) == 1 + applied


@killed_at(Story.REVOKES)
def test_revoking_a_token_again_works_after_the_command_was_killed(
    stopped: Service, kill: Kill
) -> None:
    stopped.aggregator.token(Role.OWNER, "owner")
    ((token,),) = rows(stopped.database, "SELECT id FROM tokens")
    killed_then_again(stopped, kill, "token", "revoke", token)
    ((revoked_at,),) = rows(stopped.database, "SELECT revoked_at FROM tokens")
    assert revoked_at is not None


@killed_at(Story.INVITES)
def test_inviting_again_works_after_the_command_was_killed(
    stopped: Service, kill: Kill, tmp_path: Path
) -> None:
    stopped.start()
    with stopped.owner() as owner:
        digest = create_campaign(owner, 9).digest
    stopped.stop()
    invite = ("invite", "--campaign", digest, "--site", "site", "--url", stopped.url, "--out")
    first, second = str(tmp_path / "first"), str(tmp_path / "second")
    applied, _ = killed_then_again(stopped, kill, *invite, first, again=(*invite, second))
    assert Invitation.from_text(Path(second).read_text()).site == "site"
    contributors = rows(stopped.database, "SELECT id FROM tokens WHERE role = 'contributor'")
    assert len(contributors) == 1 + applied


@killed_at(Story.ROTATES)
def test_there_is_always_one_key_in_use_after_a_rotation_was_killed(
    stopped: Service, kill: Kill
) -> None:
    applied, rotated = killed_then_again(stopped, kill, "keys", "rotate")
    in_use = rows(stopped.database, "SELECT fingerprint FROM signing_keys WHERE retired_at IS NULL")
    assert in_use == [(rotated["fingerprint"],)]
    assert len(rows(stopped.database, "SELECT * FROM signing_keys")) == 2 + applied


@pytest.fixture
def add_model(tmp_path: Path) -> Callable[[], tuple[str, ...]]:
    def arguments() -> tuple[str, ...]:
        file = tiny_models.save_onnx(tmp_path / "tiny.onnx")
        options = ("--name", "tiny", "--dtype", "uint8", "--shape", "4,2")
        return ("models", "add", str(file), *options)

    return arguments


@killed_at(Story.REGISTERS)
def test_a_model_is_registered_once_after_the_command_was_killed(
    stopped: Service, kill: Kill, add_model: Callable[[], tuple[str, ...]]
) -> None:
    _, model = killed_then_again(stopped, kill, *add_model())
    assert rows(stopped.database, "SELECT digest FROM models") == [(model["digest"],)]


@killed_at(Story.REMOVES)
def test_a_model_is_gone_or_still_there_after_the_command_was_killed(
    stopped: Service, kill: Kill, add_model: Callable[[], tuple[str, ...]]
) -> None:
    added = stopped.operate(*add_model(), "--json")
    digest = json.loads(added.stdout)["digest"]
    assert stopped.operate("models", "remove", digest, kill=kill).returncode == KILLED
    again = stopped.operate("models", "remove", digest)
    # What is gone cannot be removed: the second command says so.
    assert again.returncode == (1 if kill.moment == "after" else 0)
    assert rows(stopped.database, "SELECT digest FROM models") == []
