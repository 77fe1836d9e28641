"""What is installed here."""

import platform
from importlib.metadata import version

from tacit.protocol import PROTOCOL


def versions() -> dict[str, str]:
    """The client's version, the core's, the protocol's and Python's."""
    return {
        "tacit-client": version("tacit-client"),
        "tacit": version("tacit"),
        "protocol": PROTOCOL,
        "python": platform.python_version(),
    }
