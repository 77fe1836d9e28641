"""Whether a threshold is of its campaign: every term of it, and the search that led to it."""

import math
from typing import Any

from tacit.conformal import Calibration, NotCertifiable
from tacit.errors import InvalidDocument
from tacit.protocol import (
    Campaign,
    LabelCampaign,
    LabelThreshold,
    ScoreCampaign,
    ScoreThreshold,
    Threshold,
    ThresholdKind,
)
from tacit_client.dates import SLACK
from tacit_client.errors import TermsDiffer

Outcome = Calibration | NotCertifiable
Terms = dict[str, tuple[Any, Any]]
"""What a threshold says of each term, and what was agreed on."""


def check_terms(threshold: Threshold, campaign: Campaign, now: float) -> None:
    """Refuse a threshold whose terms are not its campaign's, as `TermsDiffer`.

    One of a score campaign follows from its rounds, every statement included; and it is no older
    than its campaign, and not of a time to come.
    """
    if isinstance(threshold, LabelThreshold) and isinstance(campaign, LabelCampaign):
        _check_labels(threshold, campaign)
    elif isinstance(threshold, ScoreThreshold) and isinstance(campaign, ScoreCampaign):
        _check_scores(threshold, campaign, now)
    else:
        raise TermsDiffer("The threshold is of another method than its campaign; do not use it.")


def _check_labels(threshold: LabelThreshold, campaign: LabelCampaign) -> None:
    starred = threshold.which is ThresholdKind.STARRED
    outcome = threshold.outcome()
    terms = _shared(threshold, campaign, outcome)
    terms["δ"] = (outcome.delta, campaign.delta if starred else None)
    terms["method"] = (outcome.method, "ldp-cp-l*" if starred else "ldp-cp-l")
    if isinstance(outcome, Calibration):
        terms["guarantee"] = (outcome.guarantee, "comparison" if starred else "nominal")
    _compare(terms)
    if starred and not threshold.final:
        raise TermsDiffer("A starred threshold must be final; do not use this one.")
    beta = campaign.channel.beta
    n = outcome.n
    shift = float((1 + beta - 2 * beta / campaign.k) / ((1 - beta) * n)) if n else math.inf
    if not math.isclose(threshold.hostile.shift_per_record, shift, rel_tol=1e-9):
        raise TermsDiffer("The threshold understates what hostile contributors can do.")


def _check_scores(threshold: ScoreThreshold, campaign: ScoreCampaign, now: float) -> None:
    starred = campaign.delta is not None
    outcome = threshold.outcome()
    terms = _shared(threshold, campaign, outcome)
    terms["kind"] = (threshold.which is ThresholdKind.STARRED, starred)
    terms["δ"] = (outcome.delta, campaign.delta)
    terms["method"] = (outcome.method, "ldp-cp-s*" if starred else "ldp-cp-s")
    if isinstance(outcome, Calibration):
        terms["guarantee"] = (outcome.guarantee, campaign.guarantee)
    _compare(terms)
    try:
        threshold.check_replay(campaign)
    except InvalidDocument as error:
        raise TermsDiffer(f"{error} Do not use it.") from None
    if threshold.as_of.timestamp() > now + SLACK:
        raise TermsDiffer(
            "The threshold is of a time to come; do not use it. If this machine's clock is wrong,"
            " set it."
        )


def _shared(threshold: Threshold, campaign: Campaign, outcome: Outcome) -> Terms:
    epsilon = campaign.channel.epsilon
    terms: Terms = {
        "α": (outcome.alpha, campaign.alpha),
        "ε": (outcome.epsilon, epsilon),
        "ε of the privacy statement": (threshold.privacy.epsilon, epsilon),
        "classes": (threshold.classes, campaign.classes),
    }
    if isinstance(outcome, Calibration):
        terms["score"] = (outcome.score, campaign.conformity_score())
        terms["number of classes"] = (outcome.k, campaign.k)
    return terms


def _compare(terms: Terms) -> None:
    for term, (found, agreed) in terms.items():
        if found != agreed:
            raise TermsDiffer(f"The threshold's {term} is not that of its campaign; do not use it.")
