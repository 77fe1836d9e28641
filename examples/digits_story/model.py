"""A small classifier, trained in a moment and always the same."""

import numpy as np
import torch
from numpy.typing import NDArray

from examples.digits_story.data import CLASSES, Records
from tacit.scores import softmax

_EPOCHS = 25
_HIDDEN = 32
_SEED = 7


class Classifier:
    """From images to the probability of every class."""

    def __init__(self, training: Records) -> None:
        torch.manual_seed(_SEED)
        self._network = torch.nn.Sequential(
            torch.nn.Flatten(),
            torch.nn.Linear(64, _HIDDEN),
            torch.nn.ReLU(),
            torch.nn.Linear(_HIDDEN, CLASSES),
        )
        self._train(_tensor(training.images), torch.from_numpy(training.labels))

    def probabilities(self, images: NDArray[np.float64]) -> NDArray[np.float64]:
        """One row per image, one column per class."""
        with torch.no_grad():
            return softmax(self._network(_tensor(images)).numpy())

    def _train(self, images: torch.Tensor, labels: torch.Tensor) -> None:
        optimizer = torch.optim.Adam(self._network.parameters(), lr=0.01)
        for _ in range(_EPOCHS):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(self._network(images), labels)
            torch.autograd.backward(loss)
            optimizer.step()


def _tensor(images: NDArray[np.float64]) -> torch.Tensor:
    return torch.from_numpy(images.astype(np.float32))
