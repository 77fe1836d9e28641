"""What runs at a site: it holds records and decides what leaves."""

import secrets
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.conformal import Answers, Question, deal
from tacit.mechanisms import BinaryRandomizedResponse, RandomizedResponse, RecordCoins
from tacit.scores import Score
from tacit_client.demo.data import Digits, Records
from tacit_client.demo.model import Classifier


class LabelReports(NamedTuple):
    """What leaves a site in a label campaign: features as they are, labels randomized."""

    images: NDArray[np.uint8]
    labels: NDArray[np.int64]


@dataclass(frozen=True)
class ScoreCampaign:
    """What a site must know to answer questions about its scores."""

    name: str
    model: Classifier
    score: Score
    mechanism: BinaryRandomizedResponse
    rounds: int


@dataclass(frozen=True)
class Site:
    """Records, and the key from which every record's coins come: neither leaves the site.

    The coins are a function of key, record and campaign, so a second try after a crash sends the
    same report again and reveals nothing more.
    """

    name: str
    records: Records = field(repr=False)
    record_keys: NDArray[np.uint8] = field(repr=False)
    key: bytes = field(repr=False, default_factory=lambda: secrets.token_bytes(32))

    def __len__(self) -> int:
        return len(self.records)

    def report_labels(self, mechanism: RandomizedResponse) -> LabelReports:
        """LDP-CP-L: every image as it is, with a randomized label."""
        coins = RecordCoins(self.key, self.record_keys, purpose="labels")
        return LabelReports(self.records.images, mechanism.privatize(self.records.labels, coins))

    def answer(self, question: Question, campaign: ScoreCampaign) -> Answers:
        """LDP-CP-S: one randomized bit, "my score is at most t", for each record of the round.

        The round of a record is fixed before any question is known.
        """
        share = deal(len(self), campaign.rounds)[question.round]
        records = self.records[share]
        probabilities = campaign.model.probabilities(records.images)
        bits = campaign.score.of_labels(probabilities, records.labels) <= question.threshold
        coins = RecordCoins(self.key, self.record_keys[share], purpose=campaign.name)
        return Answers.of(campaign.mechanism.privatize(bits, coins))


def settle(digits: Digits) -> list[Site]:
    """Five sites of different sizes that together hold the calibration records."""
    return [Site(name, part, _record_keys(len(part))) for name, part in digits.at_sites().items()]


def _record_keys(size: int) -> NDArray[np.uint8]:
    return np.frombuffer(secrets.token_bytes(16 * size), dtype=np.uint8).reshape(size, 16)
