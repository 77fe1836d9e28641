"""Rounds in words and tables: how a search narrows, and what it waits for."""

from rich.console import RenderableType

from tacit.protocol import Campaign, CampaignStatus, RoundState, RoundStatus, ScoreCampaign
from tacit_client.cli.mixture_words import status_warnings
from tacit_client.cli.output import table

_MOST_SITES = 5


def duration(seconds: float) -> str:
    """A time ahead, roughly: 45 s, 12 min, 5 h, 3 days."""
    for size, unit in ((86_400, "days"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def round_plan(campaign: ScoreCampaign) -> list[tuple[str, object]]:
    """The terms of a campaign that only those with rounds have."""
    plan, shares = campaign.rounds, campaign.rounds.shares
    weights = "" if len(set(shares)) == 1 else f", with shares {', '.join(map(str, shares))}"
    stop = campaign.search.tolerance
    early = f"; stops within {stop / 2:g} of the coverage" if stop else ""
    model = campaign.model
    terms: list[tuple[str, object]] = [
        ("rounds", f"{len(shares)}{weights}{early}"),
        (
            "a round",
            f"lasts {duration(plan.seconds)} at most, and as long again while it has fewer than"
            f" {plan.least:,} answers",
        ),
        (
            "first question",
            f"when the planned records are enrolled, and by {plan.enrol_until:%Y-%m-%d %H:%M} UTC",
        ),
    ]
    if model is not None:
        features = f"{model.dtype} of shape {list(model.shape)}"
        terms.append(("model", f"{model.digest}, of features {features}, fetched and run here"))
    return terms


def round_table(status: CampaignStatus) -> RenderableType:
    """The rounds that were asked, one below the other, as they narrow the bracket."""
    headings = ("round", "asked: at most", "from", "to", "answers", "sites", "estimate", "state")
    rows = [
        (
            each.round + 1,
            f"{each.threshold:.6g}",
            f"{each.low:.6g}",
            f"{each.high:.6g}",
            f"{each.answers:,}",
            "-" if each.sites is None else each.sites,
            "-" if each.coverage is None else f"{each.coverage:.4f}",
            _state(each),
        )
        for each in status.rounds
    ]
    return table(headings, rows, numbers=",".join(headings[:-1]))


def rounds_of(
    status: CampaignStatus | None, campaign: Campaign | None = None
) -> list[RenderableType]:
    """The table, if there is anything to be seen in it; with the campaign, also warnings."""
    if status is None or not status.rounds:
        return []
    shown: list[RenderableType] = ["", round_table(status)]
    if isinstance(campaign, ScoreCampaign):
        shown += [f"Warning: {warning}" for warning in status_warnings(status, campaign)]
    return shown


def _state(each: RoundStatus) -> str:
    if each.state is RoundState.CLOSED:
        return "closed"
    sites = f"{each.waiting_sites} site{'' if each.waiting_sites == 1 else 's'}"
    named = ", ".join(each.waiting_for[:_MOST_SITES])
    more = ", …" if len(each.waiting_for) > _MOST_SITES else ""
    who = f" ({named}{more})" if named else ""
    times = "once" if each.extensions == 1 else f"{each.extensions} times"
    extended = f", extended {times}" if each.extensions else ""
    return f"open: waits for {sites}{who}, may close in {duration(each.ends_in)}{extended}"
