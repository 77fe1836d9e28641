"""Digests as they are written in documents."""

import hashlib


def sha256_hex(content: bytes) -> str:
    """SHA-256 in lowercase hexadecimal."""
    return hashlib.sha256(content).hexdigest()
