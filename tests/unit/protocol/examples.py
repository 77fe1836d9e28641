"""Documents that the tests of the protocol share."""

from datetime import UTC, datetime
from typing import Any

import numpy as np
import rfc8785

from tacit.protocol import (
    Campaign,
    Column,
    Features,
    HostileContributors,
    Privacy,
    Probabilities,
    Threshold,
    ThresholdKind,
    Upload,
    label_dtype,
)
from tacit.scores import HPS, Score

DIGEST = "ab" * 32
OPENS = datetime(2026, 1, 1, tzinfo=UTC)
CLOSES = datetime(2026, 7, 1, tzinfo=UTC)
PIXELS = Features(model=DIGEST, dtype="float32", shape=(2, 3))


def campaign(
    k: int = 3,
    evidence: Probabilities | Features | None = None,
    score: Score | None = None,
    **terms: Any,
) -> Campaign:
    asked: dict[str, Any] = {
        "title": "A title",
        "owner": "An owner",
        "classes": [f"class {number}" for number in range(k)],
        "epsilon": 2.0,
        "alpha": 0.1,
        "planned_n": 1000,
        "opens": OPENS,
        "closes": CLOSES,
    }
    return Campaign.of(
        evidence=evidence or Probabilities(), score=score or HPS(), **(asked | terms)
    )


def respelled(document: Campaign | Threshold, **fields: Any) -> bytes:
    """The canonical bytes of a document with some fields replaced, unchecked."""
    return rfc8785.dumps(document.model_dump(mode="json") | fields)


def upload(terms: Campaign, n: int = 4, **columns: Column | None) -> Upload:
    given: dict[str, Any] = {"labels": Column.of(np.arange(n) % terms.k, label_dtype(terms.k))}
    if isinstance(terms.evidence, Features):
        given["features"] = Column.of(np.zeros((n, *terms.evidence.shape)), terms.evidence.dtype)
    else:
        given["probabilities"] = Column.of(np.full((n, terms.k), 1 / terms.k))
    if terms.conformity_score().randomized:
        given["uniforms"] = Column.of(np.linspace(0, 1, n))
    return Upload(campaign=terms.digest, upload="cd" * 16, **(given | columns))


def threshold(terms: Campaign, *, starred: bool = False, n: int = 50, **fields: Any) -> Threshold:
    sketch = terms.empty_sketch().add(np.full((n, terms.k), 1 / terms.k), np.arange(n) % terms.k)
    outcome = sketch.calibrate(terms.channel, terms.alpha, 0.05 if starred else None)
    asked: dict[str, Any] = {
        "campaign": terms.digest,
        "which": ThresholdKind.STARRED if starred else ThresholdKind.NOMINAL,
        "final": starred,
        "as_of": OPENS,
        "classes": terms.classes,
        "sites": 2,
        "result": Threshold.fields_of(outcome),
        "privacy": Privacy(epsilon=terms.epsilon, unit="one label", conditions=()),
        "hostile": HostileContributors(shift_per_record=0.1),
    }
    return Threshold(**(asked | fields))
