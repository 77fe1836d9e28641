"""A small classifier, trained in a moment and always the same."""

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from tacit.scores import softmax
from tacit_client.demo.data import BRIGHTEST, CLASSES, Records

_HIDDEN = 32
_STEPS = 100
_RATE = 0.2
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
        """Write the network as a single ONNX file, which is data to whoever runs it."""
        from tacit_client.demo.graph import onnx_file  # noqa: PLC0415 -- examples do without

        weights = self._network.state_dict()
        path.write_bytes(onnx_file({name: values.numpy() for name, values in weights.items()}))

    def _train(self, images: torch.Tensor, labels: torch.Tensor) -> None:
        weights = list(self._network.parameters())
        for _ in range(_STEPS):
            loss = torch.nn.functional.cross_entropy(self._network(images), labels)
            downhill = torch.autograd.grad(loss, weights)
            # By hand: torch's optimizers take a second to load, and leave a folder behind.
            with torch.no_grad():
                for weight, slope in zip(weights, downhill, strict=True):
                    weight.sub_(_RATE * slope)
