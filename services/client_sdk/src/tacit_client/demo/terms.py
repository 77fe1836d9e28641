"""What the demo's campaigns ask for."""

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, TypedDict

from pydantic import ValidationError

from tacit.errors import InvalidDocument
from tacit.protocol import Features, LabelCampaign, Model, ScoreCampaign
from tacit.protocol.wire import described
from tacit.scores import APS, Score

OWNER = "Demo"
CLASS_NAMES = tuple("0123456789")
DTYPE: Final = "uint8"
SHAPE = (8, 8)
CAMPAIGNS = 2
"""In which every record takes part."""

_NO_MODEL = "0" * 64
_OPEN_FOR = timedelta(hours=1)
_ROUND_SECONDS = 600
"""Longer than any site takes to come back: rounds end because all are done."""


class _Shared(TypedDict):
    """What both campaigns have in common."""

    owner: str
    classes: tuple[str, ...]
    epsilon: float
    score: Score
    alpha: float
    planned_n: int
    opens: datetime
    closes: datetime


@dataclass(frozen=True)
class Terms:
    """The terms that are fixed before anyone contributes; refused if they make no sense."""

    planned_n: int
    epsilon: float = 3.0
    alpha: float = 0.1
    delta: float = 0.05
    rounds: int = 10

    def __post_init__(self) -> None:
        """Refuse before anything is started what a campaign would be refused for."""
        opens = datetime.now(UTC).replace(microsecond=0)
        try:
            self.labels(_NO_MODEL, opens)
            self.scores(_NO_MODEL, opens)
        except ValidationError as error:
            raise InvalidDocument(f"These terms do not work: {described(error)}") from None

    @property
    def score(self) -> Score:
        """The score that is calibrated."""
        return APS()

    @property
    def most_epsilon(self) -> float:
        """What the sites' policies let one person spend: enough for both campaigns."""
        return float(math.ceil(CAMPAIGNS * self.epsilon))

    def labels(self, model: str, opens: datetime) -> LabelCampaign:
        """The campaign to which images go as they are, for the model with this digest."""
        evidence = Features(model=model, dtype=DTYPE, shape=SHAPE)
        shared = self._shared(opens)
        title = "Digits at five sites"
        return LabelCampaign.of(title=title, evidence=evidence, delta=self.delta, **shared)

    def scores(self, model: str, opens: datetime) -> ScoreCampaign:
        """The campaign to which the model with this digest goes, and answers come back."""
        return ScoreCampaign.of(
            title="Digits at five sites, in rounds",
            model=Model(digest=model, dtype=DTYPE, shape=SHAPE, outputs="logits"),
            enrol_until=opens + _OPEN_FOR / 2,
            round_seconds=_ROUND_SECONDS,
            shares=(1,) * self.rounds,
            **self._shared(opens),
        )

    def _shared(self, opens: datetime) -> _Shared:
        return {
            "owner": OWNER,
            "classes": CLASS_NAMES,
            "epsilon": self.epsilon,
            "score": self.score,
            "alpha": self.alpha,
            "planned_n": self.planned_n,
            "opens": opens,
            "closes": opens + _OPEN_FOR,
        }
