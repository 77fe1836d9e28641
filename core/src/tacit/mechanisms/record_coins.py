"""Coins that are a function of a key and a record, so that nobody can draw twice."""

import os
from collections.abc import Sequence

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from numpy.typing import NDArray

from tacit.errors import InvalidCoins
from tacit.mechanisms.coins import BLOCK_BYTES, Blocks, as_blocks

KEY_BYTES = 32


class RecordCoins:
    """Coins that are a pseudorandom function of (campaign key, purpose, attempt, record key).

    block = AES-256 of the 16-byte record key under the subkey
    HKDF-SHA256(key, no salt, info = "tacit coins v1" ‖ purpose ‖ attempt as 4 bytes, big-endian).

    The same record gets the same coins after a crash, a retry or in another process. The key must
    be 32 bytes of the operating system's generator, stay at the site, and serve one campaign: two
    different values randomized with the same coins reveal each other. So record keys must differ,
    which is checked here, and a record must be asked one question per key and purpose, which only
    the caller can ensure. The record keys are not copied; leave the array as it is.
    """

    __slots__ = ("_key", "_purpose", "_record_keys")

    def __init__(
        self,
        key: bytes,
        record_keys: NDArray[np.uint8] | Sequence[bytes],
        purpose: str = "report",
    ) -> None:
        if not isinstance(key, bytes) or len(key) != KEY_BYTES:
            raise InvalidCoins(f"A campaign key must be {KEY_BYTES} bytes.")
        try:
            self._purpose = purpose.encode()
        except (AttributeError, UnicodeEncodeError) as error:
            raise InvalidCoins("The purpose of coins must be a string of valid text.") from error
        self._key = key
        self._record_keys = _checked_record_keys(record_keys)

    def __repr__(self) -> str:
        return f"RecordCoins({self.rows} records, purpose={self._purpose.decode()!r})"

    @property
    def rows(self) -> int:
        """How many records these coins are for."""
        return len(self._record_keys)

    def blocks(self, start: int, stop: int, attempt: int) -> Blocks:
        """The blocks of records start to stop-1, the same at every call."""
        record_keys = self._record_keys[start:stop]
        # A bijection of distinct record keys is what is wanted here.
        mode = modes.ECB()  # noqa: S305 -- blocks differ, so there is no pattern to show
        cipher = Cipher(algorithms.AES(self._subkey(attempt)), mode).encryptor()
        # The library asks for room for one more block, less a byte.
        stream = np.empty(record_keys.size + BLOCK_BYTES - 1, dtype=np.uint8)
        cipher.update_into(record_keys.data, stream.data)
        return as_blocks(stream[: record_keys.size])

    def _subkey(self, attempt: int) -> bytes:
        info = b"tacit coins v1" + self._purpose + attempt.to_bytes(4, "big")
        return HKDF(SHA256(), KEY_BYTES, None, info).derive(self._key)


def _checked_record_keys(record_keys: NDArray[np.uint8] | Sequence[bytes]) -> NDArray[np.uint8]:
    array = record_keys if isinstance(record_keys, np.ndarray) else _joined(record_keys)
    if array.dtype != np.uint8 or array.ndim != 2 or array.shape[1] != BLOCK_BYTES:
        raise InvalidCoins
    array = np.ascontiguousarray(array)
    row = _repeated_row(as_blocks(array.reshape(-1)))
    if row is not None:
        raise InvalidCoins(
            f"The record key of row {row} occurs twice; records that share coins reveal each other."
        )
    return array


def _joined(record_keys: Sequence[bytes]) -> NDArray[np.uint8]:
    listed = isinstance(record_keys, Sequence)
    if not listed or any(not isinstance(k, bytes) or len(k) != BLOCK_BYTES for k in record_keys):
        raise InvalidCoins
    return np.frombuffer(b"".join(record_keys), dtype=np.uint8).reshape(-1, BLOCK_BYTES)


def _may_repeat(words: Blocks) -> bool:
    """Whether two rows may be equal; False is certain. In linear time, a third of a sort's.

    Every row writes a tag into a slot of a hash table, both taken from its hash, and the last tag
    of each slot stays. If rows that find their tag again are as many as slots, each of them is
    alone with its slot and tag. The others go on to a new table.
    """
    odd = np.frombuffer(os.urandom(16), dtype=np.uint64) | np.uint64(1)
    hashes = words[:, 0] * odd[0]
    hashes += words[:, 1] * odd[1]
    while hashes.size:
        bits = min(hashes.size.bit_length() + 1, 32)
        slots = (hashes >> np.uint64(64 - bits)).view(np.int64)
        tags = (hashes >> np.uint64(32 - bits)).astype(np.uint32) | np.uint32(1)
        table = np.zeros(2**bits, dtype=np.uint32)
        table[slots] = tags
        found = table.take(slots, mode="clip") == tags  # without it numpy takes twice as long
        if np.count_nonzero(found) != np.count_nonzero(table):
            return True
        hashes = hashes[~found] * odd[0]
    return False


def _repeated_row(words: Blocks) -> int | None:
    """The first row that equals an earlier one, or None."""
    if not _may_repeat(words):
        return None
    order = np.lexsort(words.T)
    equal = (words[order[1:]] == words[order[:-1]]).all(axis=1)
    return int(order[1:][equal].min()) if equal.any() else None
