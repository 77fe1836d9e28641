"""The options of `tacit campaign create` that only score campaigns have."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated

import typer

from tacit.conformal.corrections import delta_scores
from tacit.protocol import ScoreCampaign
from tacit_client.cli import terms
from tacit_client.cli.errors import BadOption
from tacit_client.terms import asked_by, round_seconds

_PANEL = "Score campaigns"


class ModelOutputs(StrEnum):
    """What a model gives for each class."""

    LOGITS = "logits"
    PROBABILITIES = "probabilities"


def _option(name: str, text: str) -> object:
    return typer.Option(name, help=text, rich_help_panel=_PANEL, show_default=False)


@dataclass(frozen=True)
class RoundTerms:
    """How a search goes on: its rounds and how long they wait."""

    rounds: Annotated[
        str | None,
        _option("--rounds", "How many, or the share of each: 10, or 1,1,2. Default: 10"),
    ] = None
    round_for: Annotated[
        str | None,
        _option("--round-for", "How long one waits for answers: 30m, 12h. Default: all fit in"),
    ] = None
    enrol_until: Annotated[
        str | None,
        _option("--enrol-until", "When it asks at the latest: a date, or 2d. Default: half time"),
    ] = None
    least: Annotated[
        int | None,
        _option("--least", "A round with fewer answers is extended. Default: half of what it asks"),
    ] = None
    tolerance: Annotated[
        float | None,
        _option("--tolerance", "Without --delta: stop where an estimate is within half of it."),
    ] = None
    outputs: Annotated[
        ModelOutputs | None, _option("--outputs", "What the model gives. Default: logits")
    ] = None

    def refuse_for_labels(self) -> None:
        """Refuse options that say nothing in a label campaign."""
        given = [name for name in self.__dataclass_fields__ if getattr(self, name) is not None]
        if given:
            named = ", ".join("--" + name.replace("_", "-") for name in given)
            raise BadOption(f"{named} is for score campaigns: say --method scores too.")

    def shares(self) -> tuple[int, ...]:
        """The share of each round."""
        listed = [terms.whole_number(part.strip()) for part in (self.rounds or "10").split(",")]
        if len(listed) > 1:
            return tuple(listed)
        if not 1 <= listed[0] <= 64:
            raise BadOption("--rounds is from 1 to 64, or the share of each: 1,1,2.")
        return (1,) * listed[0]

    def first_question(self, opens: datetime, closes: datetime) -> datetime:
        """When it is asked at the latest."""
        if self.enrol_until is None:
            return asked_by(opens, closes)
        return terms.moment(self.enrol_until, opens)

    def seconds(self, asked: datetime, closes: datetime) -> int:
        """How long a round lasts at most; by default all of them fit into the time that is left."""
        given = None if self.round_for is None else terms.duration(self.round_for)
        return round_seconds(given, asked, closes, len(self.shares()))


def margin_words(campaign: ScoreCampaign) -> str | None:
    """What the planned records are worth, in a sentence; None without δ."""
    if campaign.delta is None:
        return None
    shares = campaign.rounds.shares
    batch = campaign.planned_n * min(shares) // sum(shares)
    margin = delta_scores(batch, campaign.channel.flip, len(shares), campaign.delta)
    return (
        f"With the {campaign.planned_n:,} planned records a round's estimate is off by at most"
        f" {margin:.3g}: the threshold covers at least {1 - campaign.alpha:g}, and is sought where"
        f" the estimate is {1 - campaign.alpha + margin:.3g}."
    )
