"""Who answers when: a site deals its records out to the rounds, by a secret of its own."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tacit.mechanisms import RecordCoins


def order_by_key(key: bytes, record_keys: NDArray[np.uint8]) -> NDArray[np.int64]:
    """The positions of the records in a random order, which only the site knows.

    The same records and key give the same order. Records answer in it, so that those whose answers
    have arrived when a round closes are a random share of those that were to answer.
    """
    if not len(record_keys):
        return np.empty(0, dtype=np.int64)
    blocks = RecordCoins(key, record_keys, purpose="rounds").blocks(0, len(record_keys), 0)
    order: NDArray[np.int64] = np.lexsort((blocks[:, 1], blocks[:, 0]))
    return order


def deal_by_key(
    key: bytes, record_keys: NDArray[np.uint8], shares: Sequence[int]
) -> NDArray[np.int64]:
    """The round of each record: at random in proportion to the shares, and known to the site alone.

    The records are put into a random order, each takes the next step of W = Σ shares on a circle
    of n·W, from a random start, and round j has the arc of n·shares_j: so a round gets n·shares_j/W
    records, up to one, and a record is in it with probability shares_j/W. The same records and key
    give the same rounds; other records get another start, so that records dealt out one by one are
    spread over the rounds too. Order and start are pseudorandom functions of the campaign key and
    the records.
    """
    n, weights = len(record_keys), np.asarray(shares, dtype=np.int64)
    if not n:
        return np.empty(0, dtype=np.int64)
    order = order_by_key(key, record_keys)
    ranks = np.empty(n, dtype=np.int64)
    ranks[order] = np.arange(n)
    total = int(weights.sum())
    start = _start(key, record_keys[order[:1]], total)
    rounds: NDArray[np.int64] = np.searchsorted(
        n * np.cumsum(weights), ranks * total + start, side="right"
    )
    return rounds


def _start(key: bytes, first: NDArray[np.uint8], below: int) -> int:
    """An integer from 0 to below - 1, uniform up to below / 2^64, by the first record's coins."""
    word = int(RecordCoins(key, first, purpose="start").blocks(0, 1, 0)[0, 0])
    return word * below >> 64
