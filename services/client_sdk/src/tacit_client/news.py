"""Whether a status says anything new, and whether it is the last that does."""

from tacit.protocol import CampaignState, CampaignStatus

OVER = frozenset({CampaignState.CLOSED, CampaignState.ABANDONED})
"""The states that a campaign never leaves again."""


def news(status: CampaignStatus) -> CampaignStatus:
    """A status without its clocks."""
    rounds = tuple(each.model_copy(update={"ends_in": 0.0}) for each in status.rounds)
    changes: dict[str, object] = {"opens_in": 0.0, "closes_in": 0.0, "rounds": rounds}
    if status.method == "scores":  # what it waits for says for how long
        changes["waiting_for"] = ()
    return status.model_copy(update=changes)
