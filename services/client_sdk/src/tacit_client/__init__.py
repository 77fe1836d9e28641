"""Tacit at the site and at the model owner's: contribute to campaigns, create them, use results.

`Contributor` is a site's side, `Owner` the model owner's. All errors are in `tacit_client.errors`.
"""

from tacit.protocol import Features, Invitation, Model, Probabilities, Signed, ThresholdKind
from tacit_client.airgap import Submission, submit
from tacit_client.contribution import Contribution
from tacit_client.contributor import Contributor
from tacit_client.errors import TacitClientError
from tacit_client.home import Home
from tacit_client.joining import fetch_campaign
from tacit_client.ledger import JoinedCampaign, Ledger, Membership, Spending
from tacit_client.outbox import Outbox, OutboxEntry, ReportState
from tacit_client.owner import Owner
from tacit_client.policy import Policy
from tacit_client.preview import Preview, PreviewColumn
from tacit_client.progress import OnProgress, progress_bar
from tacit_client.thresholds import VerifiedThreshold, verify_threshold
from tacit_client.transport import Network

__all__ = [
    "Contribution",
    "Contributor",
    "Features",
    "Home",
    "Invitation",
    "JoinedCampaign",
    "Ledger",
    "Membership",
    "Model",
    "Network",
    "OnProgress",
    "Outbox",
    "OutboxEntry",
    "Owner",
    "Policy",
    "Preview",
    "PreviewColumn",
    "Probabilities",
    "ReportState",
    "Signed",
    "Spending",
    "Submission",
    "TacitClientError",
    "ThresholdKind",
    "VerifiedThreshold",
    "fetch_campaign",
    "progress_bar",
    "submit",
    "verify_threshold",
]
