"""Labels or scores: which method suits a campaign."""

from dataclasses import dataclass
from enum import StrEnum

from tacit.planning.plans import LabelPlan, Plan, ScorePlan, plan_labels, plan_scores


class Method(StrEnum):
    """How records contribute: `labels` is LDP-CP-L, `scores` is LDP-CP-S."""

    LABELS = "labels"
    SCORES = "scores"


@dataclass(frozen=True)
class Recommendation:
    """The method to use, why, and the plans it was chosen from."""

    method: Method
    reason: str
    labels: LabelPlan
    scores: ScorePlan

    @property
    def plan(self) -> Plan:
        """The plan of the recommended method."""
        return self.labels if self.method is Method.LABELS else self.scores


def recommend(
    n: int,
    k: int,
    epsilon: float,
    alpha: float,
    delta: float,
    *,
    tau: float = 0.001,
    width: float = 1.0,
    features_may_leave: bool = True,
) -> Recommendation:
    """The method with Δ < α, the smaller Δ if both have it, the smaller need if neither has.

    `width` is that of the score's range: 1 for HPS and APS, 2 for margin, k-1 for top-k.
    Where features may not leave their site it is S, whatever n. Ties go to S, which protects more.
    """
    labels = plan_labels(n, k, epsilon, alpha, delta)
    scores = plan_scores(n, epsilon, alpha, delta, tau=tau, width=width)
    method, reason = _choice(labels, scores) if features_may_leave else _only(scores)
    return Recommendation(method, reason, labels, scores)


def _choice(labels: LabelPlan, scores: ScorePlan) -> tuple[Method, str]:
    if labels.certifiable != scores.certifiable:
        return (Method.LABELS if labels.certifiable else Method.SCORES), "the only Δ below α"
    if labels.certifiable:
        better = labels.correction < scores.correction
        return (Method.LABELS if better else Method.SCORES), "the smaller Δ"
    better = labels.needed < scores.needed
    return (Method.LABELS if better else Method.SCORES), "n too small for both; needs fewer"


def _only(scores: ScorePlan) -> tuple[Method, str]:
    return Method.SCORES, "features stay" if scores.certifiable else "features stay; n too small"
