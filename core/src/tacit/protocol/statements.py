"""What the threshold of a score campaign rests on: in words, and all of it from its rounds.

Whoever signs a threshold and whoever reads it take these statements from here, so that a reader
can compare every word.
"""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from tacit.conformal import Answers
from tacit.protocol.score_campaign import ScoreCampaign
from tacit.protocol.uploads import Count
from tacit.protocol.wire import Number, Wire

_UNIT = "one whole record: nothing but one randomized bit of it is sent"
_CONDITIONS = (
    "Every record answers one question, once; its round is drawn before any question is seen.",
    "Several records of one person add up: m of them spend m·ε.",
    "The coins are a pseudorandom function of a key that only the site has, so ε holds against"
    " whoever cannot break AES-256.",
    "How many records a site has, and when it answers, is not protected.",
    "The answers were not shuffled: each is known to come from its site.",
)
_DECIDED = (
    "With probability at least 1-δ over the records and their coins, a share of at least 1-α of"
    " the population has a score of at most the threshold. The population is the mixture that"
    " answered round {round} of {rounds}, which decided: {answers} answers, from {sites} of the"
    " {all_sites} sites that answered in any round, each site weighted by its answers in this one."
    " Every round's estimate is within its Δ of the truth about those who answered it but with"
    " probability δ/{rounds} each (Hoeffding), and the upper end only moved where an estimate"
    " exceeded 1-α by its Δ."
)
_UNDECIDED = (
    "No round proved a smaller threshold: this is the largest score that there is, and every"
    " record of every population has a score of at most it."
)


class Privacy(Wire):
    """What ε is, of what, and under which conditions."""

    epsilon: float
    unit: str
    conditions: tuple[str, ...]


class HostileContributors(Wire):
    """How far liars can move the estimated coverage, in the worst case."""

    shift_per_record: Annotated[float, Field(ge=0)]
    """One lying record moves F̂^c by at most this: (1+β-2β/k) / ((1-β)·n) for labels,
    (e^ε+1) / ((e^ε-1)·n) for bits, n the answers of the round that decided."""


class Certificate(Wire):
    """Why a certified threshold covers: which proof, when it may be looked at, what it says."""

    name: Literal["hoeffding-union"]
    """Hoeffding's inequality in each round, and a union over the rounds."""
    valid: Literal["at-close"]
    """It speaks once, when the search has ended by its plan or at the campaign's date."""
    statement: str
    """What it says, and of whom: those who answered the round that decided."""


class RoundResult(Wire):
    """What a closed round was asked, and the count of its randomized answers."""

    threshold: Number
    ones: Count
    answers: Count
    sites: Count
    """How many sites answered."""

    @model_validator(mode="after")
    def _counts_answers(self) -> Self:
        if self.ones > self.answers:
            raise ValueError("between none and all of the answers can be ones")
        return self


def deciding_round(campaign: ScoreCampaign, rounds: tuple[RoundResult, ...]) -> int | None:
    """The last round that put the result at its own question, from 0; None if none did.

    Without δ every round with answers does so, with δ those that prove their question.
    """
    search = campaign.state_machine(campaign.planned_n)
    deciding = (
        number
        for number in reversed(range(len(rounds)))
        if search.decides(Answers(rounds[number].ones, rounds[number].answers))
    )
    return next(deciding, None)


def deciding_answers(campaign: ScoreCampaign, rounds: tuple[RoundResult, ...]) -> int:
    """The answers of the round that decided; where none did, of the round with the fewest.

    0 where nobody answered.
    """
    number = deciding_round(campaign, rounds)
    if number is not None:
        return rounds[number].answers
    return min((one.answers for one in rounds if one.answers), default=0)


def certificate(
    campaign: ScoreCampaign, rounds: tuple[RoundResult, ...], sites: int
) -> Certificate:
    """Of a certified result: what is proved, and for whom."""
    number = deciding_round(campaign, rounds)
    statement = _UNDECIDED
    if number is not None:
        statement = _DECIDED.format(
            round=number + 1,
            rounds=campaign.round_count,
            answers=rounds[number].answers,
            sites=rounds[number].sites,
            all_sites=sites,
        )
    return Certificate(name="hoeffding-union", valid="at-close", statement=statement)


def privacy(campaign: ScoreCampaign) -> Privacy:
    """What ε is of, in every score campaign."""
    return Privacy(epsilon=campaign.channel.epsilon, unit=_UNIT, conditions=_CONDITIONS)


def hostile(campaign: ScoreCampaign, rounds: tuple[RoundResult, ...]) -> HostileContributors:
    """1 / ((1-2r)·n), r the flip probability; where nobody answered, nobody can lie."""
    n = deciding_answers(campaign, rounds)
    shift = float(1 / ((1 - 2 * campaign.channel.flip) * n)) if n else 0.0
    return HostileContributors(shift_per_record=shift)
