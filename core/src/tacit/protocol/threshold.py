"""The threshold document: what a campaign found, with everything it rests on."""

import json
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from tacit.conformal import Calibration, NotCertifiable
from tacit.errors import InvalidDocument
from tacit.protocol.uploads import Count
from tacit.protocol.versions import PROTOCOL
from tacit.protocol.wire import Digest, JsonObject, Moment, Name, SignedDocument, Wire

_RESULTS: tuple[type[Calibration] | type[NotCertifiable], ...] = (Calibration, NotCertifiable)


class ThresholdKind(StrEnum):
    """nominal: LDP-CP-L of what is counted so far. starred: LDP-CP-L*, once, at the planned end."""

    NOMINAL = "nominal"
    STARRED = "starred"


class Privacy(Wire):
    """What ε is, of what, and under which conditions."""

    epsilon: float
    unit: str
    conditions: tuple[str, ...]


class HostileContributors(Wire):
    """How far liars can move the estimated coverage, in the worst case."""

    shift_per_record: Annotated[float, Field(ge=0)]
    """One lying record moves F̂^c by at most this: (1+β-2β/k) / ((1-β)·n)."""


class Threshold(SignedDocument):
    """A result of the core's, for one campaign, as it stood when the counted records were n."""

    kind: ClassVar[str] = "threshold"

    tacit: Literal["threshold"] = "threshold"
    version: Literal["1.0"] = PROTOCOL
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
    certificate: None = None
    """Nothing is certified in label campaigns of this version."""
    privacy: Privacy
    hostile: HostileContributors

    @model_validator(mode="after")
    def _holds_a_result(self) -> Self:
        outcome = self.outcome()
        if isinstance(outcome, Calibration) and outcome.k != len(self.classes):
            raise ValueError("the result is for another number of classes")
        if (outcome.delta is None) != (self.which is ThresholdKind.NOMINAL):
            raise ValueError("a nominal result has no δ, a starred one has")
        if outcome.epsilon != self.privacy.epsilon:
            raise ValueError("the result and the privacy statement must have the same ε")
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
