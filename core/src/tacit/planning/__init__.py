"""Planning a campaign before anyone sends anything: Δ, the records it takes, and which method.

`delta_labels` and `delta_scores` are Δ, `n_for_labels` and `n_for_scores` the n for a wanted Δ.
`plan_labels` and `plan_scores` say what n records are worth to LDP-CP-L* and LDP-CP-S*; `recommend`
chooses between them. `python -m tacit.planning` prints all of it as a table.
"""

from tacit.conformal.corrections import (
    delta_labels,
    delta_scores,
    n_for_labels,
    n_for_scores,
    rounds_for,
)
from tacit.planning.plans import LabelPlan, Plan, ScorePlan, plan_labels, plan_scores
from tacit.planning.recommendation import Method, Recommendation, recommend

__all__ = [
    "LabelPlan",
    "Method",
    "Plan",
    "Recommendation",
    "ScorePlan",
    "delta_labels",
    "delta_scores",
    "n_for_labels",
    "n_for_scores",
    "plan_labels",
    "plan_scores",
    "recommend",
    "rounds_for",
]
