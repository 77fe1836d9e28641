"""Running a model: few records at a time, or one, and nothing it gives is believed unchecked."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidProbabilities, ModelMisbehaved
from tacit.scores import check_probabilities, softmax

Outputs = Literal["logits", "probabilities"]
Predictor = Callable[[NDArray[Any]], NDArray[np.float64]]
"""Features, one record per row, to the probability of each class."""
Network = Callable[[NDArray[Any]], NDArray[Any]]
"""A batch in the declared type to the model's outputs."""

_MOST_ROWS = 512
_MOST_BATCH_BYTES = 2**24
"""Of the features as float32; activations take many times that."""
_MOST_SCORES = 2**22
"""Numbers that the model gives at once; they are copied some times."""


class Described(Protocol):
    """What a model takes and gives."""

    @property
    def dtype(self) -> str:
        """The type of the features, as numpy names it."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one record."""

    @property
    def classes(self) -> int:
        """How many classes it tells apart; 0: not known yet."""

    @property
    def outputs(self) -> Outputs:
        """What it gives for each class."""


def predictor(model: Described, network: Network) -> Predictor:
    """The model as a function of any number of records, handed to it in batches.

    In a batch a model can let the outputs of a record depend on the others. So this is for whoever
    has the features anyway, as an aggregator of labels, and for speed; a site uses `one_by_one`.
    """

    def predict(features: NDArray[Any]) -> NDArray[np.float64]:
        probabilities = np.empty((len(features), model.classes))
        step = rows_at_once(model)
        for start in range(0, len(features), step):
            rows = slice(start, start + step)
            probabilities[rows] = _probabilities(model, network, features[rows])
        return probabilities

    return predict


def one_by_one(model: Described, network: Network) -> Predictor:
    """The model as a function of records, each of which it gets alone, at a site.

    A record's probabilities depend on no other record: ε is of one record's bit, and a model that
    carried one record into the outputs of others would have all their bits tell of it. Where a
    model fails, or gives no probabilities, they are NaN, and the others are what they are: an error
    that some records raise and others do not would be seen from outside. How long it takes can be
    seen too, and is not protected: `tacit.networks.operators` refuses what is known to take longer
    for some records, and no more.
    """

    def predict(features: NDArray[Any]) -> NDArray[np.float64]:
        probabilities = np.full((len(features), model.classes), np.nan)
        for row in range(len(features)):
            alone = slice(row, row + 1)
            with suppress(ModelMisbehaved):
                probabilities[alone] = _probabilities(model, network, features[alone])
        return probabilities

    return predict


def probe(model: Described, network: Network) -> int:
    """Run a model on zeros, in the smallest and the largest batch: its number of classes."""
    (alone,) = _outputs(model, network, zeros(model, 1))
    classes = len(alone)
    if classes < 2:
        raise ModelMisbehaved("The model must tell at least two classes apart.")
    together = _outputs(model, network, zeros(model, rows_at_once(model, classes)))
    if together.shape[1:] != alone.shape or not np.allclose(together, alone, rtol=1e-2, atol=1e-3):
        raise ModelMisbehaved(
            "The model gives equal records different outputs; export it in evaluation mode."
        )
    _normalized(model, together)
    return classes


def rows_at_once(model: Described, classes: int | None = None) -> int:
    """How many records are handed to the model together."""
    one = int(np.prod(model.shape, dtype=np.int64)) * max(np.dtype(model.dtype).itemsize, 4)
    by_classes = _MOST_SCORES // max(1, model.classes if classes is None else classes)
    return max(1, min(_MOST_ROWS, _MOST_BATCH_BYTES // one, by_classes))


def zeros(model: Described, rows: int) -> NDArray[Any]:
    """Records that every model takes."""
    return np.zeros((rows, *model.shape), dtype=np.dtype(model.dtype))


def _probabilities(
    model: Described, network: Network, features: NDArray[Any]
) -> NDArray[np.float64]:
    outputs = _outputs(model, network, features)
    if outputs.shape[1] != model.classes:
        raise ModelMisbehaved(
            f"The model gave {outputs.shape[1]} classes, not {model.classes} as it should."
        )
    return _normalized(model, outputs)


def _outputs(model: Described, network: Network, features: NDArray[Any]) -> NDArray[Any]:
    # A copy in native byte order that the model may write to.
    batch = np.array(features, dtype=np.dtype(model.dtype), order="C")
    try:
        outputs = network(batch)
    except (ModelMisbehaved, MemoryError):  # too little memory now says nothing of the records
        raise
    except Exception as error:
        # Only what kind of error: its text, and what it was raised from, may show features.
        raise ModelMisbehaved(
            f"The model failed on {len(batch)} records ({type(error).__name__}); it must take any"
            f" number of records of shape {list(model.shape)} and type {model.dtype}."
        ) from None
    if outputs.ndim != 2 or len(outputs) != len(batch):
        raise ModelMisbehaved(
            f"The model gave outputs of shape {list(outputs.shape)} for {len(batch)} records;"
            " it must give one number per record and class."
        )
    if outputs.dtype.kind not in "fiu":
        raise ModelMisbehaved("The model gave outputs that are not numbers.")
    if not np.isfinite(outputs).all():
        raise ModelMisbehaved("The model gave outputs that are not finite.")
    return outputs


def _normalized(model: Described, outputs: NDArray[Any]) -> NDArray[np.float64]:
    try:
        return softmax(outputs) if model.outputs == "logits" else check_probabilities(outputs)
    except InvalidProbabilities as error:
        raise ModelMisbehaved(
            f"The model's outputs are not {model.outputs} ({error}); if they are logits, whoever"
            " registers it must say so: --outputs logits."
        ) from None
