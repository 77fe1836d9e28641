"""The threshold document: what a campaign found, with everything it rests on.

It is of a label campaign, or of a score campaign with the rounds that it can be replayed from.
"""

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from tacit.conformal import Answers, Calibration, Guarantee, NotCertifiable, Question
from tacit.errors import InvalidDocument, InvalidParameter
from tacit.protocol.score_campaign import MOST_ROUNDS, ScoreCampaign
from tacit.protocol.statements import (
    Certificate,
    HostileContributors,
    Privacy,
    RoundResult,
    certificate,
    hostile,
    privacy,
)
from tacit.protocol.uploads import Count
from tacit.protocol.versions import FIRST, ROUNDS
from tacit.protocol.wire import (
    Digest,
    JsonObject,
    Moment,
    Name,
    SignedDocument,
    chosen_form,
)

CLOCKS = timedelta(minutes=5)
"""By how much clocks may differ."""

_RESULTS: tuple[type[Calibration] | type[NotCertifiable], ...] = (Calibration, NotCertifiable)


class ThresholdKind(StrEnum):
    """nominal: LDP-CP-L of what is counted so far, or LDP-CP-S of a search that has ended.

    starred: LDP-CP-L* or the certified LDP-CP-S*, once, at the planned end.
    """

    NOMINAL = "nominal"
    STARRED = "starred"


class Threshold(SignedDocument):
    """A result of the core's, for one campaign, as it stood when the counted records were n."""

    kind: ClassVar[str] = "threshold"

    tacit: Literal["threshold"] = "threshold"
    version: str
    campaign: Digest
    which: ThresholdKind
    final: bool
    """Whether the campaign was closed and everything it had accepted is counted."""
    as_of: Moment
    """When the last of the records was counted."""
    classes: tuple[Name, ...]
    sites: Count
    """How many sites the records come from."""
    result: JsonObject
    """A calibration or a not-certifiable, as the core writes them."""
    certificate: Certificate | None = None
    privacy: Privacy
    hostile: HostileContributors

    @classmethod
    def form_of(cls, fields: Mapping[str, Any]) -> type[Self]:
        """The class of this version's thresholds."""
        forms = cls.__subclasses__()
        return chosen_form(forms, fields, "version", cls.kind) if forms else cls

    @model_validator(mode="after")
    def _holds_a_result(self) -> Self:
        outcome = self.outcome()
        if isinstance(outcome, Calibration) and outcome.k != len(self.classes):
            raise ValueError("the result is for another number of classes")
        if (outcome.delta is None) != (self.which is ThresholdKind.NOMINAL):
            raise ValueError("a nominal result has no δ, a starred one has")
        if outcome.epsilon != self.privacy.epsilon:
            raise ValueError("the result and the privacy statement must have the same ε")
        if (self.certificate is not None) != _is_certified(outcome):
            raise ValueError("a certified result has a certificate, and no other has")
        return self

    @staticmethod
    def fields_of(outcome: Calibration | NotCertifiable) -> dict[str, Any]:
        """An outcome as the field `result` holds it."""
        fields: dict[str, Any] = json.loads(outcome.to_json())
        return fields

    def outcome(self) -> Calibration | NotCertifiable:
        """The result: a threshold to make prediction sets with, or how many records it takes."""
        for kind in _RESULTS:
            if self.result.get("tacit") == kind.kind:
                return kind.from_json(json.dumps(self.result))
        raise InvalidDocument("A threshold document holds a calibration or a not-certifiable.")


def _is_certified(outcome: Calibration | NotCertifiable) -> bool:
    return isinstance(outcome, Calibration) and outcome.guarantee is Guarantee.CERTIFIED


class LabelThreshold(Threshold):
    """The threshold of a label campaign, of which nothing is certified in this version."""

    version: Literal["1.0"] = FIRST
    certificate: None = None


class ScoreThreshold(Threshold):
    """The threshold of a score campaign; whoever has the campaign can check it from its rounds."""

    version: Literal["1.1"] = ROUNDS
    final: Literal[True]
    """There is none before the search has ended."""
    asked_n: Count
    """The records that were enrolled when the first question was asked."""
    rounds: Annotated[tuple[RoundResult, ...], Field(max_length=MOST_ROUNDS)]

    @classmethod
    def of(
        cls,
        campaign: ScoreCampaign,
        asked_n: int,
        rounds: tuple[RoundResult, ...],
        *,
        sites: int,
        as_of: datetime,
    ) -> Self:
        """What these rounds of a search for `asked_n` records lead to; `sites` answered in them.

        Whoever signs a threshold makes it so, and whoever reads one makes it again: every word and
        number of it follows from what is given here.
        """
        outcome = replay(campaign, asked_n, rounds)
        return cls(
            campaign=campaign.digest,
            which=ThresholdKind.NOMINAL if campaign.delta is None else ThresholdKind.STARRED,
            final=True,
            as_of=as_of,
            classes=campaign.classes,
            sites=sites,
            result=cls.fields_of(outcome),
            certificate=certificate(campaign, rounds, sites) if _is_certified(outcome) else None,
            privacy=privacy(campaign),
            hostile=hostile(campaign, rounds),
            asked_n=asked_n,
            rounds=rounds,
        )

    def check_replay(self, campaign: ScoreCampaign) -> None:
        """Refuse all but what the campaign's search makes of the answers stated here.

        That is the result, the round that decided, and every statement. What the rounds do not
        determine, the numbers of records and sites and the time, must be possible.
        """
        if self.campaign != campaign.digest or self.classes != campaign.classes:
            raise InvalidDocument("This threshold is of another campaign.")
        try:
            replayed = self.of(
                campaign, self.asked_n, self.rounds, sites=self.sites, as_of=self.as_of
            )
        except InvalidParameter as error:
            raise InvalidDocument("No search asks so few records.") from error
        if self.result != replayed.result:
            raise InvalidDocument("The threshold is not what its rounds lead to.")
        for field in type(self).model_fields:
            if getattr(self, field) != getattr(replayed, field):
                raise InvalidDocument(f"The threshold's {field} is not what its rounds lead to.")
        self._check_counts()
        if self.as_of < campaign.opens - CLOCKS:
            raise InvalidDocument("The threshold is older than its campaign.")

    def _check_counts(self) -> None:
        """Refuse numbers that nobody can have counted, and a threshold without any answer."""
        answers = [one.answers for one in self.rounds]
        sites = [one.sites for one in self.rounds]
        if sum(answers) > self.asked_n:
            raise InvalidDocument("The threshold has more answers than records were asked.")
        pairs = zip(answers, sites, strict=True)
        if any(there > given or (given and not there) for given, there in pairs):
            raise InvalidDocument("A round has answers from sites, at least one from each.")
        if not max(sites, default=0) <= self.sites <= sum(sites):
            raise InvalidDocument("The threshold's sites are not those of its rounds.")
        if not sum(answers) and isinstance(self.outcome(), Calibration):
            raise InvalidDocument("Nobody answered, so there is no threshold.")


def replay(
    campaign: ScoreCampaign, n: int, rounds: tuple[RoundResult, ...]
) -> Calibration | NotCertifiable:
    """The result of a search that was asked these questions and got these answers.

    Rounds that were not asked because the campaign ended count as rounds that nobody answered.
    """
    search = campaign.state_machine(n)
    step: Question | Calibration | NotCertifiable = search.start()
    for result in rounds:
        if not isinstance(step, Question) or step.threshold != result.threshold:
            raise InvalidDocument("These are not the questions that the search would ask.")
        step = search.advance(step, Answers(result.ones, result.answers))
    while isinstance(step, Question):
        step = search.advance(step, Answers(0, 0))
    return step
