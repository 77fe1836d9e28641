"""Sites that contribute at the same time, and what they sent, as it was on the wire."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.protocol import LabelCampaign, Opened, Reports, Upload
from tacit_client import Contributor, Network
from tests.support.aggregator import Aggregator
from tests.support.client_world import ALLOWING


@dataclass(frozen=True, eq=False)
class SiteRecords:
    """One site's labels, with probabilities or features."""

    labels: NDArray[np.int64]
    evidence: NDArray[Any]


def contribute(
    aggregator: Aggregator,
    campaign: Opened[LabelCampaign],
    sites: Sequence[SiteRecords],
    folder: Path,
    records_per_upload: int = 10_000,
) -> list[list[Reports]]:
    """Have all sites contribute at once; for each the reports of its uploads, in order."""
    evidence = campaign.document.evidence.kind
    network = Network(records_per_upload=records_per_upload)

    def one(number: int) -> list[Reports]:
        given = sites[number]
        invitation = aggregator.invitation(campaign.digest, f"site {number}")
        home = folder / f"site-{number}"
        with Contributor.join(invitation, home, ALLOWING, network=network) as site:
            ids = [f"{number}-{row}" for row in range(len(given.labels))]
            columns: dict[str, Any] = {evidence: given.evidence}
            done = site.contribute(given.labels, ids, **columns)
            assert done.accepted == len(given.labels)
            bodies = [site.outbox.body(entry.upload) for entry in site.outbox.entries()]
        uploads = [Upload.model_validate_json(body) for body in bodies]
        return [Reports.of(upload, campaign.document) for upload in uploads]

    with ThreadPoolExecutor(len(sites)) as threads:
        return list(threads.map(one, range(len(sites))))
