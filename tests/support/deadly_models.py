"""Models that end the process that runs them, or hang, or want more memory than there is."""

import os
import time
from pathlib import Path

import torch

from tests.support.tiny_models import Linear


class DiesOnBright(Linear):
    """Fine on zeros; where a feature is 255, as a bug in native code would."""

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        if (features == 255).any():
            os._exit(13)
        return super().forward(features)


MOODS = "TEST_MODEL_MOODS"
"""The variable that names the file with the moods of `Moody`."""
ALWAYS = "always"


class Moody(Linear):
    """Fine on zeros; where a feature is 255, it takes the first mood from its file and follows it.

    With the mood `always` it ends the process on zeros too.
    """

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        file = Path(os.environ[MOODS])
        moods = file.read_text().split()
        if moods == [ALWAYS]:
            os._exit(13)
        if moods and bool((features == 255).any()):
            _replace(file, " ".join(moods[1:]))
            _follow(moods[0])
        return super().forward(features)


def _replace(file: Path, text: str) -> None:
    """Write it at once: whoever reads meanwhile must not find a file with nothing in it."""
    whole = file.with_suffix(".next")
    whole.write_text(text)
    whole.replace(file)


def _follow(mood: str) -> None:
    if mood == "die":
        os._exit(13)
    if mood == "hang":
        time.sleep(120)
    if mood == "tarry":
        time.sleep(0.6)
    if mood == "hunger":
        raise MemoryError
