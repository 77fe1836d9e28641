"""What `tacit doctor` advises: for each kind of error how to mend it."""

from tacit_client.errors import (
    AnotherLedger,
    AnswerTooLarge,
    CertificateRefused,
    InsecureUrl,
    InvalidPolicy,
    LedgerCorrupt,
    LedgerError,
    LedgerInUse,
    LedgerRestored,
    LedgerTooNew,
    LedgerTooOld,
    NotAServer,
    Overloaded,
    ProtocolRefused,
    RedirectRefused,
    TacitClientError,
    Timeout,
    Unauthenticated,
    Unreachable,
)

_FIXES: tuple[tuple[type[TacitClientError], str], ...] = (
    (InvalidPolicy, "Correct {place}; the client's README lists its fields."),
    (
        LedgerInUse,
        "Wait until the other command has ended; of score campaigns, run it with --no-wait, which"
        " answers what is asked now.",
    ),
    (AnotherLedger, "Name with --home the directory that this site's records were enrolled from."),
    (LedgerTooOld, "Wait until the other command has ended, and run this one again."),
    (LedgerTooNew, "Install the version of tacit-client that wrote it, or a later one."),
    (
        LedgerCorrupt,
        "Put a copy of {place} in its place, without the witness; without a copy, move the"
        " directory away. Then join campaigns that open from now on.",
    ),
    (
        LedgerRestored,
        "Contribute to campaigns that open from now on; ask the owner for a new one.",
    ),
    (
        LedgerError,
        "See that this user may write in {place} and beside it and that the disk is not full, or"
        " name another place with --home.",
    ),
    (InsecureUrl, "Ask the operator for the server's https address instead of {place}."),
    (CertificateRefused, "Name a PEM file of the authority that issued it with --ca-bundle."),
    (
        Unreachable,
        "See that {place} is right, that the server runs, and that network and proxy let this"
        " machine through to it.",
    ),
    (Timeout, "Try again later; if it stays so, ask the operator and whoever runs the proxy."),
    (RedirectRefused, "Ask the operator for the address itself, and for an invitation with it."),
    (NotAServer, "See that {place} is right, and that no proxy answers in its place."),
    (AnswerTooLarge, "See that {place} is right, and that no proxy answers in its place."),
    (ProtocolRefused, "Install a version of tacit-client that speaks the server's protocol."),
    (Unauthenticated, "Ask the operator for a new invitation, and join again."),
    (Overloaded, "Try again later; if it stays so, tell the operator."),
)
"""The first kind that an error is of decides."""


def fix_of(error: TacitClientError, place: object) -> str:
    """How to mend what was found at a place: a directory, a file or an address."""
    found = next((fix for kind, fix in _FIXES if isinstance(error, kind)), None)
    return (found or "Ask the operator about {place}.").format(place=place)
