"""The threshold document: the library's result, and what it rests on in words."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from tacit.conformal import CoverageSketch
from tacit.protocol import (
    HostileContributors,
    LabelCampaign,
    LabelThreshold,
    Privacy,
    Threshold,
    ThresholdKind,
)
from tacit_aggregator.database.rows import AnyRow

_UNIT = "one record's label, given its {evidence}"
_CONDITIONS = (
    "Only the label is protected; the {evidence} left the site as they are.",
    "Several records of one person add up: m of them spend m·ε.",
    "The coins are a pseudorandom function of a key that only the site has, so ε holds against"
    " whoever cannot break AES-256.",
    "The reports were not shuffled, and shuffling them with their {evidence} would not amplify"
    " the privacy.",
)


def threshold_of(
    campaign: LabelCampaign,
    digest: str,
    sites: Sequence[AnyRow],
    which: ThresholdKind,
    final: bool,
) -> Threshold:
    """The threshold of the sum of these sites' sketches."""
    sketch = sketch_of(campaign, sites)
    delta = campaign.delta if which is ThresholdKind.STARRED else None
    outcome = sketch.calibrate(campaign.channel, campaign.alpha, delta)
    last = max(site.counted_at for site in sites)
    return LabelThreshold(
        campaign=digest,
        which=which,
        final=final,
        as_of=datetime.fromtimestamp(int(last), UTC),
        classes=campaign.classes,
        sites=len(sites),
        result=Threshold.fields_of(outcome),
        privacy=_privacy(campaign),
        hostile=_hostile(campaign, sketch.n),
    )


def sketch_of(campaign: LabelCampaign, sites: Sequence[AnyRow]) -> CoverageSketch:
    """The sum of the sites' sketches."""
    empty = campaign.empty_sketch()
    total = empty
    for site in sites:
        total += CoverageSketch(
            empty.score, empty.k, empty.grid, _counts(site.noisy), _counts(site.every)
        )
    return total


def _counts(content: bytes) -> Any:
    return np.frombuffer(content, dtype="<i8").astype(np.int64)


def _privacy(campaign: LabelCampaign) -> Privacy:
    kind = campaign.evidence.kind
    return Privacy(
        epsilon=campaign.channel.epsilon,
        unit=_UNIT.format(evidence=kind),
        conditions=tuple(condition.format(evidence=kind) for condition in _CONDITIONS),
    )


def _hostile(campaign: LabelCampaign, n: int) -> HostileContributors:
    beta, k = campaign.channel.beta, campaign.k
    return HostileContributors(shift_per_record=float((1 + beta - 2 * beta / k) / ((1 - beta) * n)))
