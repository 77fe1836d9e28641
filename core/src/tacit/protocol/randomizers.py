"""The randomizers that a campaign can name, by their realized channels."""

from typing import Annotated, Literal

from pydantic import Field

from tacit.mechanisms import BinaryChannel, UniformChannel
from tacit.protocol.wire import Wire

Threshold64 = Annotated[str, Field(pattern=r"^[1-9][0-9]{0,19}$")]
"""τ of a probability τ/2^64: a decimal string, because JSON's numbers are exact only to 2^53."""


class RandomizedLabels(Wire):
    """k-ary randomized response: a label is replaced with probability β = threshold / 2^64."""

    name: Literal["k-rr"] = "k-rr"
    threshold: Threshold64

    def channel(self, k: int) -> UniformChannel:
        """What a label of k classes goes through."""
        return UniformChannel(k, int(self.threshold))


class RandomizedBits(Wire):
    """Binary randomized response: a bit is flipped with probability threshold / 2^64."""

    name: Literal["binary-rr"] = "binary-rr"
    threshold: Threshold64

    def channel(self, k: int) -> BinaryChannel:  # noqa: ARG002 -- bits do not know of classes
        """What a bit goes through."""
        return BinaryChannel(int(self.threshold))


Randomizer = Annotated[RandomizedLabels | RandomizedBits, Field(discriminator="name")]
