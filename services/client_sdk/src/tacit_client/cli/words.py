"""Campaigns and thresholds in words and tables."""

from typing import Any

from rich.console import RenderableType

from tacit.conformal import Calibration, Guarantee, NotCertifiable
from tacit.protocol import Campaign, CampaignStatus, Features, Threshold
from tacit_client.cli.output import facts, many, short, table

GUARANTEES: dict[Guarantee, str] = {
    Guarantee.MARGINAL: "Coverage of at least {goal} on average over calibration sets.",
    Guarantee.NOMINAL: "Aimed at a coverage of {goal}; no statement for finitely many records.",
    Guarantee.COMPARISON: (
        "Aimed above a coverage of {goal} by Δ = {correction}, whose constant is not proved: a"
        " comparison, no certificate."
    ),
    Guarantee.CERTIFIED: "Coverage of at least {goal} with probability at least {confidence}.",
}


def as_fields(model: Any) -> dict[str, Any]:
    """A message of the protocol as JSON values."""
    fields: dict[str, Any] = model.model_dump(mode="json")
    return fields


def duration(seconds: float) -> str:
    """A time ahead, roughly: 45 s, 12 min, 5 h, 3 days."""
    for size, unit in ((86_400, "days"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def campaign_facts(campaign: Campaign, digest: str) -> RenderableType:
    """The terms of a campaign."""
    classes = ", ".join(campaign.classes[:12]) + (", …" if campaign.k > 12 else "")
    terms: list[tuple[str, object]] = [
        ("campaign", digest),
        ("title", campaign.title),
        ("owner", campaign.owner),
        ("classes", f"{campaign.k}: {classes}"),
        ("ε", f"{campaign.epsilon:g} for each label, given what leaves with it"),
        ("leaves as it is", evidence_words(campaign)),
        ("score", _score(campaign.score)),
        ("α", f"{campaign.alpha:g}"),
        ("δ", "none" if campaign.delta is None else f"{campaign.delta:g}"),
        ("records planned", f"{campaign.planned_n:,}"),
        ("opens", f"{campaign.opens:%Y-%m-%d %H:%M} UTC"),
        ("closes", f"{campaign.closes:%Y-%m-%d %H:%M} UTC"),
    ]
    return facts(terms)


def _score(score: dict[str, Any]) -> str:
    parameters = ", ".join(f"{name} = {value}" for name, value in score.items() if name != "name")
    return f"{score['name']}{' with ' if parameters else ''}{parameters}"


def evidence_words(campaign: Campaign) -> str:
    """What leaves a site beside the randomized labels."""
    asked = campaign.evidence
    if isinstance(asked, Features):
        return f"features, {asked.dtype} of shape {list(asked.shape)}"
    return f"probabilities of the {campaign.k} classes"


def status_table(statuses: tuple[CampaignStatus, ...]) -> RenderableType:
    """Campaigns below one another, with what each waits for."""
    headings = (
        "campaign",
        "title",
        "state",
        "counted",
        "received",
        "planned",
        "sites",
        "waits for",
    )
    rows = [
        (
            short(status.campaign),
            status.title,
            status.state,
            f"{status.records.counted:,}",
            f"{status.records.received:,}",
            f"{status.planned_n:,}",
            status.site_count,
            " ".join(status.waiting_for) or "nothing",
        )
        for status in statuses
    ]
    return table(headings, rows, numbers="counted,received,planned,sites")


def site_table(status: CampaignStatus) -> RenderableType:
    """The sites of a campaign that the asker may see."""
    headings = ("site", "enrolled", "received", "counted", "dropped", "left")
    rows = [
        (
            site.site,
            f"{site.enrolled:,}",
            f"{site.records.received:,}",
            f"{site.records.counted:,}",
            f"{site.records.dropped:,}",
            "yes" if site.left else "no",
        )
        for site in status.sites
    ]
    return table(headings, rows, numbers="enrolled,received,counted,dropped")


def status_line(status: CampaignStatus) -> str:
    """Where a campaign is, in one line."""
    waits = " ".join(status.waiting_for) or "Nothing is missing."
    closing = f", closes in {duration(status.closes_in)}" if status.state == "open" else ""
    return (
        f"{short(status.campaign)} {status.state}{closing}: {status.records.counted:,} of"
        f" {status.planned_n:,} records counted, {status.records.received:,} received, from"
        f" {many(status.site_count, 'site')}. {waits}"
    )


def threshold_facts(document: Threshold) -> RenderableType:
    """A threshold with what is guaranteed, what is not, and what it rests on."""
    outcome = document.outcome()
    pairs: list[tuple[str, object]] = [
        ("campaign", document.campaign),
        ("threshold", _value(outcome)),
        ("records counted", f"{outcome.n:,} from {many(document.sites, 'site')}"),
        ("final", "yes" if document.final else "no, the campaign goes on"),
    ]
    if isinstance(outcome, Calibration):
        pairs.append(
            ("estimated coverage", f"{outcome.coverage:.4f}, wanted {1 - outcome.alpha:g}")
        )
        pairs.append(("guarantee", guarantee_words(outcome)))
    pairs.append(("certified", "nothing" if document.certificate is None else "yes"))
    pairs.append(("ε", f"{document.privacy.epsilon:g}. {document.privacy.unit}"))
    pairs += [("", condition) for condition in document.privacy.conditions]
    pairs.append(("hostile sites", _hostile(document, outcome.n)))
    if isinstance(outcome, Calibration):
        pairs += [("assumed", assumption) for assumption in outcome.assumptions]
        pairs += [("note", note) for note in outcome.notes]
    return facts(pairs)


def guarantee_words(outcome: Calibration) -> str:
    """What the coverage is worth."""
    return GUARANTEES[outcome.guarantee].format(
        goal=f"{1 - outcome.alpha:g}",
        correction="0" if outcome.correction is None else f"{outcome.correction:.4f}",
        confidence="1" if outcome.delta is None else f"{1 - outcome.delta:g}",
    )


def _value(outcome: Calibration | NotCertifiable) -> str:
    if isinstance(outcome, NotCertifiable):
        return f"none. {outcome}"
    return f"{outcome.threshold:.6g} ({outcome.method}, score {outcome.score.name})"


def _hostile(document: Threshold, n: int) -> str:
    shift = document.hostile.shift_per_record
    return (
        f"Each record that lies moves the estimated coverage by at most {shift:.2g}; one in a"
        f" hundred by at most {min(1.0, shift * max(1, n // 100)):.2g}."
    )
