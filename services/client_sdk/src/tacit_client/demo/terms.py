"""What the demo's campaign asks for."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from pydantic import ValidationError

from tacit.errors import InvalidDocument
from tacit.protocol import Campaign, Features
from tacit.protocol.wire import described
from tacit.scores import APS, Score

CLASS_NAMES = tuple("0123456789")
DTYPE: Final = "uint8"
SHAPE = (8, 8)


@dataclass(frozen=True)
class Terms:
    """The terms that a campaign fixes before anyone contributes; refused if they make no sense."""

    planned_n: int
    epsilon: float = 3.0
    alpha: float = 0.1
    delta: float = 0.05

    title = "Digits at five sites"
    open_for = timedelta(hours=1)

    def __post_init__(self) -> None:
        """Refuse before anything is started what the campaign would be refused for."""
        opens = datetime.now(UTC).replace(microsecond=0)
        try:
            Campaign.of(
                title=self.title,
                owner="Demo",
                classes=CLASS_NAMES,
                epsilon=self.epsilon,
                evidence=self.evidence("0" * 64),
                score=self.score,
                alpha=self.alpha,
                delta=self.delta,
                planned_n=self.planned_n,
                opens=opens,
                closes=opens + self.open_for,
            )
        except ValidationError as error:
            raise InvalidDocument(f"These terms do not work: {described(error)}") from None

    @property
    def score(self) -> Score:
        """The score that is calibrated."""
        return APS()

    def evidence(self, model: str) -> Features:
        """What leaves a site as it is: the images, for the model with this digest."""
        return Features(model=model, dtype=DTYPE, shape=SHAPE)
