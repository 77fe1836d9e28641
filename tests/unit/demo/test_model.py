"""The model that travels is the model that was trained."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tacit.networks import Outputs, predictor, probe
from tacit.networks.onnx_file import onnx_network
from tacit_client.demo.data import CLASSES, digits
from tacit_client.demo.model import Classifier
from tacit_client.demo.terms import DTYPE, SHAPE


@dataclass(frozen=True)
class Described:
    dtype: str = DTYPE
    shape: tuple[int, ...] = SHAPE
    classes: int = CLASSES
    outputs: Outputs = "logits"


def test_the_onnx_file_gives_the_probabilities_of_the_trained_network(tmp_path: Path) -> None:
    records = digits()
    trained = Classifier(records.training)
    trained.save(tmp_path / "digits.onnx")
    network = onnx_network((tmp_path / "digits.onnx").read_bytes(), DTYPE)
    assert probe(Described(), network) == CLASSES
    images = records.held_out.images
    found = predictor(Described(), network)(images)
    assert np.allclose(found, trained.probabilities(images), rtol=0, atol=1e-5)


def test_saving_a_model_again_gives_the_same_file_and_so_the_same_digest(tmp_path: Path) -> None:
    training = digits().training
    first, second = tmp_path / "first.onnx", tmp_path / "second.onnx"
    Classifier(training).save(first)
    Classifier(training).save(second)
    assert first.read_bytes() == second.read_bytes()
