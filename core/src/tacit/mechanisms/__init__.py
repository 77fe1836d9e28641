"""Local randomizers with exact privacy, and the coins they use."""

from tacit.mechanisms.binary import BinaryRandomizedResponse
from tacit.mechanisms.channel import BinaryChannel, UniformChannel
from tacit.mechanisms.coins import Coins, FreshCoins
from tacit.mechanisms.estimate import Estimate
from tacit.mechanisms.randomized_response import RandomizedResponse
from tacit.mechanisms.record_coins import RecordCoins

__all__ = [
    "BinaryChannel",
    "BinaryRandomizedResponse",
    "Coins",
    "Estimate",
    "FreshCoins",
    "RandomizedResponse",
    "RecordCoins",
    "UniformChannel",
]
