"""The setting of the story: five sites, a model, and images that nobody calibrated on."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from examples.digits_story.campaigns import Comparison, Terms, compare
from examples.digits_story.data import Records, digits
from examples.digits_story.model import Classifier
from examples.digits_story.sites import Site, settle
from tacit.conformal import Calibration
from tacit.scores import Score

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

    def coverage_and_size(self, calibration: Calibration) -> tuple[float, float]:
        """On held-out images: how often the set holds the true digit, and its average size."""
        sets = calibration.sets(self.model.probabilities(self.held_out.images))
        hits = sets[np.arange(len(sets)), self.held_out.labels]
        return float(hits.mean()), float(sets.sum(axis=1).mean())


def prepare() -> Setting:
    """Train the model and give every site its records."""
    records = digits()
    return Setting(Classifier(records.training), settle(records.calibration), records.held_out)
