"""Exit codes: one list of them, and the one place that gives an error its code."""

from enum import IntEnum

from tacit.errors import TacitError, Untrusted
from tacit.protocol import PROBLEM_TYPES
from tacit_client.cli.errors import CommandError
from tacit_client.errors import (
    AggregatorNotInstalled,
    BadBundle,
    BadRecords,
    BadTerms,
    CampaignEnded,
    CampaignError,
    InsecureUrl,
    InvalidPolicy,
    LedgerError,
    ModelRefused,
    NotEnoughRecords,
    NotJoined,
    NotOver,
    NotReady,
    NotYetOpen,
    PolicyRefused,
    RuntimeMissing,
    ServerProblem,
    TacitClientError,
    TransportError,
    UnknownCampaign,
)


class ExitCode(IntEnum):
    """How a command ended."""

    OK = 0
    MISTAKE = 1
    BAD_INPUT = 2
    REFUSED_HERE = 3
    TRY_LATER = 4
    REFUSED_THERE = 5
    UNVERIFIED = 6
    INTERRUPTED = 130


MEANINGS: dict[ExitCode, str] = {
    ExitCode.OK: "done",
    ExitCode.MISTAKE: "a mistake in Tacit",
    ExitCode.BAD_INPUT: "bad input or usage",
    ExitCode.REFUSED_HERE: "refused by this site's policy or ledger",
    ExitCode.TRY_LATER: "the server cannot be reached or says to try later",
    ExitCode.REFUSED_THERE: "the server refused for good, or there is no such result",
    ExitCode.UNVERIFIED: "verification failed: digest, key, signature or terms",
    ExitCode.INTERRUPTED: "interrupted; run the same command again",
}

_CODES: tuple[tuple[type[BaseException], ExitCode], ...] = (
    (KeyboardInterrupt, ExitCode.INTERRUPTED),
    (CommandError, ExitCode.BAD_INPUT),
    (Untrusted, ExitCode.UNVERIFIED),
    (InsecureUrl, ExitCode.BAD_INPUT),
    (TransportError, ExitCode.TRY_LATER),
    (PolicyRefused, ExitCode.REFUSED_HERE),
    (LedgerError, ExitCode.REFUSED_HERE),
    (NotJoined, ExitCode.BAD_INPUT),
    (UnknownCampaign, ExitCode.BAD_INPUT),
    (NotYetOpen, ExitCode.TRY_LATER),
    (NotOver, ExitCode.TRY_LATER),
    (CampaignEnded, ExitCode.REFUSED_THERE),
    (CampaignError, ExitCode.REFUSED_HERE),
    (ModelRefused, ExitCode.REFUSED_HERE),
    (RuntimeMissing, ExitCode.BAD_INPUT),
    (NotEnoughRecords, ExitCode.REFUSED_THERE),
    (BadRecords, ExitCode.BAD_INPUT),
    (BadTerms, ExitCode.BAD_INPUT),
    (InvalidPolicy, ExitCode.BAD_INPUT),
    (BadBundle, ExitCode.BAD_INPUT),
    (AggregatorNotInstalled, ExitCode.BAD_INPUT),
    (TacitError, ExitCode.BAD_INPUT),
    (OSError, ExitCode.BAD_INPUT),
)
"""The first kind that an error is of decides."""


def exit_code(error: BaseException) -> ExitCode:
    """The code a command ends with when this was raised."""
    if isinstance(error, ServerProblem):
        kind = PROBLEM_TYPES.get(error.problem.type)
        may_retry = error.problem.status >= 500 if kind is None else kind.may_retry
        return ExitCode.TRY_LATER if may_retry else ExitCode.REFUSED_THERE
    return next((code for kind, code in _CODES if isinstance(error, kind)), ExitCode.MISTAKE)


def sentence(error: BaseException) -> str:
    """What a person is told about it."""
    if isinstance(error, KeyboardInterrupt):
        return "Interrupted: nothing is lost; run the same command again."
    if exit_code(error) is ExitCode.MISTAKE and not isinstance(error, TacitClientError):
        # Its own words could hold anything, a label too; they are in the traceback alone.
        return (
            f"This is a mistake in Tacit ({type(error).__name__}). Nothing is lost: what was drawn"
            " is in the ledger. Please report it, with what TACIT_DEBUG=1 prints."
        )
    if isinstance(error, OSError):
        place = f"{error.filename} cannot be used" if error.filename else "A file cannot be used"
        return f"{place}: {error.strerror or type(error).__name__}. Check its name and permissions."
    if isinstance(error, NotReady):
        when = "" if error.retry_after is None else f" in {error.retry_after:.0f} s"
        wait = "wait for the campaign's end with --wait SECONDS"
        return f"{error.problem.detail} Ask again{when}, or {wait}."
    return " ".join(str(error).split())
