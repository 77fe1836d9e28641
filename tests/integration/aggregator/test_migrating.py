"""From the first release's database, with what is in it, to this one's; by one, and by several."""

import secrets
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import inspect, text

from tacit.protocol import Role, Signed, Threshold
from tacit_aggregator.database.engine import Database
from tacit_aggregator.database.lock import serving
from tacit_aggregator.database.migrate import upgrade
from tacit_aggregator.database.schema import check_current
from tacit_aggregator.database.tables import metadata
from tacit_aggregator.errors import OperatorError
from tests.support.aggregator import as_process, in_thread, migrated
from tests.support.label_campaigns import Reported, Scene, Site
from tests.support.postgres import every_backend, fresh_url, server
from tests.support.release_one import SITE, ReleaseOne, fill
from tests.support.scene import environment


@pytest.fixture(params=every_backend())
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database."""
    return fresh_url(request.param, tmp_path)


def names(database: Database) -> dict[str, Any]:
    """What compare_metadata does not compare: primary keys, and the names of constraints."""
    with database.read() as connection:
        found = inspect(connection)
        return {
            name: (
                found.get_pk_constraint(name)["name"],
                sorted(key["name"] or "" for key in found.get_foreign_keys(name)),
                sorted(one["name"] or "" for one in found.get_unique_constraints(name)),
                sorted(index["name"] or "" for index in found.get_indexes(name)),
                sorted((c["name"], c["nullable"], str(c["type"])) for c in found.get_columns(name)),
            )
            for name in sorted(metadata.tables)
        }


def test_what_the_first_release_left_is_served_and_counted_and_its_numbers_go_on(
    url: str, tmp_path: Path, generator: np.random.Generator
) -> None:
    secret = secrets.token_urlsafe(48)
    (tmp_path / "aggregator.secret").write_text(secret)
    old = fill(url, [Reported.random(generator, 20) for _ in ReleaseOne.NUMBERS], secret.encode())
    settings = migrated(tmp_path, database_url=url)
    with in_thread(settings) as aggregator:
        owner = aggregator.client(aggregator.token(Role.OWNER, old.campaign.owner))
        token = aggregator.token(Role.CONTRIBUTOR, SITE, old.campaign.digest)
        with owner, aggregator.client(token) as http:
            made = Scene(aggregator, old.campaign, owner, None)  # type: ignore[arg-type]  # as it is
            made.wait_until_counted(60)
            site = Site(SITE, old.campaign.digest, http)
            assert {site.send(upload).state for upload in old.uploads} == {"counted"}
            more = Reported.random(generator, 20)
            site.send(more.upload(old.campaign.digest))
            made.wait_until_counted(80)
            signed = Signed.model_validate_json(made.threshold().content)
        found = signed.open(Threshold, key=aggregator.key).document.outcome()
        everything = old.sketch([*old.reports, more])
        assert found == everything.calibrate(old.campaign.channel, old.campaign.alpha)
    database = Database(url)
    with database.read() as connection:
        numbers = connection.execute(text("SELECT number FROM uploads ORDER BY number")).scalars()
        assert tuple(numbers) == (*ReleaseOne.NUMBERS, ReleaseOne.NUMBERS[-1] + 1)
        kept = connection.execute(text("SELECT campaign FROM thresholds")).scalars()
        assert list(kept) == [old.closed.digest]
    database.close()


def test_a_migrated_database_is_what_the_tables_declare(url: str, tmp_path: Path) -> None:
    upgrade(url)
    database = Database(url)
    with database.read() as connection:
        context = MigrationContext.configure(
            connection, opts={"compare_type": True, "compare_server_default": True}
        )
        assert compare_metadata(context, metadata) == []
    found = names(database)
    # The same tables, made from the declarations.
    if database.is_shared:
        with database.transaction("make them again") as connection:
            connection.execute(text("DROP SCHEMA public CASCADE; CREATE SCHEMA public"))
            metadata.create_all(connection)
    else:
        database = Database(f"sqlite:///{tmp_path}/declared.db")
        with database.transaction("create") as connection:
            metadata.create_all(connection)
    assert found == names(database)
    database.close()


def test_several_may_migrate_at_the_same_time_and_one_key_is_made(tmp_path: Path) -> None:
    url = server().fresh()
    variables = {"TACIT_DATABASE_URL": url, "TACIT_KEY_SECRET_FILE": str(tmp_path / "secret")}

    def migrate(_: int) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "tacit_aggregator", "migrate"],
            env=environment(**variables),
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    with ThreadPoolExecutor(3) as threads:
        done = list(threads.map(migrate, range(3)))
    assert [one.returncode for one in done] == [0, 0, 0], [one.stderr for one in done]
    assert sum("A signing key was made" in one.stderr for one in done) == 1
    assert sum("A secret that encrypts" in one.stderr for one in done) == 1


def test_a_migration_waits_for_running_servers_to_be_stopped_and_says_which(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tacit_aggregator.database.lock._PATIENCE_SECONDS", 0.3)
    settings = migrated(tmp_path, database_url=server().fresh())
    database = Database(settings.database_url)
    with as_process(settings) as aggregator:
        assert aggregator.process is not None
        upgrade(settings.database_url)  # there is nothing to do
        with database.transaction("pretend") as connection:
            connection.execute(text("UPDATE alembic_version SET version_num = '0001'"))
        with pytest.raises(OperatorError, match=f"stop them first: .*:{aggregator.process.pid}"):
            upgrade(settings.database_url)
        assert aggregator.stop() == 0
    with database.transaction("pretend") as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '0002'"))
    check_current(database)
    database.close()


def test_no_server_starts_while_the_database_is_migrated() -> None:
    database = Database(server().fresh())
    with database.session() as session:
        session.execute(text("SELECT pg_advisory_lock(:one, 1)"), {"one": 0x7AC17})
        with pytest.raises(OperatorError, match="being migrated"), serving(database):
            pytest.fail("it serves")
    with serving(database), serving(database):
        pass
    database.close()


def test_a_database_that_is_not_migrated_is_refused() -> None:
    database = Database(server().fresh())
    with pytest.raises(OperatorError, match="tacit-aggregator migrate"):
        check_current(database)
    database.close()
