"""A model that ends the process it runs in, for some inputs: as a crash in native code would."""

import os
import signal

import torch

from tests.support.tiny_models import Linear

DEADLY = 255


class DeadlyOnBright(Linear):
    """Fine on zeros; where a feature is 255, the process is gone."""

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        if bool((features == DEADLY).any()):
            os.kill(os.getpid(), signal.SIGKILL)
        return super().forward(features)
