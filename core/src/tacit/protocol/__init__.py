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

from tacit.protocol.campaign import Campaign
from tacit.protocol.columns import Column
from tacit.protocol.dealing import deal_by_key, order_by_key
from tacit.protocol.digests import sha256_hex
from tacit.protocol.invitation import Invitation
from tacit.protocol.label_campaign import (
    Features,
    Grid,
    LabelCampaign,
    Probabilities,
)
from tacit.protocol.problems import PROBLEM_TYPES, FieldError, Problem, Problems, ProblemType
from tacit.protocol.randomizers import RandomizedBits, RandomizedLabels
from tacit.protocol.reports import Reports, label_dtype
from tacit.protocol.rounds import (
    LONGEST_POLL,
    AnswerUpload,
    CurrentRound,
    RoundDone,
    RoundQuestion,
    RoundState,
    RoundStatus,
    SearchState,
)
from tacit.protocol.score_campaign import (
    Model,
    RoundPlan,
    ScoreCampaign,
    Search,
)
from tacit.protocol.signatures import Opened, Signed, SigningKey, fingerprint
from tacit.protocol.statements import (
    Certificate,
    HostileContributors,
    Privacy,
    RoundResult,
    deciding_round,
)
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
from tacit.protocol.threshold import (
    LabelThreshold,
    ScoreThreshold,
    Threshold,
    ThresholdKind,
    replay,
)
from tacit.protocol.uploads import Enrolment, Receipt, Receipts, Upload, UploadState
from tacit.protocol.versions import PROTOCOL

__all__ = [
    "LONGEST_POLL",
    "PROBLEM_TYPES",
    "PROTOCOL",
    "AnswerUpload",
    "Campaign",
    "CampaignList",
    "CampaignState",
    "CampaignStatus",
    "Certificate",
    "ClosedBy",
    "Column",
    "CurrentRound",
    "Enrolment",
    "Features",
    "FieldError",
    "Grid",
    "HostileContributors",
    "Invitation",
    "LabelCampaign",
    "LabelThreshold",
    "Model",
    "Opened",
    "Privacy",
    "Probabilities",
    "Problem",
    "ProblemType",
    "Problems",
    "RandomizedBits",
    "RandomizedLabels",
    "Receipt",
    "Receipts",
    "Reports",
    "Role",
    "RoundDone",
    "RoundPlan",
    "RoundQuestion",
    "RoundResult",
    "RoundState",
    "RoundStatus",
    "ScoreCampaign",
    "ScoreThreshold",
    "Search",
    "SearchState",
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
    "deal_by_key",
    "deciding_round",
    "fingerprint",
    "label_dtype",
    "order_by_key",
    "replay",
    "sha256_hex",
]
