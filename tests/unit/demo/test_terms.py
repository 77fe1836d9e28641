"""The demo's terms: what the sites' policies allow is enough for both campaigns."""

from datetime import UTC, datetime

import pytest

from tacit.errors import InvalidDocument
from tacit_client.demo.terms import Terms
from tacit_client.policy import limit_nano, spent_nano

OPENS = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("epsilon", [0.01, 1 / 3, 1.0, 3.0, 10 / 3, 3.5, 2.9999999999])
def test_the_policies_allow_every_record_to_take_part_in_both_campaigns(epsilon: float) -> None:
    terms = Terms(1250, epsilon=epsilon)
    both = (terms.labels("0" * 64, OPENS), terms.scores("0" * 64, OPENS))
    spent = sum(spent_nano(campaign.channel.epsilon) for campaign in both)
    assert spent <= limit_nano(terms.most_epsilon)


def test_both_campaigns_are_of_the_same_model_score_and_goal() -> None:
    terms = Terms(1250)
    labels, scores = terms.labels("ab" * 32, OPENS), terms.scores("ab" * 32, OPENS)
    assert scores.model is not None
    assert scores.model.digest == labels.evidence.model == "ab" * 32
    assert (scores.score, scores.alpha) == (labels.score, labels.alpha)
    assert scores.round_count == terms.rounds == 10


def test_terms_that_only_the_score_campaign_cannot_have_are_refused_too() -> None:
    with pytest.raises(InvalidDocument, match="one record per round"):
        Terms(planned_n=5)
