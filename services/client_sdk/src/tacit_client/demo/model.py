"""A small classifier, trained in a moment and always the same."""

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file

from tacit.scores import softmax
from tacit_client.demo.data import BRIGHTEST, CLASSES, Records

_EPOCHS = 25
_HIDDEN = 32
_SEED = 7


class Network(torch.nn.Module):
    """From pixels to one logit per class."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Flatten(),
            torch.nn.Linear(64, _HIDDEN),
            torch.nn.ReLU(),
            torch.nn.Linear(_HIDDEN, CLASSES),
        )

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """The logits of a batch of images, whatever type their pixels are of."""
        logits: torch.Tensor = self.layers(images.to(torch.float32) / BRIGHTEST)
        return logits


class Classifier:
    """From images to the probability of every class."""

    def __init__(self, training: Records) -> None:
        torch.manual_seed(_SEED)
        self._network = Network()
        self._train(torch.from_numpy(training.images), torch.from_numpy(training.labels))

    def probabilities(self, images: NDArray[np.uint8]) -> NDArray[np.float64]:
        """One row per image, one column per class."""
        with torch.inference_mode():
            return softmax(self._network(torch.from_numpy(images)).numpy())

    def save(self, path: Path) -> None:
        """Write the weights, which `Network` loads again."""
        save_file(self._network.state_dict(), path)

    def _train(self, images: torch.Tensor, labels: torch.Tensor) -> None:
        optimizer = torch.optim.Adam(self._network.parameters(), lr=0.01)
        for _ in range(_EPOCHS):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(self._network(images), labels)
            torch.autograd.backward(loss)
            optimizer.step()
