"""Binary randomized response."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.errors import InvalidBits
from tacit.mechanisms.channel import BinaryChannel
from tacit.mechanisms.coins import Coins, chunks
from tacit.mechanisms.estimate import Debiasing, Estimate
from tacit.mechanisms.mechanism import Mechanism


@dataclass(frozen=True, init=False)
class BinaryRandomizedResponse(Mechanism[BinaryChannel]):
    """Binary RR: a bit is flipped with probability τ/2^64, else kept.

    The bit is ε-locally private with e^ε = (2^64-τ)/τ; if it is all that leaves a record, so is
    the record. The integer τ is rounded toward more noise, so `epsilon` is never above the one
    asked for. Several reports about one person add up.
    """

    def __init__(self, epsilon: float) -> None:
        object.__setattr__(self, "channel", BinaryChannel.for_epsilon(epsilon))

    def privatize(self, bits: ArrayLike, coins: Coins) -> NDArray[np.bool_]:
        """One report per bit, as a new boolean array: the bit XOR (word 0 of its block < τ)."""
        values = _checked_bits(bits)
        threshold = np.uint64(self.channel.threshold)
        reports = np.empty(values.size, dtype=np.bool_)
        for start, stop in chunks(coins, values.size):
            flips = coins.blocks(start, stop, 0)[:, 0] < threshold
            np.bitwise_xor(values[start:stop], flips, out=reports[start:stop])
        return reports

    def estimate(self, reports: ArrayLike) -> Estimate[float]:
        """Unbiased mean of the bits, (mean of reports - flip) / (1 - 2·flip), with its variance."""
        values = _checked_bits(reports)
        if values.size < 2:
            raise InvalidBits("An estimate and its variance need at least two reports.")
        return self._debiasing().estimate(float(values.mean()), values.size)

    def variance(self, n: int, frequency: float) -> float:
        """Variance of the estimate from n reports if the true mean of the bits is the one given."""
        return self._debiasing().variance(n, frequency)

    def _debiasing(self) -> Debiasing:
        flip = self.channel.flip
        return Debiasing(offset=float(flip), slope=float(1 - 2 * flip))


def _checked_bits(bits: ArrayLike) -> NDArray[np.bool_]:
    try:
        values = np.asarray(bits)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InvalidBits from error
    if values.ndim != 1 or (values.size and values.dtype.kind not in "biu"):
        raise InvalidBits
    if values.dtype.kind != "b" and values.size and (values.max() > 1 or values.min() < 0):
        row = np.flatnonzero((values < 0) | (values > 1))[0]
        raise InvalidBits(f"The bit of row {row} is neither 0 nor 1.")
    return values.astype(np.bool_, copy=False)
