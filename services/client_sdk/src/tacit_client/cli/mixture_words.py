"""Whom a search speaks for, in words: the sites that answered the round that decided."""

from collections.abc import Sequence

from tacit.protocol import (
    CampaignState,
    CampaignStatus,
    RoundResult,
    RoundState,
    RoundStatus,
    ScoreCampaign,
    ScoreThreshold,
    deciding_round,
)
from tacit_client.cli.output import many

_UNEVEN = 0.1
"""A round may have so much more or less than its share of the answers before that is said."""


def search_facts(document: ScoreThreshold, campaign: ScoreCampaign) -> list[tuple[str, object]]:
    """The rounds of a threshold, the one that decided, and where that is not everybody."""
    answers = sum(one.answers for one in document.rounds)
    facts: list[tuple[str, object]] = [
        (
            "rounds",
            f"{many(len(document.rounds), 'round')}, {many(answers, 'answer')} of"
            f" {many(document.asked_n, 'enrolled record')}; the search was replayed, and leads"
            " here",
        )
    ]
    facts += [
        (f"round {number}", _answers_words(one)) for number, one in enumerate(document.rounds, 1)
    ]
    facts.append(("decided", _decided_words(document.rounds, document.sites, campaign)))
    warnings = mixture_warnings(document.rounds, document.sites, campaign)
    return facts + [("warning", warning) for warning in warnings]


def mixture_warnings(
    rounds: tuple[RoundResult, ...], sites: int, campaign: ScoreCampaign, so_far: str = ""
) -> list[str]:
    """Why the round that decided does not speak for all of the `sites` that answered."""
    number = deciding_round(campaign, rounds)
    if number is None:
        return []
    one, name = rounds[number], f"Round {number + 1}, which decided{so_far},"
    warnings = []
    if one.sites < sites:
        warnings.append(
            f"{name} was answered by {one.sites} of the {many(sites, 'site')} that answered in"
            " all: the threshold says nothing about the others."
        )
    expected = _expected(rounds, number, campaign.rounds.shares)
    # A site's own share of a round is off by less than one record for each time it dealt.
    if abs(one.answers - expected) > _UNEVEN * expected + sites:
        warnings.append(
            f"{name} has {many(one.answers, 'answer')}, where its share of all answers would be"
            f" {expected:,.0f}: those who answered it may be another mixture than all who answered."
        )
    return warnings


def status_warnings(status: CampaignStatus, campaign: ScoreCampaign) -> list[str]:
    """The same of a search that may still go on, as far as its rounds are closed."""
    rounds = tuple(
        _result(each, campaign) for each in status.rounds if each.state is RoundState.CLOSED
    )
    answered = sum(site.records.counted > 0 for site in status.sites)
    sites = max([answered, *(one.sites for one in rounds)])
    so_far = "" if status.state is CampaignState.CLOSED else " so far"
    return mixture_warnings(rounds, sites, campaign, so_far)


def _result(each: RoundStatus, campaign: ScoreCampaign) -> RoundResult:
    """A closed round as a threshold would state it; the estimate tells how many were ones."""
    flip = float(campaign.channel.flip)
    share = 0.0 if each.coverage is None else each.coverage * (1 - 2 * flip) + flip
    ones = min(each.answers, max(0, round(share * each.answers)))
    return RoundResult(
        threshold=each.threshold, ones=ones, answers=each.answers, sites=each.sites or 0
    )


def _expected(rounds: tuple[RoundResult, ...], number: int, shares: Sequence[int]) -> float:
    asked = shares[: len(rounds)]
    return sum(one.answers for one in rounds) * asked[number] / sum(asked)


def _answers_words(one: RoundResult) -> str:
    answers = f"{many(one.answers, 'answer')} from {many(one.sites, 'site')}"
    return f"asked for {one.threshold:.6g}: {answers if one.answers else 'nobody answered'}"


def _decided_words(rounds: tuple[RoundResult, ...], sites: int, campaign: ScoreCampaign) -> str:
    number = deciding_round(campaign, rounds)
    if number is None:
        return "no round"
    one = rounds[number]
    return (
        f"round {number + 1}, with {many(one.answers, 'answer')} from {one.sites} of"
        f" {many(sites, 'site')}: the threshold speaks for who answered it"
    )
