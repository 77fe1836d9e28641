"""Problem details (RFC 9457): every way a request can be refused, and what to do next."""

from dataclasses import dataclass
from enum import Enum
from typing import Annotated

from pydantic import Field

from tacit.protocol.wire import Wire

MEDIA_TYPE = "application/problem+json"
_PREFIX = "urn:tacit:problem:"


@dataclass(frozen=True)
class ProblemType:
    """A stable name, the HTTP status, a title, and what whoever gets it can do."""

    name: str
    status: int
    title: str
    next: str
    may_retry: bool = False
    """Whether the same request may succeed later."""

    @property
    def urn(self) -> str:
        """The `type` of the problem document."""
        return _PREFIX + self.name


class Problems(Enum):
    """All problem types of the protocol."""

    INVALID_REQUEST = ProblemType(
        "invalid-request",
        422,
        "The request is not what the protocol asks for.",
        "Correct the fields named in errors; nothing was stored.",
    )
    BODY_TOO_LARGE = ProblemType(
        "body-too-large",
        413,
        "The body is larger than this server takes.",
        "Send smaller uploads; the limit is in /v1/server.",
    )
    BODY_TOO_SLOW = ProblemType(
        "body-too-slow",
        408,
        "The body did not arrive in time.",
        "Send it again, in smaller uploads if the line is slow.",
        may_retry=True,
    )
    UNSUPPORTED_MEDIA = ProblemType(
        "unsupported-media",
        415,
        "Bodies are uncompressed application/json.",
        "Send Content-Type: application/json and no Content-Encoding.",
    )
    UNAUTHENTICATED = ProblemType(
        "unauthenticated",
        401,
        "This needs a token that is known, not expired and not revoked.",
        "Send Authorization: Bearer with a valid token; ask the operator for a new one.",
    )
    FORBIDDEN = ProblemType(
        "forbidden",
        403,
        "This token may not do this.",
        "Use a token of the role and campaign that may.",
    )
    NOT_FOUND = ProblemType(
        "not-found",
        404,
        "There is nothing here that this token may see.",
        "Check the address and the campaign's digest.",
    )
    METHOD_NOT_ALLOWED = ProblemType(
        "method-not-allowed",
        405,
        "This address does not take this method.",
        "Use a method named in the Allow header.",
    )
    UPGRADE_REQUIRED = ProblemType(
        "upgrade-required",
        426,
        "This protocol version is not spoken here.",
        "Install a version that speaks one of those in /v1/server.",
    )
    WRONG_DIGEST = ProblemType(
        "wrong-digest",
        409,
        "The body is for another campaign than the address.",
        "Send reports only to the campaign they were made for.",
    )
    CAMPAIGN_EXISTS = ProblemType(
        "campaign-exists",
        409,
        "Another owner has a campaign with this digest.",
        "Make a new document with a fresh nonce.",
    )
    UNKNOWN_MODEL = ProblemType(
        "unknown-model",
        422,
        "The campaign's model is not registered here, or takes other features.",
        "Have the operator register it: tacit-aggregator models add.",
    )
    UPLOAD_CONFLICT = ProblemType(
        "upload-conflict",
        409,
        "There is another body under this upload id.",
        "Send an upload again exactly as it was; a new upload takes a new id.",
    )
    NOT_ENROLLED = ProblemType(
        "not-enrolled",
        409,
        "The site has not enrolled, has left, or sends more records than it enrolled.",
        "Enrol with the number of records, then send again.",
    )
    NOT_OPEN = ProblemType(
        "not-open",
        409,
        "The campaign has not opened yet.",
        "Send again after Retry-After.",
        may_retry=True,
    )
    CAMPAIGN_CLOSED = ProblemType(
        "campaign-closed",
        409,
        "The campaign takes no more uploads.",
        "Nothing was stored or changed; the campaign's status says how it ended.",
    )
    ENROLMENT_CLOSED = ProblemType(
        "enrolment-closed",
        409,
        "The first question was asked, and who answers when is fixed.",
        "Join another campaign; what was enrolled before stays enrolled.",
    )
    WRONG_QUESTION = ProblemType(
        "wrong-question",
        409,
        "The answers are to another question than this round's, or to one not asked yet.",
        "Answer only questions of this campaign that its key has signed; nothing was stored.",
    )
    ROUND_CLOSED = ProblemType(
        "round-closed",
        409,
        "The answers came after their round had closed.",
        "They are tallied as late and never counted: do not send them again, go on with the next"
        " round.",
    )
    ANSWERS_MISSING = ProblemType(
        "answers-missing",
        409,
        "The site has sent another number of answers in this round than it says.",
        "Send the answers that are missing, then mark the round done again.",
    )
    NOT_READY = ProblemType(
        "not-ready",
        409,
        "There is no such threshold yet.",
        "Ask again after Retry-After; detail says what is missing.",
        may_retry=True,
    )
    NO_THRESHOLD = ProblemType(
        "no-threshold",
        410,
        "This campaign will never have such a threshold.",
        "Detail says why; make a new campaign if you need one.",
    )
    OVERLOADED = ProblemType(
        "overloaded",
        503,
        "The server has more than it can count now.",
        "Send again after Retry-After.",
        may_retry=True,
    )
    UNAVAILABLE = ProblemType(
        "unavailable",
        503,
        "The server is starting, stopping or waits for its database.",
        "Send again after Retry-After.",
        may_retry=True,
    )
    INTERNAL = ProblemType(
        "internal",
        500,
        "The server made a mistake.",
        "Tell the operator the request id; sending again is safe.",
        may_retry=True,
    )


PROBLEM_TYPES: dict[str, ProblemType] = {problem.value.urn: problem.value for problem in Problems}


class FieldError(Wire):
    """One thing that is wrong with a request."""

    field: str
    message: str


class Problem(Wire):
    """A problem document, as it goes over the wire."""

    type: str
    title: str
    status: Annotated[int, Field(ge=400, le=599)]
    detail: str
    next: str
    """What to do about it."""
    request_id: str | None = None
    errors: tuple[FieldError, ...] = ()
