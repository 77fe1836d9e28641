"""Which protocol this is, and which others can still be spoken with."""

from typing import Any, Final

from tacit.errors import UpgradeRequired

FIRST: Final = "1.0"
"""Label campaigns and all that belongs to them."""
ROUNDS: Final = "1.1"
"""Score campaigns: questions, answers and thresholds of rounds."""
PROTOCOL: Final = ROUNDS
SUPPORTED = (FIRST, ROUNDS)

HEADER = "Tacit-Protocol"
"""The HTTP header in which a client says what it speaks."""


def check_version(version: Any) -> str:
    """`version` if it is one of those spoken here; otherwise someone must upgrade."""
    if not isinstance(version, str) or version not in SUPPORTED:
        spoken = ", ".join(SUPPORTED)
        raise UpgradeRequired(
            f"This document or request is of a protocol version that is not spoken here ({spoken})."
            " Install a version of Tacit that speaks it."
        )
    return version
