"""The outcome for programs."""

from dataclasses import asdict
from typing import Any

from tacit.conformal import Calibration
from tacit_client.demo.figures import Result, promise
from tacit_client.demo.labels import LabelPart
from tacit_client.demo.passages import counted_at_site
from tacit_client.demo.scores import ScorePart
from tacit_client.demo.story import Outcome


def document(outcome: Outcome) -> dict[str, Any]:
    """The same as the terminal shows, as one JSON object."""
    return {
        "results": {name: _result(found, outcome) for name, found in outcome.results().items()},
        "held_out": len(outcome.setting.digits.held_out),
        "labels": _campaign(outcome.labels),
        "scores": {
            **_campaign(outcome.scores),
            "asked_n": outcome.scores.document.asked_n,
            "bits": outcome.scores.bits,
            "rounds": _rounds(outcome.scores),
            "waited": outcome.scores.waited,
        },
        "spent": outcome.spent,
        "keys_erased": outcome.keys_erased,
        "images_left": outcome.images_left,
        "messages": [message.to_json() for message in outcome.messages],
    }


def _campaign(part: LabelPart | ScorePart) -> dict[str, Any]:
    crash = {**asdict(part.crash), "unsent": part.crash.unsent, "counted": counted_at_site(part)}
    return {
        "campaign": part.campaign.digest,
        "records": part.status.records.model_dump(mode="json"),
        "sites": {site.site: site.records.counted for site in part.status.sites},
        "crash": crash,
    }


def _rounds(part: ScorePart) -> list[dict[str, Any]]:
    """What was asked and answered, by the status, with the ones of the signed threshold."""
    counts = part.document.rounds
    return [
        {
            "round": asked.round,
            "threshold": asked.threshold,
            "low": asked.low,
            "high": asked.high,
            "answers": asked.answers,
            "coverage": asked.coverage,
            "ones": counted.ones,
            "sites": counted.sites,
        }
        for asked, counted in zip(part.status.rounds, counts, strict=True)
    ]


def _result(result: Result, outcome: Outcome) -> dict[str, Any]:
    told: dict[str, Any] = {
        "epsilon": result.epsilon,
        "alpha": result.alpha,
        "delta": result.delta,
        "n": result.n,
        "promise": promise(result),
    }
    if not isinstance(result, Calibration):
        return told | {"threshold": None, "needed": result.needed}
    worth = outcome.setting.figures(result)
    return told | {
        "threshold": result.threshold,
        "guarantee": result.guarantee.value,
        "coverage": worth.coverage,
        "coverage_sampling_error": worth.margin,
        "set_size": worth.set_size,
    }
