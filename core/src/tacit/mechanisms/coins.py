"""Coins: where the random bits of a mechanism come from.

Each record has a *block* of 128 uniform bits per attempt. As 16 bytes, the block is two 64-bit
words in little-endian order, on every machine: word 0 is the coin that decides, the low 32 bits
of word 1 draw a replacement, the rest is unused.

Bits come from the operating system's generator through AES-256 and never from a seedable one, so
the privacy guarantee is computational: it holds against whoever cannot tell AES-256 from a random
permutation. A permutation's n distinct outputs differ from n uniform blocks by at most n²/2^129.
"""

import os
from collections.abc import Iterator
from typing import Protocol, runtime_checkable

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from tacit.errors import InvalidCoins

BLOCK_BYTES = 16
CHUNK_ROWS = 2**15  # half a MiB of blocks, so that a chunk's arrays stay in the processor's cache

Blocks = NDArray[np.uint64]


@runtime_checkable
class Coins(Protocol):
    """A source of blocks; `rows` is how many records it serves, or None for any number."""

    @property
    def rows(self) -> int | None:
        """How many records these coins are for; None if any number."""

    def blocks(self, start: int, stop: int, attempt: int) -> Blocks:
        """The blocks of records start to stop-1 as a (stop-start, 2) array of words."""


class FreshCoins:
    """Coins that are new at every call: AES-256-CTR under a key drawn for that call alone.

    It has no state, so threads and forked processes cannot repeat each other's coins.
    """

    rows = None

    def blocks(self, start: int, stop: int, attempt: int) -> Blocks:  # noqa: ARG002 -- of Coins
        """Fresh blocks, different at every call whatever the attempt."""
        size = (stop - start) * BLOCK_BYTES
        stream = np.empty(size, dtype=np.uint8)
        cipher = Cipher(algorithms.AES(os.urandom(32)), modes.CTR(bytes(BLOCK_BYTES))).encryptor()
        cipher.update_into(bytes(size), stream.data)
        return as_blocks(stream)


def as_blocks(stream: NDArray[np.uint8]) -> Blocks:
    """Bytes as blocks of two little-endian words."""
    return stream.view("<u8").reshape(-1, 2)


def chunks(coins: Coins, count: int) -> Iterator[tuple[int, int]]:
    """The rows 0 to count-1 in runs of at most CHUNK_ROWS, once the coins are known to fit them."""
    if isinstance(coins, type) or not isinstance(coins, Coins):
        raise InvalidCoins("Coins must be FreshCoins() or RecordCoins(key, record_keys).")
    if coins.rows not in {None, count}:
        raise InvalidCoins(f"There are coins for {coins.rows} records, but {count} values.")
    for start in range(0, count, CHUNK_ROWS):
        yield start, min(start + CHUNK_ROWS, count)
