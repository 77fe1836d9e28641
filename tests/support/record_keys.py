"""Record keys that count: the least random that keys can be."""

import numpy as np
from numpy.typing import NDArray


def counted_keys(count: int, first: int = 0) -> NDArray[np.uint8]:
    """The record keys first, first + 1, … as 16 bytes each, little-endian."""
    words = np.zeros((count, 2), dtype="<u8")
    words[:, 0] = np.arange(first, first + count)
    return words.view(np.uint8)
