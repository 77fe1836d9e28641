"""The threshold document of a score campaign: what the protocol makes of the closed rounds."""

from datetime import UTC, datetime

from tacit.protocol import RoundResult, ScoreCampaign, ScoreThreshold


def score_threshold_of(
    campaign: ScoreCampaign,
    asked_n: int,
    rounds: tuple[RoundResult, ...],
    sites: int,
    now: float,
) -> ScoreThreshold:
    """What these rounds of a search for `asked_n` records lead to; `sites` answered in them."""
    as_of = datetime.fromtimestamp(int(now), UTC)
    return ScoreThreshold.of(campaign, asked_n, rounds, sites=sites, as_of=as_of)
