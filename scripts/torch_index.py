"""Where torch without CUDA comes from."""

import os
import sys
from http.client import HTTPException
from threading import Thread
from urllib.request import urlopen

PATIENCE_SECONDS = 3.0


def chosen_index() -> str | None:
    """The index named by TORCH_INDEX, where one is needed.

    Only for Linux does the usual package index hold torch with gigabytes of CUDA.
    """
    return (os.environ.get("TORCH_INDEX") or None) if sys.platform == "linux" else None


def answers(index: str, patience: float = PATIENCE_SECONDS) -> bool:
    """Whether `index` begins to send its page for torch within `patience` seconds in all."""
    page = f"{index.rstrip('/')}/torch/"
    answered: list[bool] = []

    def ask() -> None:
        try:
            with urlopen(page, timeout=patience):  # noqa: S310 - the developer's own setting
                answered.append(True)
        except (HTTPException, OSError, ValueError):
            return

    # A socket's timeout covers neither the name lookup nor redirects, so the thread is left behind.
    thread = Thread(target=ask, daemon=True)
    thread.start()
    thread.join(patience)
    return bool(answered)
