"""The document of a label campaign (LDP-CP-L): features or probabilities with randomized labels."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from tacit.conformal import CoverageSketch, ScoreGrid
from tacit.conformal.corrections import n_for_labels
from tacit.exact import level
from tacit.mechanisms import UniformChannel
from tacit.protocol.campaign import MOST_PLANNED, Campaign, Extents, fresh_nonce
from tacit.protocol.columns import Dtype, Shape
from tacit.protocol.randomizers import RandomizedLabels
from tacit.protocol.versions import FIRST
from tacit.protocol.wire import Digest, Wire
from tacit.scores import Score


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
    shape: Extents

    def column_shape(self, rows: int) -> Shape:
        """The shape of a column of this many records."""
        return (rows, *self.shape)


Evidence = Annotated[Probabilities | Features, Field(discriminator="kind")]
"""What leaves a site beside the randomized label, as it is."""


class LabelCampaign(Campaign):
    """A campaign of randomized labels, given evidence that leaves the sites as it is."""

    version: Literal["1.0"] = FIRST
    method: Literal["labels"] = "labels"
    mechanism: RandomizedLabels
    evidence: Evidence
    grid: Grid
    guarantee: Literal["nominal", "comparison"]
    retention: Literal["features-until-folded"] = "features-until-folded"
    """The aggregator erases features and probabilities in the transaction that counts them."""

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        if (self.delta is None) != (self.guarantee == "nominal"):
            raise ValueError("the guarantee is nominal without δ and comparison with δ")
        self._check_terms()
        self._can_be_starred()
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
            nonce=fresh_nonce(),
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
    def channel(self) -> UniformChannel:
        """What a label goes through; every ε that is shown or spent comes from here."""
        return self.mechanism.channel(self.k)

    def empty_sketch(self) -> CoverageSketch:
        """The coverage sketch of no records."""
        grid = ScoreGrid(self.grid.steps_per_octave, self.grid.even_steps)
        return CoverageSketch.empty(self.conformity_score(), self.k, grid)
