"""Migrations: they make the schema that the code declares, from anywhere, once."""

import stat
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import inspect, text

from tacit_aggregator.database.engine import Database
from tacit_aggregator.database.lock import only_server
from tacit_aggregator.database.migrate import configuration, upgrade
from tacit_aggregator.database.schema import check_current, revisions
from tacit_aggregator.database.tables import metadata
from tacit_aggregator.errors import OperatorError


def url(folder: Path) -> str:
    return f"sqlite:///{folder}/a.db"


def names_and_columns(database: Database) -> dict[str, object]:
    """What compare_metadata does not compare: primary keys, and the names of constraints."""
    with database.read() as connection:
        found = inspect(connection)
        return {
            name: (
                found.get_pk_constraint(name),
                sorted(key["name"] or "" for key in found.get_foreign_keys(name)),
                sorted(one["name"] or "" for one in found.get_unique_constraints(name)),
                sorted(index["name"] or "" for index in found.get_indexes(name)),
                [(c["name"], c["nullable"], str(c["type"])) for c in found.get_columns(name)],
            )
            for name in sorted(metadata.tables)
        }


def test_a_migrated_database_is_what_the_tables_declare(tmp_path: Path) -> None:
    upgrade(url(tmp_path))
    database = Database(url(tmp_path))
    with database.read() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []
    declared = Database(f"sqlite:///{tmp_path}/declared.db")
    with declared.transaction("create") as connection:
        metadata.create_all(connection)
    assert names_and_columns(database) == names_and_columns(declared)


def test_the_schemas_that_a_server_knows_are_those_of_alembic() -> None:
    scripts = ScriptDirectory.from_config(configuration())
    assert [one.revision for one in scripts.walk_revisions()] == revisions()[::-1]


def test_migrating_works_from_any_folder_and_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        upgrade("sqlite:///a.db")
    check_current(Database("sqlite:///a.db"))


def test_a_database_is_not_migrated_under_a_running_server(tmp_path: Path) -> None:
    with only_server(url(tmp_path)), pytest.raises(OperatorError, match="Another server"):
        upgrade(url(tmp_path))
    upgrade(url(tmp_path))
    with only_server(url(tmp_path)):
        upgrade(url(tmp_path))  # there is nothing to do


def test_only_the_operator_may_read_the_database(tmp_path: Path) -> None:
    upgrade(url(tmp_path))
    assert stat.S_IMODE((tmp_path / "a.db").stat().st_mode) == 0o600


def test_a_database_that_is_not_there_is_refused_and_not_made(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match="tacit-aggregator migrate"):
        check_current(Database(url(tmp_path)))
    assert list(tmp_path.iterdir()) == []


def test_an_empty_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.db").touch()
    with pytest.raises(OperatorError, match="tacit-aggregator migrate"):
        check_current(Database(url(tmp_path)))


def test_a_database_of_a_newer_version_is_refused_and_left_alone(tmp_path: Path) -> None:
    upgrade(url(tmp_path))
    database = Database(url(tmp_path))
    with database.transaction("pretend") as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(OperatorError, match="newer version"):
        check_current(database)
    with pytest.raises(OperatorError, match="newer version"):
        upgrade(url(tmp_path))


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "a.db").write_text("these are notes, not a database\n" * 100)
    with pytest.raises(OperatorError, match="cannot be read as a database"):
        check_current(Database(url(tmp_path)))
    with pytest.raises(OperatorError, match="cannot be read as a database"):
        upgrade(url(tmp_path))
    assert (tmp_path / "a.db").read_text().startswith("these are notes")


def test_a_migration_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    database = Database(url(tmp_path))
    with database.transaction("in the way") as connection:
        connection.execute(text("CREATE TABLE pending (number INTEGER)"))
    with pytest.raises(Exception, match="pending"):
        upgrade(url(tmp_path))
    with database.read() as connection:
        assert inspect(connection).get_table_names() == ["pending"]
