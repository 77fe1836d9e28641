"""The campaign document: all terms of a campaign, fixed before anyone contributes."""

import secrets
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from tacit.conformal import CoverageSketch, ScoreGrid
from tacit.conformal.corrections import n_for_labels
from tacit.exact import level
from tacit.mechanisms import UniformChannel
from tacit.protocol.columns import Dtype, Shape
from tacit.protocol.versions import PROTOCOL
from tacit.protocol.wire import Digest, Identifier, JsonObject, Moment, Name, SignedDocument, Wire
from tacit.scores import Score, score_from_dict

MOST_CLASSES = 2**16
MOST_PLANNED = 2**40
LEAST_EPSILON = 2.0**-30
"""Below it, the most records that can be planned say nothing."""


class RandomizedLabels(Wire):
    """k-ary randomized response, by its realized channel: β = threshold / 2^64."""

    name: Literal["k-rr"] = "k-rr"
    threshold: Annotated[str, Field(pattern=r"^[1-9][0-9]{0,19}$")]
    """A decimal string, because JSON's numbers are exact only up to 2^53."""


class Grid(Wire):
    """The grid of the coverage sketch."""

    steps_per_octave: int
    even_steps: int


class Probabilities(Wire):
    """Sites send the probabilities that the model gives each class, and so run it themselves."""

    kind: Literal["probabilities"] = "probabilities"
    model: Digest | None = None
    """SHA-256 of the model's file, if the owner names one."""


class Features(Wire):
    """Sites send features, which the aggregator's copy of the model scores."""

    kind: Literal["features"] = "features"
    model: Digest
    dtype: Dtype
    shape: Annotated[tuple[int, ...], Field(max_length=7)]
    """The shape of one record's features; () is one number."""

    @model_validator(mode="after")
    def _has_a_size(self) -> Self:
        if any(not 0 < extent < 2**31 for extent in self.shape):
            raise ValueError("every extent of the features must be at least 1")
        return self

    def column_shape(self, rows: int) -> Shape:
        """The shape of a column of this many records."""
        return (rows, *self.shape)


Evidence = Annotated[Probabilities | Features, Field(discriminator="kind")]
"""What leaves a site beside the randomized label, as it is."""


class Campaign(SignedDocument):
    """Immutable: a change is a new campaign. Its digest is in every upload and every threshold."""

    kind: ClassVar[str] = "campaign"

    tacit: Literal["campaign"] = "campaign"
    version: Literal["1.0"] = PROTOCOL
    nonce: Identifier
    title: Name
    owner: Name
    method: Literal["labels"] = "labels"
    classes: Annotated[tuple[Name, ...], Field(min_length=2, max_length=MOST_CLASSES)]
    mechanism: RandomizedLabels
    epsilon: float
    """The exact ε of the realized channel, rounded up: what a record's label spends."""
    evidence: Evidence
    score: JsonObject
    grid: Grid
    alpha: float
    delta: float | None
    guarantee: Literal["nominal", "comparison"]
    planned_n: Annotated[int, Field(ge=1, le=MOST_PLANNED)]
    """The campaign closes when it has accepted this many records, or at `closes`."""
    opens: Moment
    closes: Moment
    retention: Literal["features-until-folded"] = "features-until-folded"
    """The aggregator erases features and probabilities in the transaction that counts them."""

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        if len(set(self.classes)) != len(self.classes):
            raise ValueError("the names of the classes must differ")
        level(self.alpha, "α")
        if (self.delta is None) != (self.guarantee == "nominal"):
            raise ValueError("the guarantee is nominal without δ and comparison with δ")
        if self.epsilon != self.channel.epsilon:
            raise ValueError("ε must be that of the realized channel")
        if self.epsilon < LEAST_EPSILON:
            raise ValueError("ε must be at least 2^-30")
        self._can_be_starred()
        if self.opens >= self.closes:
            raise ValueError("a campaign must open before it closes")
        self.empty_sketch()
        return self

    def _can_be_starred(self) -> None:
        """Refuse a δ that would need more records than any campaign can plan."""
        if self.delta is None:
            return
        level(self.delta, "δ")
        if n_for_labels(self.alpha, self.channel.beta, self.delta) > MOST_PLANNED:
            raise ValueError("with this α, δ and ε, L* would need more than 2^40 records")

    @classmethod
    def of(  # noqa: PLR0913 -- the terms of a campaign are that many
        cls,
        *,
        title: str,
        owner: str,
        classes: Sequence[str],
        epsilon: float,
        evidence: Probabilities | Features,
        score: Score,
        alpha: float,
        planned_n: int,
        opens: datetime,
        closes: datetime,
        delta: float | None = None,
        grid: ScoreGrid | None = None,
    ) -> Self:
        """A new campaign with a fresh nonce and the channel that this ε is realized by."""
        channel = UniformChannel.for_epsilon(len(classes), epsilon)
        chosen = grid or ScoreGrid()
        return cls(
            nonce=secrets.token_hex(16),
            title=title,
            owner=owner,
            classes=tuple(classes),
            mechanism=RandomizedLabels(threshold=str(channel.threshold)),
            epsilon=channel.epsilon,
            evidence=evidence,
            score=score.to_dict(),
            grid=Grid(steps_per_octave=chosen.steps_per_octave, even_steps=chosen.even_steps),
            alpha=float(alpha),
            delta=None if delta is None else float(delta),
            guarantee="nominal" if delta is None else "comparison",
            planned_n=planned_n,
            opens=opens,
            closes=closes,
        )

    @property
    def k(self) -> int:
        """Number of classes."""
        return len(self.classes)

    @property
    def channel(self) -> UniformChannel:
        """What a label goes through; every ε that is shown or spent comes from here."""
        return UniformChannel(self.k, int(self.mechanism.threshold))

    def conformity_score(self) -> Score:
        """The score that is calibrated."""
        return score_from_dict(self.score)

    def empty_sketch(self) -> CoverageSketch:
        """The coverage sketch of no records."""
        grid = ScoreGrid(self.grid.steps_per_octave, self.grid.even_steps)
        return CoverageSketch.empty(self.conformity_score(), self.k, grid)
