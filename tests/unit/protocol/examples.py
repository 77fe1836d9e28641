"""Documents that the tests of the protocol share."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import numpy as np
import rfc8785

from tacit.conformal import Answers, Question, run
from tacit.errors import TacitError
from tacit.protocol import (
    AnswerUpload,
    Certificate,
    Column,
    Features,
    HostileContributors,
    LabelCampaign,
    LabelThreshold,
    Privacy,
    Probabilities,
    RoundResult,
    ScoreCampaign,
    ScoreThreshold,
    Threshold,
    ThresholdKind,
    Upload,
    label_dtype,
)
from tacit.protocol.wire import SignedDocument
from tacit.scores import HPS, Score

DIGEST = "ab" * 32
OPENS = datetime(2026, 1, 1, tzinfo=UTC)
ENROL_UNTIL = datetime(2026, 1, 8, tzinfo=UTC)
CLOSES = datetime(2026, 7, 1, tzinfo=UTC)
PIXELS = Features(model=DIGEST, dtype="float32", shape=(2, 3))
CERTIFICATE = Certificate(name="hoeffding-union", valid="at-close", statement="It covers.")


def campaign(
    k: int = 3,
    evidence: Probabilities | Features | None = None,
    score: Score | None = None,
    **terms: Any,
) -> LabelCampaign:
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
    return LabelCampaign.of(
        evidence=evidence or Probabilities(), score=score or HPS(), **(asked | terms)
    )


def score_campaign(k: int = 3, score: Score | None = None, **terms: Any) -> ScoreCampaign:
    asked: dict[str, Any] = {
        "title": "A title",
        "owner": "An owner",
        "classes": [f"class {number}" for number in range(k)],
        "epsilon": 2.0,
        "alpha": 0.1,
        "planned_n": 20_000,
        "opens": OPENS,
        "enrol_until": ENROL_UNTIL,
        "closes": CLOSES,
        "round_seconds": 3600,
        "shares": (1, 2, 2, 3),
    }
    return ScoreCampaign.of(score=score or HPS(), **(asked | terms))


def respelled(document: SignedDocument, **fields: Any) -> bytes:
    """The canonical bytes of a document with some fields replaced, unchecked."""
    return rfc8785.dumps(document.model_dump(mode="json") | fields)


def check_refused_or_the_same(document: SignedDocument, field: str, value: Any) -> None:
    """With another value of a field a document is refused by Tacit, or read as it is written."""
    fields = document.model_dump(mode="json") | {field: value}
    text = json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()
    try:
        read = type(document).from_bytes(text)
    except TacitError:
        return
    assert read.to_bytes() == text


def upload(terms: LabelCampaign, n: int = 4, **columns: Column | None) -> Upload:
    given: dict[str, Any] = {"labels": Column.of(np.arange(n) % terms.k, label_dtype(terms.k))}
    if isinstance(terms.evidence, Features):
        given["features"] = Column.of(np.zeros((n, *terms.evidence.shape)), terms.evidence.dtype)
    else:
        given["probabilities"] = Column.of(np.full((n, terms.k), 1 / terms.k))
    if terms.conformity_score().randomized:
        given["uniforms"] = Column.of(np.linspace(0, 1, n))
    return Upload(campaign=terms.digest, upload="cd" * 16, **(given | columns))


def threshold(
    terms: LabelCampaign, *, starred: bool = False, n: int = 50, **fields: Any
) -> Threshold:
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
    return LabelThreshold(**(asked | fields))


def answer_upload(bits: Any = (0, 1, 1), **fields: Any) -> AnswerUpload:
    asked: dict[str, Any] = {
        "campaign": DIGEST,
        "upload": "cd" * 16,
        "round": 2,
        "question": "ef" * 32,
        "bits": bits if isinstance(bits, Column) else Column.of(np.asarray(bits, dtype=np.uint8)),
    }
    return AnswerUpload(**(asked | fields))


def score_threshold(
    terms: ScoreCampaign,
    answer: Callable[[Question], Answers],
    *,
    asked_n: int | None = None,
) -> ScoreThreshold:
    """The threshold of a search that is answered like this in every round."""
    n = terms.planned_n if asked_n is None else asked_n
    rounds: list[RoundResult] = []

    def ask(question: Question) -> Answers:
        given, asked = answer(question), question.threshold
        sites = min(2, given.count)
        rounds.append(
            RoundResult(threshold=asked, ones=given.ones, answers=given.count, sites=sites)
        )
        return given

    run(terms.state_machine(n), ask)
    sites = max((one.sites for one in rounds), default=0)
    return ScoreThreshold.of(terms, n, tuple(rounds), sites=sites, as_of=OPENS)
