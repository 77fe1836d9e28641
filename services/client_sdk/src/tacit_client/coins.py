"""What leaves instead of a label: coins from the campaign key, the same whenever asked."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.mechanisms import RandomizedResponse, RecordCoins
from tacit.protocol import LabelCampaign, label_dtype
from tacit_client.ledger.records import Hashes


@dataclass(frozen=True, eq=False, repr=False)
class Randomized:
    """The reports of some records: randomized labels, and uniforms if the score needs them."""

    labels: NDArray[np.generic]
    uniforms: NDArray[np.float64] | None


def randomize(
    campaign: LabelCampaign, key: bytes, records: Hashes, labels: NDArray[np.int64]
) -> Randomized:
    """Labels through the campaign's channel, with the coins of (campaign key, record)."""
    mechanism = RandomizedResponse.from_channel(campaign.channel)
    reports = mechanism.privatize(labels, RecordCoins(key, records, purpose="labels"))
    drawn = uniforms(key, records) if campaign.conformity_score().randomized else None
    return Randomized(reports.astype(label_dtype(campaign.k)), drawn)


def uniforms(key: bytes, records: Hashes) -> NDArray[np.float64]:
    """One number in [0, 1) per record, for randomized scores."""
    words = RecordCoins(key, records, purpose="uniforms").blocks(0, len(records), 0)[:, 0]
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
