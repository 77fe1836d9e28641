"""What sites and aggregator do together: five ways to one threshold."""

from dataclasses import dataclass, field

import numpy as np

from examples.digits_story.sites import ScoreCampaign, Site
from tacit.conformal import (
    Answers,
    BinarySearch,
    Calibration,
    CertifiedSearch,
    CoverageSketch,
    Question,
    run,
    split,
)
from tacit.exact import count, level
from tacit.mechanisms import BinaryChannel, BinaryRandomizedResponse, RandomizedResponse
from tacit.scores import APS, Score
from tacit_client.demo.data import CLASSES
from tacit_client.demo.figures import Result
from tacit_client.demo.model import Classifier


@dataclass(frozen=True)
class Terms:
    """What all campaigns agree on before anything is sent."""

    alpha: float = 0.2
    delta: float = 0.05
    epsilon: float = 3.0
    rounds: int = 5
    score: Score = field(default_factory=APS)

    def __post_init__(self) -> None:
        """Refuse terms that make no sense before anyone is asked."""
        level(self.alpha, "α")
        level(self.delta, "δ")
        count(self.rounds, "The number of rounds")
        BinaryChannel.for_epsilon(self.epsilon)

    @property
    def label_mechanism(self) -> RandomizedResponse:
        """What a label goes through."""
        return RandomizedResponse(CLASSES, self.epsilon)

    @property
    def bit_mechanism(self) -> BinaryRandomizedResponse:
        """What an answer goes through."""
        return BinaryRandomizedResponse(self.epsilon)


@dataclass(frozen=True)
class Comparison:
    """The result of every method, and the merged sketch that two of them come from."""

    terms: Terms
    not_private: Calibration
    labels: Result
    labels_star: Result
    scores: Result
    scores_star: Result
    sketch: CoverageSketch

    def results(self) -> dict[str, Result]:
        """The results under the names that people see, in the order of the story."""
        return {
            "not private": self.not_private,
            "LDP-CP-L": self.labels,
            "LDP-CP-L*": self.labels_star,
            "LDP-CP-S": self.scores,
            "LDP-CP-S*": self.scores_star,
        }


def compare(sites: list[Site], model: Classifier, terms: Terms) -> Comparison:
    """Run every method on the same sites."""
    sketch = label_campaign(sites, model, terms)
    channel = terms.label_mechanism.channel
    bits = terms.bit_mechanism
    n = sum(len(site) for site in sites)
    plan = (terms.score, CLASSES, bits.channel, terms.alpha, n, terms.rounds)

    def by_questions(name: str, search: BinarySearch | CertifiedSearch) -> Result:
        campaign = ScoreCampaign(name, model, terms.score, bits, terms.rounds)
        return score_campaign(search, campaign, sites)

    return Comparison(
        terms=terms,
        not_private=without_privacy(sites, model, terms),
        labels=sketch.calibrate(channel, terms.alpha),
        labels_star=sketch.calibrate(channel, terms.alpha, terms.delta),
        scores=by_questions("scores", BinarySearch(*plan)),
        scores_star=by_questions("certified scores", CertifiedSearch(*plan, terms.delta)),
        sketch=sketch,
    )


def without_privacy(sites: list[Site], model: Classifier, terms: Terms) -> Calibration:
    """Split conformal prediction: every site hands over its images and its true labels."""
    images = np.concatenate([site.records.images for site in sites])
    labels = np.concatenate([site.records.labels for site in sites])
    return split(model.probabilities(images), labels, score=terms.score, alpha=terms.alpha)


def label_campaign(sites: list[Site], model: Classifier, terms: Terms) -> CoverageSketch:
    """One coverage sketch per site from what it reports; together they are their sum."""
    empty = CoverageSketch.empty(terms.score, CLASSES)
    reports = [site.report_labels(terms.label_mechanism) for site in sites]
    sketches = [empty.add(model.probabilities(report.images), report.labels) for report in reports]
    return sum(sketches, start=empty)


def score_campaign(
    search: BinarySearch | CertifiedSearch, campaign: ScoreCampaign, sites: list[Site]
) -> Result:
    """Each round puts one question to a share of every site's records; nobody is asked twice."""

    def ask(question: Question) -> Answers:
        answers = [site.answer(question, campaign) for site in sites]
        return Answers(sum(part.ones for part in answers), sum(part.count for part in answers))

    return run(search, ask)
