"""What all mechanisms share."""

from dataclasses import dataclass
from typing import Generic, Self, TypeVar

from tacit.mechanisms.channel import BinaryChannel, UniformChannel

Channel = TypeVar("Channel", UniformChannel, BinaryChannel)


@dataclass(frozen=True)
class Mechanism(Generic[Channel]):
    """A randomizer, which its channel describes completely."""

    channel: Channel

    @classmethod
    def from_channel(cls, channel: Channel) -> Self:
        """The mechanism of a channel that a campaign document states."""
        mechanism = cls.__new__(cls)
        object.__setattr__(mechanism, "channel", channel)
        return mechanism

    @property
    def epsilon(self) -> float:
        """The realized ε: the logarithm of the channel's exact ratio, rounded up."""
        return self.channel.epsilon
