"""What happens in the demo, in its order; every party is a process of its own."""

from dataclasses import dataclass

from tacit.conformal import Calibration
from tacit_client.demo.data import digits
from tacit_client.demo.figures import Result
from tacit_client.demo.labels import LabelPart, play_labels
from tacit_client.demo.messages import Message, one_of_each
from tacit_client.demo.model import Classifier
from tacit_client.demo.scores import ScorePart, play_scores
from tacit_client.demo.setting import Setting
from tacit_client.demo.sites import Site
from tacit_client.demo.stage import Stage
from tacit_client.demo.terms import Terms

SHOWN = "Fir"
"""The site whose messages are shown."""


@dataclass(frozen=True)
class Outcome:
    """All that is told at the end."""

    terms: Terms
    setting: Setting
    not_private: Calibration
    labels: LabelPart
    scores: ScorePart
    messages: list[Message]
    keys_erased: int
    """Sites that have learnt that all is counted, and erased the keys of their coins."""
    spent: float
    """The most ε of one person over both campaigns, by the sites' ledgers."""
    images_left: int
    """Images still found in the aggregator's files after they were counted."""

    def results(self) -> dict[str, Result]:
        """The results under the names that people see."""
        return {
            "not private": self.not_private,
            "LDP-CP-L": self.labels.nominal.outcome,
            "LDP-CP-L*": self.labels.starred.outcome,
            "LDP-CP-S": self.scores.threshold.outcome,
        }


def play(stage: Stage) -> Outcome:
    """The whole story: one model, five sites, two campaigns."""
    with stage.steps("A small network is trained, and the operator registers it"):
        setting = Setting(records := digits(), Classifier(records.training))
        model = stage.register(setting.model)
        stage.settle(records)
        owner = stage.owner()
    with owner:
        labels = play_labels(stage, owner, model)
        scores = play_scores(stage, owner, model)
    with stage.steps("The sites write down what was counted, and erase their keys"):
        settled = stage.at_once(Site.settled)
    return Outcome(
        terms=stage.terms,
        setting=setting,
        not_private=setting.without_privacy(stage.terms),
        labels=labels,
        scores=scores,
        messages=one_of_each(
            stage.wire.exchanges(), SHOWN, labels.campaign.digest, scores.campaign.digest
        ),
        keys_erased=sum(settled.values()),
        spent=max(site.spent() for site in stage.sites),
        images_left=stage.images_left(records),
    )
