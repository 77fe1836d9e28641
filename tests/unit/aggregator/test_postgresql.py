"""PostgreSQL: durable, one clock for all, snapshots for readers, and silent about rows."""

import builtins
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import structlog
from sqlalchemy import insert, select, text
from sqlalchemy.exc import DBAPIError, IntegrityError

from tacit_aggregator.database.duty import Duty
from tacit_aggregator.database.engine import Database
from tacit_aggregator.database.location import described
from tacit_aggregator.database.lock import Advisory
from tacit_aggregator.database.migrate import upgrade
from tacit_aggregator.database.tables import tokens
from tacit_aggregator.errors import OperatorError
from tacit_aggregator.keys.secret import secret_file
from tacit_aggregator.settings import Settings
from tests.support.aggregator import until
from tests.support.postgres import query, server
from tests.unit.aggregator.test_commands import command
from tests.unit.aggregator.test_database import row, stored

AWAY = "postgresql://ada:marker@127.0.0.1:1/tacit"


@pytest.fixture(scope="module")
def url() -> str:
    made = server().fresh()
    upgrade(made)
    return made


@pytest.fixture
def database(url: str) -> Iterator[Database]:
    made = Database(url, connections=3)
    with made.transaction("empty") as connection:
        connection.execute(tokens.delete())
    yield made
    made.close()


def test_an_acknowledged_commit_is_on_the_disk_whatever_the_servers_default(url: str) -> None:
    name = url.partition("@/")[2].partition("?")[0]
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {name} SET synchronous_commit = off".encode())
    database = Database(url)
    with database.transaction("look") as connection:
        assert connection.execute(text("SHOW synchronous_commit")).scalar_one() == "on"
        assert connection.execute(text("SHOW fsync")).scalar_one() == "on"
        assert connection.execute(text("SHOW transaction_isolation")).scalar_one() == (
            "read committed"
        )
    database.close()


def test_a_reader_sees_one_state_and_can_change_nothing(database: Database) -> None:
    with database.read() as reader:
        assert reader.execute(select(tokens)).all() == []
        with database.transaction("store") as connection:
            connection.execute(insert(tokens).values(**row(1)))
        assert reader.execute(select(tokens)).all() == []
        with pytest.raises(DBAPIError, match="read-only"):
            reader.execute(insert(tokens).values(**row(2)))
    assert stored(database) == 1
    with database.transaction("store") as connection:  # nobody got the reader's isolation
        connection.execute(insert(tokens).values(**row(3)))


def test_transactions_do_not_wait_for_one_another(database: Database) -> None:
    with database.transaction("one") as one, database.transaction("two") as two:
        one.execute(insert(tokens).values(**row(1)))
        two.execute(insert(tokens).values(**row(2)))
    assert stored(database) == 2


def test_the_clock_is_the_databases_and_not_the_servers(database: Database) -> None:
    database.clock = lambda: 0.0
    with database.transaction("look") as connection:
        first = database.now(connection)
        time.sleep(0.01)
        assert first < database.now(connection)  # it does not stand still in a transaction
    assert abs(first - time.time()) < 60


def test_an_error_does_not_show_the_row_that_is_in_the_way(database: Database) -> None:
    with database.transaction("one") as connection:
        connection.execute(insert(tokens).values(**row(1)))
    with pytest.raises(IntegrityError) as raised, database.transaction("two") as connection:
        connection.execute(insert(tokens).values(**row(1)))
    seen = f"{raised.value} {raised.value.orig} {raised.value.__cause__!r}"
    assert "duplicate key" in seen
    assert "already exists" not in seen
    assert row(1)["id"] not in seen  # type: ignore[operator]  # it is text


def test_erased_rows_are_vacuumed(database: Database) -> None:
    assert database.erase_log()


def test_what_others_are_kept_out_of_is_done_by_one_at_a_time(database: Database) -> None:
    inside: list[int] = []
    most: list[int] = []

    def enter(number: int) -> None:
        with database.transaction("enter") as connection:
            database.keep_others_out(connection, "the room")
            inside.append(number)
            most.append(len(inside))
            time.sleep(0.05)
            inside.remove(number)

    threads = [threading.Thread(target=enter, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert most == [1, 1, 1]


def test_one_server_is_on_duty_and_another_takes_over_when_its_session_ends(
    database: Database, url: str
) -> None:
    one, other = Duty(database, Advisory.SCORING), Duty(Database(url), Advisory.SCORING)
    assert one.ask()
    assert one.ask()
    assert not other.ask()
    killed = query(
        url,
        "SELECT pg_terminate_backend(pid) FROM pg_locks"
        " WHERE locktype = 'advisory' AND objid = 3 AND granted"
        " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
    )
    assert killed == [(True,)]
    until(other.ask)
    assert not one.ask()
    other.give_up()
    until(one.ask)
    one.give_up()


def test_on_sqlite_the_only_server_is_always_on_duty(tmp_path: Path) -> None:
    duty = Duty(Database(f"sqlite:///{tmp_path}/a.db"), Advisory.SCORING)
    assert duty.ask()
    duty.give_up()
    assert duty.ask()


def test_a_database_that_does_not_answer_is_a_sentence_without_the_password() -> None:
    began = time.monotonic()
    with pytest.raises(OperatorError, match="no answer from the PostgreSQL database tacit") as told:
        Database(AWAY).wait(1.0)
    assert time.monotonic() - began >= 1.0
    assert "marker" not in str(told.value)
    assert described(AWAY) == "the PostgreSQL database tacit on 127.0.0.1 port 1"


def test_a_command_on_a_database_that_is_away_is_a_sentence(tmp_path: Path) -> None:
    secret = {"TACIT_KEY_SECRET_FILE": "s", "TACIT_DATABASE_WAIT_SECONDS": "0"}
    for name in (("migrate",), ("serve",), ("token", "list")):
        refused = command(tmp_path, *name, TACIT_DATABASE_URL=AWAY, **secret)
        assert refused.returncode == 1
        assert "127.0.0.1" in refused.stderr
        assert refused.stderr.count("\n") == 1
        assert "marker" not in refused.stderr + refused.stdout


def test_settings_do_not_show_the_password() -> None:
    assert "marker" not in repr(Settings(database_url=AWAY))


def test_the_secret_needs_a_place_of_its_own() -> None:
    with pytest.raises(OperatorError, match="TACIT_KEY_SECRET_FILE"):
        secret_file(Settings(database_url=AWAY))
    place = Path("s")
    assert secret_file(Settings(database_url=AWAY, key_secret_file=place)) == place


def test_without_the_driver_one_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real: Any = builtins.__import__

    def without(name: str, *arguments: Any, **options: Any) -> Any:
        if name.partition(".")[0] == "psycopg":
            raise ModuleNotFoundError(name)
        return real(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(OperatorError, match=r"tacit-aggregator\[postgresql\]"):
        Database(AWAY)


@pytest.mark.parametrize(("version", "refused"), [(140_012, True), (190_001, False)])
def test_another_version_of_the_server_is_refused_if_old_and_told_of_if_new(
    url: str, monkeypatch: pytest.MonkeyPatch, version: int, refused: bool
) -> None:
    monkeypatch.setattr(psycopg.ConnectionInfo, "server_version", property(lambda _: version))
    database = Database(url)
    with structlog.testing.capture_logs() as logs:
        if refused:
            with pytest.raises(OperatorError, match="needs PostgreSQL 15 to 18"):
                database.wait(5)
        else:
            database.wait(5)
            assert [line["version"] for line in logs] == [19]
    database.close()
