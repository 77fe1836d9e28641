"""What there is before any campaign, and what thresholds are worth in it."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tacit.conformal import Calibration, split
from tacit_client.demo.data import Digits
from tacit_client.demo.figures import Figures
from tacit_client.demo.model import Classifier
from tacit_client.demo.terms import Terms


@dataclass(frozen=True)
class Setting:
    """A trained model, and records at five sites."""

    digits: Digits = field(repr=False)
    model: Classifier

    @property
    def held_out(self) -> NDArray[np.float64]:
        """The model's probabilities for images that nobody calibrated on."""
        return self.model.probabilities(self.digits.held_out.images)

    def accuracy(self) -> float:
        """How often the model's first guess is right on held-out images."""
        return float((self.held_out.argmax(axis=1) == self.digits.held_out.labels).mean())

    def figures(self, calibration: Calibration) -> Figures:
        """What a threshold is worth on held-out images."""
        return Figures.of(calibration, self.held_out, self.digits.held_out.labels)

    def without_privacy(self, terms: Terms) -> Calibration:
        """Split conformal prediction: every site hands over its images and its true labels."""
        records = self.digits.calibration
        probabilities = self.model.probabilities(records.images)
        return split(probabilities, records.labels, score=terms.score, alpha=terms.alpha)
