"""The campaign document: all terms of a campaign, fixed before anyone contributes.

A campaign is of labels (`label_campaign`) or of scores (`score_campaign`).
"""

import secrets
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Field

from tacit.exact import level
from tacit.mechanisms import BinaryChannel, UniformChannel
from tacit.protocol.randomizers import Randomizer
from tacit.protocol.wire import Identifier, JsonObject, Moment, Name, SignedDocument, chosen_form
from tacit.scores import Score, score_from_dict

MOST_CLASSES = 2**16
MOST_PLANNED = 2**40
LEAST_EPSILON = 2.0**-30
"""Below it, the most records that can be planned say nothing."""

Method = Literal["labels", "scores"]


def _with_a_size(shape: tuple[int, ...]) -> tuple[int, ...]:
    if any(not 0 < extent < 2**31 for extent in shape):
        raise ValueError("every extent of the features must be at least 1")
    return shape


Extents = Annotated[tuple[int, ...], Field(max_length=7), AfterValidator(_with_a_size)]
"""The shape of one record's features; () is one number."""


class Campaign(SignedDocument):
    """Immutable: a change is a new campaign. Its digest is in every upload and every threshold."""

    kind: ClassVar[str] = "campaign"

    tacit: Literal["campaign"] = "campaign"
    version: str
    nonce: Identifier
    title: Name
    owner: Name
    method: Method
    classes: Annotated[tuple[Name, ...], Field(min_length=2, max_length=MOST_CLASSES)]
    mechanism: Randomizer
    epsilon: float
    """The exact ε of the realized channel, rounded up: what one record spends."""
    score: JsonObject
    alpha: float
    delta: float | None
    planned_n: Annotated[int, Field(ge=1, le=MOST_PLANNED)]
    """Labels: the campaign closes with this many. Scores: it begins to ask with this many."""
    opens: Moment
    closes: Moment

    @classmethod
    def form_of(cls, fields: Mapping[str, Any]) -> type[Self]:
        """The class of the campaign's method."""
        forms = cls.__subclasses__()
        return chosen_form(forms, fields, "method", cls.kind) if forms else cls

    @property
    def channel(self) -> UniformChannel | BinaryChannel:
        """What a record's report goes through; every ε that is shown or spent comes from here."""
        return self.mechanism.channel(self.k)

    @property
    def k(self) -> int:
        """Number of classes."""
        return len(self.classes)

    def conformity_score(self) -> Score:
        """The score that is calibrated."""
        return score_from_dict(self.score)

    def _check_terms(self) -> None:
        """Refuse terms that make no sense for any method."""
        if len(set(self.classes)) != len(self.classes):
            raise ValueError("the names of the classes must differ")
        level(self.alpha, "α")
        if self.epsilon != self.channel.epsilon:
            raise ValueError("ε must be that of the realized channel")
        if self.epsilon < LEAST_EPSILON:
            raise ValueError("ε must be at least 2^-30")
        if self.opens >= self.closes:
            raise ValueError("a campaign must open before it closes")


def fresh_nonce() -> str:
    """What makes two campaigns of the same terms different."""
    return secrets.token_hex(16)
