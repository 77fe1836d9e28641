"""The operator's secret, a file that private keys are encrypted with."""

import os
import secrets
import stat
import tempfile
from pathlib import Path

from tacit_aggregator.database.location import database_file, is_postgresql
from tacit_aggregator.errors import OperatorError
from tacit_aggregator.settings import Settings

_LEAST_BYTES = 32
_MOST_BYTES = 1000  # what PKCS #8 encryption takes is a little more


def secret_file(settings: Settings) -> Path:
    """Where the secret is: as set, or beside the database."""
    if settings.key_secret_file is not None:
        return settings.key_secret_file
    if settings.environment == "production":
        raise OperatorError(
            "In production the secret that encrypts signing keys must not lie beside the database:"
            " set TACIT_KEY_SECRET_FILE."
        )
    if is_postgresql(settings.database_url):
        raise OperatorError(
            "With PostgreSQL there is no file to keep the secret beside that encrypts signing keys:"
            " set TACIT_KEY_SECRET_FILE, to the same content for all servers."
        )
    return database_file(settings.database_url).with_suffix(".secret")


def read_secret(settings: Settings) -> bytes:
    """The secret; an error says how to make one if there is none."""
    file = secret_file(settings)
    try:
        secret = file.read_bytes().strip()
    except FileNotFoundError:
        raise OperatorError(_missing(settings, file)) from None
    except OSError as error:
        raise OperatorError(f"The secret in {file} cannot be read: {error.strerror}.") from None
    if settings.environment == "production" and _others_may_read(file):
        raise OperatorError(
            f"Others may read the secret in {file}; allow its owner only: chmod 600 {file}"
        )
    if not _LEAST_BYTES <= len(secret) <= _MOST_BYTES:
        raise OperatorError(
            f"The secret in {file} must have {_LEAST_BYTES} to {_MOST_BYTES} bytes."
        )
    return secret


def ensure_secret(settings: Settings) -> Path | None:
    """Make the secret if there is none: the new file, or None if there was one.

    Not in production, where a secret that is suddenly missing is a mistake to be looked into.
    """
    file = secret_file(settings)
    if file.exists() or settings.environment == "production":
        return None
    try:
        _write_new(file, secrets.token_urlsafe(48) + "\n")
    except FileExistsError:
        return None
    except OSError as error:
        raise OperatorError(f"The secret {file} cannot be written: {error.strerror}.") from None
    return file


def _write_new(file: Path, text: str) -> None:
    """Make the file whole and durable or not at all: keys encrypted with half of it are lost."""
    descriptor, temporary = tempfile.mkstemp(prefix=file.name, dir=file.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as opened:
            opened.write(text)
            opened.flush()
            os.fsync(opened.fileno())
        os.link(temporary, file)  # unlike renaming, it never takes the place of another's
    finally:
        Path(temporary).unlink()


def _missing(settings: Settings, file: Path) -> str:
    if settings.environment == "production":
        return (
            f"The secret {file} is missing. Restore it, or make a first one:"
            f" (umask 077; openssl rand -base64 48 > {file})"
        )
    return f"The secret {file} is missing. Restore it, or for a first one: tacit-aggregator migrate"


def _others_may_read(file: Path) -> bool:
    return os.name == "posix" and bool(file.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO))
