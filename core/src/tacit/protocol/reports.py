"""The arrays of an upload, checked against the terms of its campaign."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.checks import check_labels
from tacit.errors import InvalidColumn
from tacit.protocol.columns import Column, Dtype
from tacit.protocol.label_campaign import Features, LabelCampaign
from tacit.protocol.uploads import MOST_RECORDS, Upload
from tacit.scores import check_probabilities
from tacit.scores.checks import check_uniforms

_LABEL_DTYPES: dict[int, Dtype] = {2**8: "uint8", 2**16: "uint16"}
_PROBABILITY_DTYPES = ("float32", "float64")


def label_dtype(k: int) -> Dtype:
    """The smallest type that holds the labels of k classes."""
    return next(dtype for size, dtype in _LABEL_DTYPES.items() if k <= size)


@dataclass(frozen=True, eq=False, repr=False)
class Reports:
    """Randomized labels with the evidence they came with: probabilities or features."""

    labels: NDArray[np.generic]
    evidence: NDArray[np.generic]
    uniforms: NDArray[np.float64] | None

    def __len__(self) -> int:
        return len(self.labels)

    @classmethod
    def of(cls, upload: Upload, campaign: LabelCampaign) -> "Reports":
        """The arrays, if they are what the campaign asks for; errors show no value."""
        n = upload.records
        if not 1 <= n <= MOST_RECORDS:
            raise InvalidColumn(f"An upload has from 1 to {MOST_RECORDS} records.")
        labels = _column("labels", upload.labels, label_dtype(campaign.k), (n,))
        check_labels(labels, n, campaign.k)
        return cls(labels, _evidence(upload, campaign, n), _uniforms(upload, campaign, n))


def _column(name: str, column: Column, dtype: Dtype, shape: tuple[int, ...]) -> NDArray[np.generic]:
    if (column.dtype, column.shape) != (dtype, shape):
        raise InvalidColumn(f"{name} must be a column of {dtype} of shape {list(shape)}.")
    return column.array()


def _evidence(upload: Upload, campaign: LabelCampaign, n: int) -> NDArray[np.generic]:
    asked = campaign.evidence
    given, other = upload.probabilities, upload.features
    if isinstance(asked, Features):
        given, other = other, given
    if given is None or other is not None:
        raise InvalidColumn(f"This campaign asks for labels with {asked.kind}, and nothing else.")
    if isinstance(asked, Features):
        features = _column("features", given, asked.dtype, (n, *asked.shape))
        if features.dtype.kind == "f" and not np.isfinite(features).all():
            raise InvalidColumn("features must be finite numbers.")
        return features
    dtype = given.dtype if given.dtype in _PROBABILITY_DTYPES else "float32"
    probabilities = _column("probabilities", given, dtype, (n, campaign.k))
    check_probabilities(probabilities)
    return probabilities


def _uniforms(upload: Upload, campaign: LabelCampaign, n: int) -> NDArray[np.float64] | None:
    if not campaign.conformity_score().randomized:
        if upload.uniforms is not None:
            raise InvalidColumn("This campaign's score is not randomized: send no uniforms.")
        return None
    if upload.uniforms is None:
        raise InvalidColumn("This campaign's score is randomized: send uniforms.")
    return check_uniforms(_column("uniforms", upload.uniforms, "float64", (n,)), n)
