"""The database: durable, erasing, one writer at a time, silent about parameters."""

import threading
from pathlib import Path

import pytest
from sqlalchemy import func, insert, select, text
from sqlalchemy.exc import IntegrityError

from tacit_aggregator.database.engine import Database
from tacit_aggregator.database.location import database_file
from tacit_aggregator.database.tables import tokens
from tacit_aggregator.errors import OperatorError
from tests.unit.aggregator.conftest import Aggregator


def row(number: int) -> dict[str, object]:
    return {
        "id": f"{number:032x}",
        "token_hash": b"marker-%08d" % number,
        "role": "owner",
        "name": "marker-owner",
        "created_at": 1.0,
    }


def stored(database: Database) -> int:
    with database.read() as connection:
        return connection.execute(select(func.count()).select_from(tokens)).scalar_one()


@pytest.mark.parametrize(
    "url",
    [
        "mysql://root:marker@localhost/x",
        "postgresql://ada:marker@localhost",
        "postgresql+asyncpg://ada:marker@localhost/x",
        "postgresql://ada:marker@localhost:port/x",
        "sqlite://",
        "sqlite:///:memory:",
        "sqlite:///file:x?uri=true",
        "x",
    ],
)
def test_only_sqlite_files_and_postgresql_are_taken(url: str) -> None:
    with pytest.raises(OperatorError, match="sqlite:///path") as raised:
        Database(url)
    assert "marker" not in str(raised.value)


def test_every_connection_syncs_fully_erases_and_checks_references(aggregator: Aggregator) -> None:
    with aggregator.database.read() as connection:
        pragmas = {
            name: connection.execute(text(f"PRAGMA {name}")).scalar_one()
            for name in ("journal_mode", "synchronous", "secure_delete", "foreign_keys")
        }
    assert pragmas == {
        "journal_mode": "wal",
        "synchronous": 2,
        "secure_delete": 1,
        "foreign_keys": 1,
    }


def test_a_transaction_that_fails_stores_nothing(aggregator: Aggregator) -> None:
    def fails() -> None:
        with aggregator.database.transaction("fails") as connection:
            connection.execute(insert(tokens).values(**row(1)))
            raise LookupError

    with pytest.raises(LookupError):
        fails()
    assert stored(aggregator.database) == 0


def test_threads_and_other_processes_connections_write_in_turn(aggregator: Aggregator) -> None:
    other = Database(aggregator.settings.database_url)  # as a command beside a running server

    def write(database: Database, first: int) -> None:
        for number in range(first, first + 20):
            with database.transaction("write") as connection:
                connection.execute(insert(tokens).values(**row(number)))

    threads = [
        threading.Thread(target=write, args=(database, first))
        for first, database in ((0, aggregator.database), (100, aggregator.database), (200, other))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    other.close()
    assert stored(aggregator.database) == 60


def test_an_observer_hears_of_commits_and_not_of_failures(aggregator: Aggregator) -> None:
    heard: list[str] = []
    aggregator.database.observe(lambda name, _: heard.append(name))
    with aggregator.database.transaction("one") as connection:
        connection.execute(insert(tokens).values(**row(1)))
    with (
        pytest.raises(IntegrityError),
        aggregator.database.transaction("two") as connection,
    ):
        connection.execute(insert(tokens).values(**row(1)))
    assert heard == ["one"]


def test_an_error_of_the_database_does_not_show_what_was_to_be_stored(
    aggregator: Aggregator,
) -> None:
    with aggregator.database.transaction("one") as connection:
        connection.execute(insert(tokens).values(**row(1)))
    with (
        pytest.raises(IntegrityError) as raised,
        aggregator.database.transaction("two") as connection,
    ):
        connection.execute(insert(tokens).values(**row(1)))
    assert "marker" not in str(raised.value)


def test_erased_rows_are_gone_from_every_file(aggregator: Aggregator) -> None:
    file = database_file(aggregator.settings.database_url)

    def found() -> bool:
        files = [file, *file.parent.glob(file.name + "-*")]
        return any(b"marker-" in Path(one).read_bytes() for one in files)

    with aggregator.database.transaction("store") as connection:
        connection.execute(insert(tokens), [row(number) for number in range(500)])
    assert found()
    with aggregator.database.transaction("erase") as connection:
        connection.execute(tokens.delete())
    assert aggregator.database.erase_log()
    assert not found()


def test_the_log_is_not_erased_under_a_reader(aggregator: Aggregator) -> None:
    impatient = Database(aggregator.settings.database_url)
    with aggregator.database.transaction("store") as connection:
        connection.execute(insert(tokens).values(**row(1)))
    with aggregator.database.read() as reader:
        reader.execute(select(tokens)).all()
        with impatient.transaction("store more") as connection:
            connection.execute(insert(tokens).values(**row(2)))
        with impatient.read() as connection:
            connection.exec_driver_sql("PRAGMA busy_timeout=50")
        assert not impatient.erase_log()
    assert impatient.erase_log()
    impatient.close()
