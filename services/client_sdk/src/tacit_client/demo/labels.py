"""The label campaign: images leave as they are, with randomized labels."""

from dataclasses import dataclass

from tacit.protocol import CampaignStatus, LabelCampaign, Opened
from tacit_client import Owner, VerifiedThreshold
from tacit_client.demo.crash import Crash, CrashingSite
from tacit_client.demo.stage import PATIENCE, Stage, finished

CRASHES = "Birch"
_AT_UPLOAD = 2
_RECORDS_PER_UPLOAD = 100


@dataclass(frozen=True)
class LabelPart:
    """What came of the label campaign."""

    campaign: Opened[LabelCampaign]
    status: CampaignStatus
    nominal: VerifiedThreshold
    starred: VerifiedThreshold
    crash: Crash


def play_labels(stage: Stage, owner: Owner, model: str) -> LabelPart:
    """The campaign from its document to its thresholds."""
    crashing = CrashingSite(stage.site(CRASHES), _AT_UPLOAD, _RECORDS_PER_UPLOAD)
    with stage.steps("The owner publishes a label campaign, and five sites are invited"):
        campaign = owner.publish(stage.terms.labels(model, owner.check_key().time))
        stage.invite(campaign.digest, crashing)
    with stage.steps("The sites join and contribute, all at once, as processes"):
        crash = stage.contribute(campaign.digest, crashing)
    with stage.steps("The owner fetches the thresholds and verifies them"):
        return LabelPart(
            campaign=campaign,
            status=finished(owner, campaign.digest),
            nominal=owner.threshold(campaign.digest, "nominal", wait=PATIENCE),
            starred=owner.threshold(campaign.digest, "starred", wait=PATIENCE),
            crash=crash,
        )
