"""Running the demo: what is shown, and that nothing stays behind."""

import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from rich.console import Console

from tacit_client.cli.output import Screen
from tacit_client.demo.data import CALIBRATION
from tacit_client.demo.progress import Steps
from tacit_client.demo.terms import Terms

_ENDINGS = ("SIGTERM", "SIGHUP")


def run(screen: Screen, *, epsilon: float, alpha: float, keep: bool) -> None:
    """Play both campaigns and show what came out; with `keep`, serve until Ctrl-C.

    Processes and files are gone when it returns or raises.
    """
    terms = Terms(CALIBRATION, epsilon=epsilon, alpha=alpha)
    steps = Steps(Console(stderr=True, highlight=False, markup=False), quiet=screen.quiet)
    with _ending_in_order(), tempfile.TemporaryDirectory(prefix="tacit-demo-") as folder:
        with steps("torch and scikit-learn are loaded"):
            # ruff: noqa: PLC0415 -- takes seconds, in which a person should see something
            from tacit_client.demo.document import document
            from tacit_client.demo.keeping import Kept
            from tacit_client.demo.screen import show
            from tacit_client.demo.stage import Stage
            from tacit_client.demo.story import play

        with Stage(Path(folder), terms, steps) as stage:
            outcome = play(stage)
            if not screen.json:
                show(Console(highlight=False, markup=False), outcome)
            if not keep:
                screen.show(document(outcome))
                return
            digests = (outcome.labels.campaign.digest, outcome.scores.campaign.digest)
            kept = Kept.of(stage, *digests)
            screen.show(document(outcome) | kept.to_json(), kept.in_words())
            sys.stdout.flush()  # it may be a pipe, whose reader waits for the address
            kept.wait()


@contextmanager
def _ending_in_order() -> Iterator[None]:
    """Clean up also when the process is told to end or its terminal is closed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)

    known = [getattr(signal, name) for name in _ENDINGS if hasattr(signal, name)]
    before = {number: signal.signal(number, leave) for number in known}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
