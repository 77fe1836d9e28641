"""At a site a model gets one record at a time: no record shows in the outputs of another."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tacit.errors import ModelMisbehaved
from tacit.networks import Outputs, one_by_one, predictor
from tacit.networks.onnx_file import onnx_network, site_network
from tests.support.hostile_models import CLASSES, SHAPE, failing, mixing, records


@dataclass(frozen=True)
class Described:
    outputs: Outputs = "logits"
    dtype: str = "float32"
    shape: tuple[int, ...] = SHAPE
    classes: int = CLASSES


def told_apart(run: Any) -> bool:
    """Whether the outputs of all but the first record change with the first record."""
    low, high = records(50), records(50)
    low[0, 0], high[0, 0] = -1, 1
    return not np.array_equal(run(low)[1:], run(high)[1:])


def test_a_model_that_mixes_records_shows_none_of_them_in_the_outputs_of_others() -> None:
    network = site_network(mixing(), "float32")
    alone = one_by_one(Described(), network)
    assert not told_apart(alone)
    assert told_apart(predictor(Described(), network))  # what a batch would give away
    features = records(50)
    each = np.concatenate([alone(features[i : i + 1]) for i in range(50)])
    np.testing.assert_array_equal(alone(features), each)
    np.testing.assert_array_equal(alone(features[::-1])[::-1], each)


@pytest.mark.parametrize("how", ["undefined", "error", "no distribution"])
def test_a_record_that_the_model_fails_on_has_no_probabilities_and_the_others_have_theirs(
    how: str,
) -> None:
    described = Described("probabilities" if how == "no distribution" else "logits")
    load = onnx_network if how == "error" else site_network  # which refuses it, as far as it can
    alone = one_by_one(described, load(failing(how), "float32"))
    features = records(20)
    features[:, 1] = 0
    usual = alone(features)
    assert np.isfinite(usual).all()
    features[7, 1] = 5
    found = alone(features)
    assert np.isnan(found[7]).all()
    others = np.arange(20) != 7
    np.testing.assert_array_equal(found[others], usual[others])


def test_outputs_that_are_no_numbers_are_refused() -> None:
    def network(batch: NDArray[Any]) -> NDArray[Any]:
        return np.full((len(batch), CLASSES), "a")

    with pytest.raises(ModelMisbehaved, match="not numbers"):
        predictor(Described(), network)(records(1))
