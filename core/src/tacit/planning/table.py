"""Recommendations as text for people and as JSON for programs."""

import json
import math
import textwrap
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from tacit.planning.plans import LabelPlan, Plan, ScorePlan
from tacit.planning.recommendation import Method, Recommendation

MEANING = (
    "Δ is the price of finite n and of privacy, in coverage: a method aims at 1-α+Δ so that, with "
    "probability 1-δ, new records are covered with probability at least 1-α. Where Δ ≥ α there is "
    "nothing left to aim at (marked !); 'n for' is the n from which Δ < α."
)
FOOTNOTE = (
    "Δ_L rests on a constant that is not proved: a comparison, no certificate. Δ_S is proved. "
    "'ε shuffled' is the rule of thumb for S."
)
_WIDTH = 98
_HEADINGS = ("n", "k", "ε", "Δ_L", "n for L*", "Δ_S", "n for S*", "ε shuffled", "use", "because")
_TEXT_COLUMNS = 2
_NONE = "–"


def as_text(recommendations: Sequence[Recommendation]) -> str:
    """The table, with what a newcomer must know to read it."""
    first = recommendations[0].scores
    rows = [_HEADINGS, *(_row(recommendation) for recommendation in recommendations)]
    paragraphs = [
        _wrapped(MEANING),
        "\n".join(
            (
                _wrapped(f"L  labels: {LabelPlan.protects} {LabelPlan.shuffling}", "   "),
                _wrapped(f"S  scores: {ScorePlan.protects} {ScorePlan.shuffling}", "   "),
            )
        ),
        f"α = {first.alpha:g}, δ = {first.delta:g}, {first.rounds} rounds of S",
        _aligned(rows),
        _wrapped(FOOTNOTE),
    ]
    return "\n\n".join(paragraphs)


def as_json(recommendations: Sequence[Recommendation]) -> str:
    """One JSON object per recommendation in a list; an infinite Δ is null."""
    documents = [
        {
            "use": recommendation.method,
            "because": recommendation.reason,
            Method.LABELS: _fields(recommendation.labels),
            Method.SCORES: {
                **_fields(recommendation.scores),
                "shuffled_epsilon_rule_of_thumb": _finite(recommendation.scores.shuffled_epsilon),
            },
        }
        for recommendation in recommendations
    ]
    return json.dumps(documents, indent=2, allow_nan=False)


def _row(recommendation: Recommendation) -> tuple[str, ...]:
    labels, scores = recommendation.labels, recommendation.scores
    return (
        f"{labels.n:,}",
        f"{labels.k:,}",
        f"{labels.epsilon:g}",
        _delta(labels),
        f"{labels.needed:,}",
        _delta(scores),
        f"{scores.needed:,}",
        f"~{scores.shuffled_epsilon:.2g}" if scores.batch else _NONE,
        "L" if recommendation.method is Method.LABELS else "S",
        recommendation.reason,
    )


def _delta(plan: Plan) -> str:
    if math.isinf(plan.correction):
        return f"{_NONE} "
    return f"{plan.correction:.3f}{' ' if plan.certifiable else '!'}"


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    """Numbers to the right, the last columns, which are words, to the left."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    numbers = len(widths) - _TEXT_COLUMNS
    return "\n".join(
        "  ".join(
            cell.rjust(width) if index < numbers else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def _fields(plan: Plan) -> dict[str, Any]:
    fields = {**asdict(plan), "certifiable": plan.certifiable, "protects": plan.protects}
    return {**fields, "correction": _finite(plan.correction)}


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def _wrapped(text: str, indent: str = "") -> str:
    return textwrap.fill(text, width=_WIDTH, subsequent_indent=indent)
