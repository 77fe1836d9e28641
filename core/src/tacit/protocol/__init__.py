"""What goes over the wire: documents, uploads, thresholds, problems. Needs the extra `protocol`.

docs/protocol.md describes it for other implementations; tests/vectors has examples of all of it.
"""

try:
    import pydantic  # noqa: F401 -- only to say what is missing
    import rfc8785  # noqa: F401 -- the same
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "tacit.protocol needs pydantic and rfc8785: install tacit with its extra, tacit[protocol]"
    ) from error

from tacit.protocol.campaign import Campaign, Features, Grid, Probabilities, RandomizedLabels
from tacit.protocol.columns import Column
from tacit.protocol.digests import sha256_hex
from tacit.protocol.invitation import Invitation
from tacit.protocol.problems import PROBLEM_TYPES, FieldError, Problem, Problems, ProblemType
from tacit.protocol.reports import Reports, label_dtype
from tacit.protocol.signatures import Opened, Signed, SigningKey, fingerprint
from tacit.protocol.status import (
    CampaignList,
    CampaignState,
    CampaignStatus,
    ClosedBy,
    Role,
    ServerInfo,
    SiteStatus,
    Tally,
    TokenInfo,
)
from tacit.protocol.threshold import HostileContributors, Privacy, Threshold, ThresholdKind
from tacit.protocol.uploads import Enrolment, Receipt, Receipts, Upload, UploadState
from tacit.protocol.versions import PROTOCOL

__all__ = [
    "PROBLEM_TYPES",
    "PROTOCOL",
    "Campaign",
    "CampaignList",
    "CampaignState",
    "CampaignStatus",
    "ClosedBy",
    "Column",
    "Enrolment",
    "Features",
    "FieldError",
    "Grid",
    "HostileContributors",
    "Invitation",
    "Opened",
    "Privacy",
    "Probabilities",
    "Problem",
    "ProblemType",
    "Problems",
    "RandomizedLabels",
    "Receipt",
    "Receipts",
    "Reports",
    "Role",
    "ServerInfo",
    "Signed",
    "SigningKey",
    "SiteStatus",
    "Tally",
    "Threshold",
    "ThresholdKind",
    "TokenInfo",
    "Upload",
    "UploadState",
    "fingerprint",
    "label_dtype",
    "sha256_hex",
]
