"""k-ary randomized response."""

from dataclasses import dataclass
from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.checks import check_labels
from tacit.errors import InvalidLabels
from tacit.mechanisms.channel import UniformChannel
from tacit.mechanisms.coins import Blocks, Coins, chunks
from tacit.mechanisms.estimate import Debiasing, Estimate
from tacit.mechanisms.mechanism import Mechanism

DRAWS = 2**32
LOW_BITS = np.uint64(DRAWS - 1)
HIGH_SHIFT = np.uint64(32)


@dataclass(frozen=True, init=False)
class RandomizedResponse(Mechanism[UniformChannel]):
    """k-RR: a label is replaced by a uniform one of all k with probability β, else kept.

    The label, given whatever else is sent with it, is ε-locally private: with β = τ/2^64 any
    report is at most 1 + k(2^64-τ)/τ = e^ε times as likely under one label as under another. The
    integer τ is rounded toward more noise, so `epsilon` is never above the one asked for. Several
    reports about one person add up.
    """

    def __init__(self, k: SupportsIndex, epsilon: float) -> None:
        object.__setattr__(self, "channel", UniformChannel.for_epsilon(k, epsilon))

    def privatize(self, labels: ArrayLike, coins: Coins) -> NDArray[np.int64]:
        """One report per label, as a new int64 array.

        A record's report is its replacement if word 0 of its first block is below τ, else its
        label. Both are always computed and one is selected by a mask: no branch and no address
        depends on a label or on an outcome.
        """
        values = check_labels(labels, None, self.channel.k)
        threshold = np.uint64(self.channel.threshold)
        reports = np.empty(values.size, dtype=np.int64)
        for start, stop in chunks(coins, values.size):
            blocks = coins.blocks(start, stop, 0)
            kept = values[start:stop].astype(np.uint64)
            selected = _uniform_labels(self.channel.k, blocks, coins, start, stop)
            selected ^= kept
            selected &= np.negative((blocks[:, 0] < threshold).astype(np.uint64))
            selected ^= kept
            reports[start:stop] = selected
        return reports

    def estimate(self, reports: ArrayLike) -> Estimate[NDArray[np.float64]]:
        """Unbiased class frequencies (share of reports - β/k) / (1-β), with their variances."""
        values = check_labels(reports, None, self.channel.k)
        if values.size < 2:
            raise InvalidLabels("An estimate and its variance need at least two reports.")
        counts = np.bincount(values, minlength=self.channel.k)
        return self._debiasing().estimate(counts / values.size, values.size)

    def variance(self, n: int, frequency: float) -> float:
        """Variance of a class's estimate from n reports if its true frequency is the one given."""
        return self._debiasing().variance(n, frequency)

    def _debiasing(self) -> Debiasing:
        beta = self.channel.beta
        return Debiasing(offset=float(beta / self.channel.k), slope=float(1 - beta))


def _uniform_labels(k: int, first: Blocks, coins: Coins, start: int, stop: int) -> Blocks:
    """A uniform label per row: the high half of k·u for the 32 low bits u of word 1.

    Each label has ⌊2^32/k⌋ values of u once those whose low half is below 2^32 mod k are refused
    (Lemire 2019). A refused row takes the draw of the next attempt. What is refused is independent
    of the coin and of the label drawn in the end.
    """
    unfair = np.uint32(DRAWS % k)
    product = (first[:, 1] & LOW_BITS) * np.uint64(k)
    attempt = 0
    while (refused := product.astype(np.uint32) < unfair).any():
        attempt += 1
        redrawn = (coins.blocks(start, stop, attempt)[:, 1] & LOW_BITS) * np.uint64(k)
        np.copyto(product, redrawn, where=refused)
    product >>= HIGH_SHIFT
    return product
