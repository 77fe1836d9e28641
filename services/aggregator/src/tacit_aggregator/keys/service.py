"""Signing keys: Ed25519, encrypted at rest with the operator's secret."""

from dataclasses import dataclass
from functools import lru_cache

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)
from sqlalchemy import Connection

from tacit.protocol import SigningKey
from tacit_aggregator.errors import OperatorError
from tacit_aggregator.keys import queries
from tacit_aggregator.keys.secret import read_secret

__all__ = [
    "CHANGING_KEYS",
    "StoredKey",
    "current_key",
    "ensure_key",
    "fingerprints",
    "key_by_fingerprint",
    "list_keys",
    "read_secret",
    "rotate",
]

CHANGING_KEYS = "change signing keys"
"""Held by whoever makes a key, so that one is in use, whoever else makes one."""


@dataclass(frozen=True)
class StoredKey:
    """What anyone may know of a key."""

    fingerprint: str
    created_at: float
    retired_at: float | None


def current_key(connection: Connection, secret: bytes) -> SigningKey:
    """The key that signs new campaigns."""
    pem = queries.current(connection)
    if pem is None:
        raise OperatorError("There is no signing key yet; run: tacit-aggregator migrate")
    return _decrypted(pem, secret)


def key_by_fingerprint(connection: Connection, secret: bytes, fingerprint: str) -> SigningKey:
    """A key by what it is known by, also one that was retired: campaigns keep theirs."""
    pem = queries.by_fingerprint(connection, fingerprint)
    if pem is None:
        raise OperatorError(
            f"The signing key {fingerprint} is not in this database; restore it from a backup."
        )
    return _decrypted(pem, secret)


def fingerprints(connection: Connection) -> tuple[str, ...]:
    """What all keys are known by, the one in use first."""
    return tuple(row.fingerprint for row in queries.everything(connection))


def list_keys(connection: Connection) -> tuple[StoredKey, ...]:
    """All keys, the one in use first."""
    return tuple(
        StoredKey(row.fingerprint, row.created_at, row.retired_at)
        for row in queries.everything(connection)
    )


def ensure_key(connection: Connection, secret: bytes, now: float) -> str | None:
    """Make a first key if there is none: its fingerprint, or None if there was one."""
    if queries.current(connection) is not None:
        return None
    return _new_key(connection, secret, now)


def rotate(connection: Connection, secret: bytes, now: float) -> str:
    """A new key for new campaigns: its fingerprint. Those that exist keep the one they have."""
    current_key(connection, secret)  # with another secret the old keys could not be read any more
    queries.retire_current(connection, now)
    return _new_key(connection, secret, now)


def _new_key(connection: Connection, secret: bytes, now: float) -> str:
    key = SigningKey.generate()
    pem = key.private.private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(secret)
    )
    queries.store(connection, key.fingerprint, pem, now)
    return key.fingerprint


# Decrypting takes milliseconds on purpose, and the same few keys are used all the time.
@lru_cache(maxsize=64)
def _decrypted(pem: bytes, secret: bytes) -> SigningKey:
    try:
        private = load_pem_private_key(pem, secret)
    except ValueError:
        private = None
    if not isinstance(private, Ed25519PrivateKey):
        raise OperatorError(
            "A signing key cannot be decrypted with the secret in TACIT_KEY_SECRET_FILE;"
            " put back the secret that it was made with."
        )
    return SigningKey(private)
