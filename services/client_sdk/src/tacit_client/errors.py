"""Every error the client raises.

TacitClientError
├── PolicyRefused               the site's policy does not allow this campaign; nothing was drawn
│   └── BudgetExceeded          somebody's ε would go over the policy's maximum
├── InvalidPolicy               the policy file cannot be read
├── BadTerms                    the terms given make no campaign; nothing was published
├── BadRecords                  labels, ids, persons, evidence or scores are not usable
│   └── RecordsAbsent           enrolled records that have not answered were not given
├── LedgerError
│   ├── LedgerInUse             another process holds the ledger
│   ├── AnotherLedger           the site takes part from another ledger already
│   ├── LedgerRestored          the ledger is an old copy; campaigns open at that time are refused
│   ├── LedgerTooNew            a newer version of Tacit wrote the ledger
│   ├── LedgerTooOld            an earlier one did, and another process holds the ledger
│   └── LedgerCorrupt           the ledger's file is damaged
├── CampaignError
│   ├── NotJoined               the ledger holds no such campaign
│   ├── UnknownCampaign         the server has no such campaign for this token
│   ├── NotYetOpen              the campaign opens later; `.opens_in` says when
│   ├── CampaignEnded           the campaign has ended; its key is erased
│   ├── NotOver                 it goes on, so its threshold is not final yet
│   ├── NeedsNetwork            rounds cannot be answered from a bundle
│   └── AlreadyLeft             the site has left the campaign; its key is erased
├── QuestionRefused             a question is not one that this site answers (an `Untrusted` too)
│   └── SecondQuestion          the round has another question already, the only one it answers
├── ModelRefused                the campaign's model cannot be run here, or misbehaves
│   └── WrongModel              the file that was sent is another one (an `Untrusted` too)
├── RuntimeMissing              running the campaign's model needs onnxruntime
├── BadBundle                   a bundle or its receipt cannot be used here
├── TermsDiffer                 a threshold's terms are not its campaign's (an `Untrusted` too)
├── NotEnoughRecords            the result says how many records a threshold takes
├── AggregatorNotInstalled      `tacit_client.testing` needs tacit-aggregator
├── AggregatorFailed            the aggregator of a test did not start or refused a command
├── TransportError
│   ├── InsecureUrl             tokens do not travel over http, but to this machine itself
│   ├── Unreachable             no connection
│   │   └── CertificateRefused  the server's certificate is not one that is trusted here
│   ├── Timeout                 no answer in time
│   ├── RedirectRefused         the server answers from elsewhere
│   ├── AnswerTooLarge          the answer is larger than any of the protocol's
│   └── NotAServer              what answers does not speak the protocol
└── ServerProblem               the server refused, with a problem document (`.problem`)
    ├── InvalidRequest, BodyTooLarge, WrongCampaign, CampaignExists, UnknownModel
    ├── Unauthenticated, Forbidden, NotFound
    ├── ProtocolRefused         the server speaks another version (an `UpgradeRequired` too)
    ├── UploadConflict          another body is stored under this upload id
    ├── NotEnrolled, NotOpen, CampaignClosed
    ├── EnrolmentClosed         the first question was asked; no record can join (a `CampaignError`)
    ├── WrongQuestion, RoundClosed, AnswersMissing
    ├── NotReady                no threshold yet; `.retry_after` says when to ask again
    ├── NoThreshold             there will never be one
    └── Overloaded              the server stayed busy or unavailable, however often it was asked

Beside them the core's errors pass through: `tacit.errors.Untrusted` (`WrongDigest`, `WrongKey`,
`WrongSignature`), `UpgradeRequired` and `InvalidDocument`. No error shows a label, a feature, a
token or a key.
"""

from tacit.errors import Untrusted, UpgradeRequired
from tacit.protocol import Problem, Problems


class TacitClientError(Exception):
    """The client could not do what was asked."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or " ".join((type(self).__doc__ or "").split()))


class PolicyRefused(TacitClientError):
    """The site's policy does not allow this campaign; nothing was drawn."""


class BudgetExceeded(PolicyRefused):
    """Somebody's ε would go over the policy's maximum; nothing was drawn."""

    def __init__(
        self, message: str | None = None, *, persons: int | None = None, records: int | None = None
    ) -> None:
        super().__init__(message)
        self.persons = persons
        """How many persons would go over, if that is what was counted."""
        self.records = records
        """How many of the given records are theirs."""


class InvalidPolicy(TacitClientError):
    """The policy cannot be read; see the client's README for its fields."""


class BadTerms(TacitClientError, ValueError):
    """These terms make no campaign; nothing was published."""


class BadRecords(TacitClientError, ValueError):
    """The records cannot be used as they are; nothing was drawn."""


class RecordsAbsent(BadRecords):
    """Enrolled records that have not answered are not in this call; nothing was drawn.

    Give all records together, or say that these are not to answer: absent_ok=True, or
    --without-the-rest on the command line.
    """

    def __init__(self, message: str | None = None, *, records: int | None = None) -> None:
        super().__init__(message)
        self.records = records
        """How many they are."""

    @classmethod
    def so_many(cls, records: int, more: str = "") -> "RecordsAbsent":
        """The error for this many of them; `more` says what else could be done."""
        return cls(
            f"{records} enrolled records have not answered and are not in this call; nothing was"
            " drawn. Give all records together, or say that those are not to answer:"
            f" absent_ok=True, or --without-the-rest on the command line.{more}",
            records=records,
        )


class LedgerError(TacitClientError):
    """The ledger cannot be used."""


class LedgerInUse(LedgerError):
    """Another process holds this ledger. Wait until it has finished.

    In a score campaign it waits for the end of the search, days perhaps; with --no-wait, or
    wait=False, it answers what is asked now and lets go of the ledger.
    """


class AnotherLedger(LedgerError):
    """This site takes part from another ledger already; nothing was drawn.

    The server has enrolled more of its records than this ledger knows of. Use the home that they
    were enrolled from: from two homes a record would answer twice, and nobody would add up its ε.
    If that home is lost, ask the owner for a new campaign.
    """


class LedgerRestored(LedgerError):
    """This ledger is an old copy, or its witness is missing: what was drawn since is not known.

    Campaigns that opened before it was put in place are refused, because a record could be drawn a
    second time. What was sent stays counted. Ask the owner for a new campaign, one that opens some
    minutes from then. Everybody now counts as having spent the most that one person had, by the
    witness; without a witness that is not known: lower max_epsilon by what it may have been.
    """


class LedgerTooNew(LedgerError):
    """A newer version of Tacit wrote this ledger; install that version or a later one."""


class LedgerTooOld(LedgerError):
    """This ledger is of an earlier version of Tacit, or being made, and another process holds it.

    Wait until that has finished; the next command brings the ledger to this version.
    """


class LedgerCorrupt(LedgerError):
    """The ledger's file is damaged. Restore a copy; campaigns open now will then be refused."""


class CampaignError(TacitClientError):
    """The campaign cannot be contributed to from this ledger."""


class NotJoined(CampaignError):
    """This ledger holds no such campaign; join it with its invitation first."""


class UnknownCampaign(CampaignError):
    """No campaign that this token may see has a digest that begins so; list them, and name one."""


class NotYetOpen(CampaignError):
    """The campaign has not opened yet; contribute when it has. Nothing was drawn."""

    def __init__(self, message: str | None = None, *, opens_in: float) -> None:
        super().__init__(message)
        self.opens_in = opens_in
        """Seconds until it opens, by the clock of the server, or of this machine."""


class CampaignEnded(CampaignError):
    """The campaign has ended: it takes no more records, and nothing was drawn."""


class NotOver(CampaignError):
    """The campaign goes on: its threshold would be one of the records so far.

    Wait longer, or ask for that one without waiting.
    """


class AlreadyLeft(CampaignError):
    """This site has left the campaign and erased its key; it cannot join it again."""


class NeedsNetwork(CampaignError):
    """A score campaign asks round after round: contribute from a machine that has a network."""


class QuestionRefused(TacitClientError, Untrusted):
    """This question is not one that its campaign can ask; nothing was drawn. Tell the owner."""


class SecondQuestion(QuestionRefused):
    """The server asks a second, different question in one round.

    Records answer the first question they are asked and no other: nothing was drawn. Tell the
    owner.
    """


class ModelRefused(TacitClientError):
    """The campaign's model cannot be run here; nothing was drawn. Tell the owner."""


class WrongModel(ModelRefused, Untrusted):
    """The file that the server sent is not the campaign's model; it was deleted. Tell the owner."""


class RuntimeMissing(TacitClientError):
    """Running the campaign's model needs onnxruntime: install tacit-client[onnx]."""


class BadBundle(TacitClientError):
    """This is not a bundle or a receipt of one that can be used here; export it again."""


class TermsDiffer(TacitClientError, Untrusted):
    """The threshold's terms are not those of its campaign; do not use it."""


class NotEnoughRecords(TacitClientError):
    """There were too few records for a threshold with this δ."""

    def __init__(self, message: str | None = None, *, needed: int) -> None:
        super().__init__(message)
        self.needed = needed
        """The smallest number of records that would do."""


class AggregatorNotInstalled(TacitClientError):
    """The aggregator is not installed here; install tacit-aggregator."""


class AggregatorFailed(TacitClientError):
    """The aggregator did not start, or refused a command."""


class TransportError(TacitClientError):
    """The server could not be spoken with."""


class InsecureUrl(TransportError):
    """A token may travel over https only, or over http to this machine itself; use https."""


class Unreachable(TransportError):
    """No connection to the server. Check its address, the network and the proxy settings."""

    @classmethod
    def at(cls, place: str) -> "Unreachable":
        """The error for a server at this host and port."""
        return cls(
            f"No connection to {place}. Check the address, the network and the proxy settings."
        )


class CertificateRefused(Unreachable):
    """The server's certificate is not trusted here; name the CA bundle that issued it."""


class Timeout(TransportError):
    """The server did not answer in time. Try again; what was sent can be sent again safely."""


class RedirectRefused(TransportError):
    """The server answers from another address; ask for an invitation with the right one."""


class AnswerTooLarge(TransportError):
    """The answer is larger than any of the protocol's; this may not be a Tacit server."""


class NotAServer(TransportError):
    """What answers does not speak the Tacit protocol; check the address and the proxy settings."""

    def __init__(self, message: str | None = None, *, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class ServerProblem(TacitClientError):
    """The server refused a request, for the reason in its problem document."""

    def __init__(self, problem: Problem, retry_after: float | None = None) -> None:
        super().__init__(" ".join((*_sentences(problem), problem.next)))
        self.problem = problem
        self.retry_after = retry_after
        """Seconds after which asking again may help, if the server says so."""


class InvalidRequest(ServerProblem):
    """The request is not what the protocol asks for."""


class BodyTooLarge(ServerProblem):
    """The body is larger than the server takes."""


class WrongCampaign(ServerProblem):
    """The body is for another campaign than the address."""


class CampaignExists(ServerProblem):
    """Another owner has a campaign with this digest."""


class UnknownModel(ServerProblem):
    """The campaign's model is not registered at the server."""


class Unauthenticated(ServerProblem):
    """The token is not known, expired or revoked."""


class Forbidden(ServerProblem):
    """The token may not do this."""


class NotFound(ServerProblem):
    """There is nothing there that this token may see."""


class ProtocolRefused(ServerProblem, UpgradeRequired):
    """The server does not speak this version of the protocol."""


class UploadConflict(ServerProblem):
    """Another body is stored under this upload id."""


class NotEnrolled(ServerProblem):
    """The site has not enrolled, has left, or sends more records than it enrolled."""


class NotOpen(ServerProblem):
    """The campaign has not opened yet."""


class CampaignClosed(ServerProblem):
    """The campaign takes no more uploads."""


class EnrolmentClosed(ServerProblem, CampaignError):
    """The first question was asked, and no further record can take part."""

    @classmethod
    def here(cls, records: int) -> "EnrolmentClosed":
        """The error for records that came too late, before a server could say so."""
        kind = Problems.ENROLMENT_CLOSED.value
        detail = (
            f"{records} of these records were not enrolled before the first question was asked, and"
            " cannot take part; nothing was drawn. Give only those that were enrolled."
        )
        return cls(
            Problem(
                type=kind.urn, title=kind.title, status=kind.status, detail=detail, next=kind.next
            )
        )


class WrongQuestion(ServerProblem):
    """The answers are to another question than the round's, or to one not asked yet."""


class RoundClosed(ServerProblem):
    """The answers came after their round had closed."""


class AnswersMissing(ServerProblem):
    """The server holds another number of answers of a round than this site says."""


class NotReady(ServerProblem):
    """There is no such threshold yet."""


class NoThreshold(ServerProblem):
    """This campaign will never have such a threshold."""


class Overloaded(ServerProblem):
    """The server is busy or not available."""


_BY_TYPE: dict[str, type[ServerProblem]] = {
    problem.value.urn: error
    for problem, error in {
        Problems.INVALID_REQUEST: InvalidRequest,
        Problems.BODY_TOO_LARGE: BodyTooLarge,
        Problems.UNAUTHENTICATED: Unauthenticated,
        Problems.FORBIDDEN: Forbidden,
        Problems.NOT_FOUND: NotFound,
        Problems.UPGRADE_REQUIRED: ProtocolRefused,
        Problems.WRONG_DIGEST: WrongCampaign,
        Problems.CAMPAIGN_EXISTS: CampaignExists,
        Problems.UNKNOWN_MODEL: UnknownModel,
        Problems.UPLOAD_CONFLICT: UploadConflict,
        Problems.NOT_ENROLLED: NotEnrolled,
        Problems.NOT_OPEN: NotOpen,
        Problems.CAMPAIGN_CLOSED: CampaignClosed,
        Problems.ENROLMENT_CLOSED: EnrolmentClosed,
        Problems.WRONG_QUESTION: WrongQuestion,
        Problems.ROUND_CLOSED: RoundClosed,
        Problems.ANSWERS_MISSING: AnswersMissing,
        Problems.NOT_READY: NotReady,
        Problems.NO_THRESHOLD: NoThreshold,
        Problems.OVERLOADED: Overloaded,
        Problems.UNAVAILABLE: Overloaded,
    }.items()
}


def problem_error(problem: Problem, retry_after: float | None = None) -> ServerProblem:
    """The error of a problem document; `ServerProblem` itself for types not known here."""
    return _BY_TYPE.get(problem.type, ServerProblem)(problem, retry_after)


def _sentences(problem: Problem) -> tuple[str, ...]:
    faults = tuple(f"{fault.field}: {fault.message}." for fault in problem.errors)
    return (problem.detail, *faults)
