"""The setting of the story: five sites, a model, and images that nobody calibrated on."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from examples.digits_story.campaigns import Comparison, Terms, compare
from examples.digits_story.sites import Site, settle
from tacit.conformal import Calibration
from tacit.scores import Score
from tacit_client.demo.data import Records, digits
from tacit_client.demo.figures import Figures
from tacit_client.demo.model import Classifier

__all__ = ["Comparison", "Setting", "Terms", "compare", "prepare"]


@dataclass(frozen=True)
class Setting:
    """Everything there is before the first question."""

    model: Classifier
    sites: list[Site]
    held_out: Records

    @property
    def n(self) -> int:
        """Calibration records at all sites."""
        return sum(len(site) for site in self.sites)

    def accuracy(self) -> float:
        """How often the model's first guess is right on held-out images."""
        guesses = self.model.probabilities(self.held_out.images).argmax(axis=1)
        return float((guesses == self.held_out.labels).mean())

    def true_scores(self, score: Score) -> NDArray[np.float64]:
        """The scores of the sites' true labels, which only a simulation can look at."""
        scores = [
            score.of_labels(self.model.probabilities(site.records.images), site.records.labels)
            for site in self.sites
        ]
        return np.concatenate(scores)

    def figures(self, calibration: Calibration) -> Figures:
        """What a threshold is worth on held-out images."""
        probabilities = self.model.probabilities(self.held_out.images)
        return Figures.of(calibration, probabilities, self.held_out.labels)


def prepare() -> Setting:
    """Train the model and give every site its records."""
    records = digits()
    return Setting(Classifier(records.training), settle(records), records.held_out)
