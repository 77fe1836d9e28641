"""The outcome for programs."""

from dataclasses import asdict
from typing import Any

from tacit.conformal import Calibration
from tacit_client.demo.figures import Result, promise
from tacit_client.demo.screen import counted_at_site
from tacit_client.demo.story import Outcome


def document(outcome: Outcome) -> dict[str, Any]:
    """The same as the terminal shows, as one JSON object."""
    return {
        "campaign": outcome.campaign.digest,
        "records": outcome.status.records.model_dump(mode="json"),
        "sites": {site.site: site.records.counted for site in outcome.status.sites},
        "results": {name: _result(found, outcome) for name, found in outcome.results().items()},
        "held_out": len(outcome.setting.digits.held_out),
        "crash": {
            **asdict(outcome.crash),
            "unsent": outcome.crash.unsent,
            "counted": counted_at_site(outcome),
        },
        "keys_erased": outcome.keys_erased,
        "images_left": outcome.images_left,
        "messages": [message.to_json() for message in outcome.messages],
    }


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
