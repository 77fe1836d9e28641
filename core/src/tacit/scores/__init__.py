"""Conformity scores S(x, y) of class probabilities: larger is worse, sets are {y : S(x, y) ≤ t}."""

from tacit.scores.adaptive import APS, RAPS, RandomizedAPS
from tacit.scores.base import Score, ScoreRange
from tacit.scores.hps import HPS
from tacit.scores.margin import Margin
from tacit.scores.probabilities import check_probabilities, softmax
from tacit.scores.rank import SAPS, TopK
from tacit.scores.registry import score_from_dict
from tacit.scores.robust import NoiseRobust

__all__ = [
    "APS",
    "HPS",
    "RAPS",
    "SAPS",
    "Margin",
    "NoiseRobust",
    "RandomizedAPS",
    "Score",
    "ScoreRange",
    "TopK",
    "check_probabilities",
    "score_from_dict",
    "softmax",
]
