"""Planning a campaign before anyone sends anything: Δ, the records it takes, and which method.

`plan_labels` and `plan_scores` say what n records are worth to LDP-CP-L* and LDP-CP-S*; `recommend`
chooses between them. `python -m tacit.planning` prints all of it as a table.
"""

from tacit.planning.plans import LabelPlan, Plan, ScorePlan, plan_labels, plan_scores
from tacit.planning.recommendation import Method, Recommendation, recommend

__all__ = [
    "LabelPlan",
    "Method",
    "Plan",
    "Recommendation",
    "ScorePlan",
    "plan_labels",
    "plan_scores",
    "recommend",
]
