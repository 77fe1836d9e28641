"""Signing keys: encrypted at rest, rotated for new campaigns, kept for old ones."""

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tacit_aggregator.database.location import database_file
from tacit_aggregator.errors import OperatorError
from tacit_aggregator.keys import service
from tacit_aggregator.keys.secret import ensure_secret, secret_file
from tacit_aggregator.settings import Settings
from tests.unit.aggregator.conftest import Aggregator

posix = pytest.mark.skipif(os.name != "posix", reason="Windows has no such permissions")


def production(secret: Path | None) -> Settings:
    return Settings(
        environment="production",
        database_url="sqlite:///aggregator.db",
        key_secret_file=secret,
        public_url="https://aggregator.example",
    )


def test_the_first_key_is_made_once(aggregator: Aggregator) -> None:
    with aggregator.database.transaction("again") as connection:
        assert service.ensure_key(connection, aggregator.secret, 2.0) is None
        assert len(service.fingerprints(connection)) == 1


def test_after_rotation_new_campaigns_get_the_new_key_and_old_ones_keep_theirs(
    aggregator: Aggregator,
) -> None:
    with aggregator.database.transaction("rotate") as connection:
        old = service.current_key(connection, aggregator.secret)
        new = service.rotate(connection, aggregator.secret, 3e9)
        assert service.current_key(connection, aggregator.secret).fingerprint == new
        assert service.fingerprints(connection) == (new, old.fingerprint)
        kept = service.key_by_fingerprint(connection, aggregator.secret, old.fingerprint)
    assert kept.public_bytes == old.public_bytes
    assert new != old.fingerprint


def test_keys_are_encrypted_in_the_database_file(aggregator: Aggregator) -> None:
    with aggregator.database.read() as connection:
        key = service.current_key(connection, aggregator.secret)
    assert aggregator.database.erase_log()
    content = database_file(aggregator.settings.database_url).read_bytes()
    assert b"BEGIN ENCRYPTED PRIVATE KEY" in content
    assert key.private.private_bytes_raw() not in content
    assert aggregator.secret not in content


def test_a_wrong_secret_is_refused_with_what_to_do(aggregator: Aggregator) -> None:
    with aggregator.database.read() as connection:
        with pytest.raises(OperatorError, match="put back the secret") as raised:
            service.current_key(connection, b"x" * 40)
        assert "x" * 40 not in str(raised.value)


def test_rotation_with_a_wrong_secret_changes_nothing(aggregator: Aggregator) -> None:
    with aggregator.database.read() as connection:
        before = service.list_keys(connection)
    with (
        pytest.raises(OperatorError),
        aggregator.database.transaction("rotate") as connection,
    ):
        service.rotate(connection, b"x" * 40, 5.0)
    with aggregator.database.read() as connection:
        assert service.list_keys(connection) == before


def test_an_unknown_key_is_refused(aggregator: Aggregator) -> None:
    with (
        aggregator.database.read() as connection,
        pytest.raises(OperatorError, match="is not in this database"),
    ):
        service.key_by_fingerprint(connection, aggregator.secret, "0" * 64)


def test_many_threads_get_the_same_key(aggregator: Aggregator) -> None:
    def found(_: int) -> str:
        with aggregator.database.read() as connection:
            return service.current_key(connection, aggregator.secret).fingerprint

    with ThreadPoolExecutor(8) as threads:
        assert len(set(threads.map(found, range(32)))) == 1


@posix
def test_in_development_the_secret_is_made_beside_the_database_for_its_owner_only(
    tmp_path: Path,
) -> None:
    settings = Settings(database_url=f"sqlite:///{tmp_path}/a.db")
    assert ensure_secret(settings) == tmp_path / "a.secret"
    assert ensure_secret(settings) is None
    assert stat.S_IMODE(secret_file(settings).stat().st_mode) == 0o600
    assert len(service.read_secret(settings)) >= 32


def test_in_production_the_place_of_the_secret_must_be_set() -> None:
    with pytest.raises(OperatorError, match="TACIT_KEY_SECRET_FILE"):
        service.read_secret(production(None))


def test_in_production_a_missing_secret_is_not_replaced(tmp_path: Path) -> None:
    settings = production(tmp_path / "secret")
    assert ensure_secret(settings) is None
    with pytest.raises(OperatorError, match="is missing"):
        service.read_secret(settings)


@posix
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_in_production_a_secret_that_others_may_touch_is_refused(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "secret"
    file.write_bytes(b"s" * 40)
    file.chmod(mode)
    with pytest.raises(OperatorError, match="chmod 600"):
        service.read_secret(production(file))
    file.chmod(0o600)
    assert service.read_secret(production(file)) == b"s" * 40


@pytest.mark.parametrize("size", [0, 31, 1001])
def test_a_secret_of_the_wrong_size_is_refused(tmp_path: Path, size: int) -> None:
    file = tmp_path / "secret"
    file.write_bytes(b"s" * size + b"\n")
    settings = Settings(key_secret_file=file)
    with pytest.raises(OperatorError, match="32 to 1000 bytes"):
        service.read_secret(settings)


def test_the_secret_has_no_place_in_a_repr(aggregator: Aggregator) -> None:
    with aggregator.database.read() as connection:
        key = service.current_key(connection, aggregator.secret)
    assert key.private.private_bytes_raw().hex() not in repr(key)
