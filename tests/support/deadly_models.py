"""A model that ends the process that runs it."""

import os

import torch

from tests.support.tiny_models import Linear


class DiesOnBright(Linear):
    """Fine on zeros; where a feature is 255, as a bug in native code would."""

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        if (features == 255).any():
            os._exit(13)
        return super().forward(features)
