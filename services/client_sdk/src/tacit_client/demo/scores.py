"""The score campaign: the model goes to the images, and one randomized bit per record leaves."""

import time
from dataclasses import dataclass

from tacit.protocol import (
    AnswerUpload,
    CampaignStatus,
    Opened,
    RoundState,
    ScoreCampaign,
    ScoreThreshold,
)
from tacit_client import Owner, VerifiedThreshold
from tacit_client.demo.crash import Crash, CrashingSite
from tacit_client.demo.errors import DemoFailed
from tacit_client.demo.stage import PATIENCE, Stage, finished
from tacit_client.demo.wire import Exchange

CRASHES = "Cedar"
_IN_ROUND = 3
_POLL = 0.1


@dataclass(frozen=True)
class ScorePart:
    """What came of the score campaign."""

    campaign: Opened[ScoreCampaign]
    status: CampaignStatus
    threshold: VerifiedThreshold
    crash: Crash
    waited: str
    """What the campaign said it waited for while a site was dead."""
    bits: int
    """Answers that went over the wire, each counted once however often it was sent."""

    @property
    def document(self) -> ScoreThreshold:
        """The signed threshold, with the rounds that it was replayed from."""
        found = self.threshold.document
        if not isinstance(found, ScoreThreshold):
            raise DemoFailed("The score campaign ended with a threshold of another kind.")
        return found


def play_scores(stage: Stage, owner: Owner, model: str) -> ScorePart:
    """The campaign from its document to its threshold, round after round."""
    crashing = CrashingSite(stage.site(CRASHES), at_upload=_IN_ROUND + 1)
    with stage.steps("The owner publishes a score campaign, and the same sites are invited"):
        campaign = owner.publish(stage.terms.scores(model, owner.check_key().time))
        stage.invite(campaign.digest, crashing)
    waited = []
    with stage.steps("The sites fetch the model, and answer round after round"):
        crash = stage.contribute(
            campaign.digest,
            crashing,
            lambda: waited.append(_waits_for(owner, campaign.digest, CRASHES)),
        )
    with stage.steps("The owner fetches the threshold, verifies it and replays the search"):
        return ScorePart(
            campaign=campaign,
            status=finished(owner, campaign.digest),
            threshold=owner.threshold(campaign.digest, wait=PATIENCE),
            crash=crash,
            waited=waited[0],
            bits=_bits(stage.wire.exchanges(), campaign.digest),
        )


def _waits_for(owner: Owner, campaign: str, site: str) -> str:
    """What the campaign says when all others are done and it waits for this site alone."""
    ends = time.monotonic() + PATIENCE
    while time.monotonic() < ends:
        status = owner.status(campaign)
        last = status.rounds[-1]
        if last.state is RoundState.OPEN and last.waiting_for == (site,):
            return " ".join(status.waiting_for)
        time.sleep(_POLL)
    raise DemoFailed(f"The campaign did not wait for {site}.")


def _bits(exchanges: list[Exchange], campaign: str) -> int:
    uploads = {
        seen.path: AnswerUpload.model_validate_json(seen.body).records
        for seen in exchanges
        if seen.is_upload and campaign in seen.path
    }
    return sum(uploads.values())
