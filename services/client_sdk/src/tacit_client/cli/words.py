"""Campaigns and thresholds in words and tables."""

from typing import Any

from rich.console import RenderableType

from tacit.conformal import Calibration, Guarantee, NotCertifiable
from tacit.protocol import (
    Campaign,
    CampaignStatus,
    Features,
    LabelCampaign,
    ScoreCampaign,
    ScoreThreshold,
    Threshold,
)
from tacit.protocol.statements import deciding_answers
from tacit_client.cli.mixture_words import search_facts
from tacit_client.cli.output import facts, many, short, table
from tacit_client.cli.round_words import duration, round_plan

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


def campaign_facts(campaign: Campaign, digest: str) -> RenderableType:
    """The terms of a campaign."""
    classes = ", ".join(campaign.classes[:12]) + (", …" if campaign.k > 12 else "")
    terms: list[tuple[str, object]] = [
        ("campaign", digest),
        ("title", campaign.title),
        ("owner", campaign.owner),
        ("classes", f"{campaign.k}: {classes}"),
        *_protection(campaign),
        ("score", _score(campaign.score)),
        ("α", f"{campaign.alpha:g}"),
        ("δ", "none" if campaign.delta is None else f"{campaign.delta:g}"),
        ("records planned", f"{campaign.planned_n:,}"),
        *(round_plan(campaign) if isinstance(campaign, ScoreCampaign) else ()),
        ("opens", f"{campaign.opens:%Y-%m-%d %H:%M} UTC"),
        ("closes", f"{campaign.closes:%Y-%m-%d %H:%M} UTC"),
    ]
    return facts(terms)


def _score(score: dict[str, Any]) -> str:
    parameters = ", ".join(f"{name} = {value}" for name, value in score.items() if name != "name")
    return f"{score['name']}{' with ' if parameters else ''}{parameters}"


def _protection(campaign: Campaign) -> list[tuple[str, object]]:
    """What ε is of, and what leaves beside it."""
    protected = "each label, given what leaves with it"
    if isinstance(campaign, ScoreCampaign):
        protected = "each whole record"
    return [
        ("ε", f"{campaign.epsilon:g} for {protected}"),
        ("leaves as it is", evidence_words(campaign)),
    ]


def leaves(campaign: Campaign) -> str:
    """The name of what leaves a site: the evidence as it is, or bits."""
    return campaign.evidence.kind if isinstance(campaign, LabelCampaign) else "bits"


def evidence_words(campaign: Campaign) -> str:
    """What leaves a site beside what is randomized."""
    if not isinstance(campaign, LabelCampaign):
        return "nothing: one randomized bit of each record leaves, and no more"
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
    late = status.method == "scores"
    columns = ("enrolled", "received", "counted", "dropped", *(("late",) if late else ()))
    rows = [
        (
            site.site,
            f"{site.enrolled:,}",
            f"{site.records.received:,}",
            f"{site.records.counted:,}",
            f"{site.records.dropped:,}",
            *((f"{site.records.late:,}",) if late else ()),
            "yes" if site.left else "no",
        )
        for site in status.sites
    ]
    return table(("site", *columns, "left"), rows, numbers=",".join(columns))


def status_line(status: CampaignStatus) -> str:
    """Where a campaign is, in one line."""
    waits = " ".join(status.waiting_for) or "Nothing is missing."
    closing = f", closes in {duration(status.closes_in)}" if status.state == "open" else ""
    return (
        f"{short(status.campaign)} {status.state}{closing}: {status.records.counted:,} of"
        f" {status.planned_n:,} records counted, {status.records.received:,} received, from"
        f" {many(status.site_count, 'site')}. {waits}"
    )


def threshold_facts(document: Threshold, campaign: Campaign) -> RenderableType:
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
    pairs.append(("certified", _certified(document)))
    liable = outcome.n
    if isinstance(document, ScoreThreshold) and isinstance(campaign, ScoreCampaign):
        pairs += search_facts(document, campaign)
        liable = deciding_answers(campaign, document.rounds)
    pairs.append(("ε", f"{document.privacy.epsilon:g}. {document.privacy.unit}"))
    pairs += [("", condition) for condition in document.privacy.conditions]
    pairs.append(("hostile sites", _hostile(document, liable)))
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


def _certified(document: Threshold) -> str:
    return "nothing" if document.certificate is None else document.certificate.statement


def _hostile(document: Threshold, n: int) -> str:
    shift = document.hostile.shift_per_record
    return (
        f"Each record that lies moves the estimated coverage by at most {shift:.2g}; one in a"
        f" hundred by at most {min(1.0, shift * max(1, n // 100)):.2g}."
    )
