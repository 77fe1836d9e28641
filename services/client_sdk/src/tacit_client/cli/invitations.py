"""Invitations as they are given to a command: a file, standard input, or the line itself."""

import sys
from pathlib import Path

from tacit.protocol import Invitation
from tacit.protocol.invitation import PREFIX
from tacit_client.cli.errors import BadFile

_MOST_BYTES = 2**16


def read_invitation(given: str) -> Invitation:
    """The invitation; what is wrong is said without showing what was given, which is secret."""
    if given.startswith(PREFIX):
        return Invitation.from_text(given)
    if given == "-":
        return Invitation.from_text(sys.stdin.read(_MOST_BYTES))
    try:
        with Path(given).open(encoding="utf-8") as file:
            return Invitation.from_text(file.read(_MOST_BYTES))
    except (OSError, UnicodeDecodeError):
        raise BadFile(
            "The invitation is neither a text file that can be read nor a line that begins with"
            f" {PREFIX}"
        ) from None
