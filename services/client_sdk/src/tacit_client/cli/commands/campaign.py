"""`tacit campaign …`: what an owner does with campaigns."""

from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypedDict

import typer

from tacit.planning import n_for_labels, n_for_scores
from tacit.protocol import (
    Campaign,
    CampaignStatus,
    Features,
    LabelCampaign,
    Probabilities,
    ScoreCampaign,
)
from tacit.scores import Score
from tacit_client.cli import terms
from tacit_client.cli.confirming import Yes, confirm
from tacit_client.cli.output import short
from tacit_client.cli.registering import Run, command
from tacit_client.cli.round_terms import ModelOutputs, RoundTerms, margin_words
from tacit_client.cli.round_words import rounds_of
from tacit_client.cli.server import Server
from tacit_client.cli.words import (
    as_fields,
    campaign_facts,
    site_table,
    status_line,
    status_table,
)
from tacit_client.terms import checked_terms


class MethodName(StrEnum):
    """What a campaign asks for."""

    LABELS = "labels"
    SCORES = "scores"


class _Shared(TypedDict):
    """The terms that every campaign has."""

    title: str
    owner: str
    classes: tuple[str, ...]
    epsilon: float
    score: Score
    alpha: float
    delta: float | None
    planned_n: int
    opens: datetime
    closes: datetime


Digest = Annotated[str, typer.Argument(help="The campaign's digest, or its beginning.")]


def create(  # noqa: PLR0913 -- the terms of a campaign are that many
    run: Run,
    server: Server,
    rounds: RoundTerms,
    *,
    title: Annotated[str, typer.Option(help="What sites will see it called.")],
    epsilon: Annotated[float, typer.Option(help="Privacy of each label, or of each bit.")],
    planned_n: Annotated[
        str,
        typer.Option(help="It closes with this many records; one of scores begins to ask."),
    ],
    closes: Annotated[str, typer.Option(help="Or then: 2026-03-01, or 12h or 7d after it opens.")],
    method: Annotated[
        MethodName,
        typer.Option(help="labels: with features or probabilities. scores: one bit, in rounds."),
    ] = MethodName.LABELS,
    classes: Annotated[str | None, typer.Option(help="Their names: cat,dog,owl.")] = None,
    k: Annotated[int | None, typer.Option(help="How many classes, if they have no names.")] = None,
    alpha: Annotated[float, typer.Option(help="1 - the wanted coverage.")] = 0.1,
    delta: Annotated[
        float | None, typer.Option(help="For a starred threshold: probability to miss it.")
    ] = None,
    score: Annotated[str, typer.Option(help="hps, aps, raps:0.1,2 and others.")] = "hps",
    features: Annotated[
        str | None,
        typer.Option(
            help="Sites send features, or run the model on them: uint8:28,28,3. Default:"
            " probabilities."
        ),
    ] = None,
    model: Annotated[str | None, typer.Option(help="SHA-256 of the model's file.")] = None,
    opens: Annotated[
        str | None, typer.Option(help="A date, or 12h from now. Default: now.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the document only.")] = False,
) -> None:
    """Create a campaign; its terms can never be changed."""
    with server.owner(run) as owner:
        now = owner.server().time
        begins = now if opens is None else terms.moment(opens, now)
        ends = terms.moment(closes, begins)
        shared: _Shared = {
            "title": title,
            "owner": owner.token().name,
            "classes": terms.classes(classes, k),
            "epsilon": epsilon,
            "score": terms.score(score),
            "alpha": alpha,
            "delta": delta,
            "planned_n": terms.whole_number(planned_n),
            "opens": begins,
            "closes": ends,
        }
        with checked_terms():
            document: Campaign
            if method is MethodName.SCORES:
                document = _score_campaign(rounds, shared, features, model)
            else:
                rounds.refuse_for_labels()
                document = LabelCampaign.of(**shared, evidence=_evidence(features, model))
        _warn_of_too_few(run, document)
        digest = document.digest if dry_run else owner.publish(document).digest
        _show_created(run, document, digest, published=not dry_run)


def list_campaigns(run: Run, server: Server) -> None:
    """List the owner's campaigns, newest first."""
    with server.owner(run) as owner:
        found = owner.campaigns()
        run.screen.show(
            {"campaigns": [as_fields(status) for status in found]},
            status_table(found)
            if found
            else f"There are no campaigns yet: {run.spelled('campaign create')}",
        )


def show(
    run: Run,
    server: Server,
    campaign: Digest,
    *,
    signed: Annotated[
        Path | None,
        typer.Option(help="Save the signed document, for sites without network: join --campaign."),
    ] = None,
) -> None:
    """Show a campaign's terms, verified, and where it stands."""
    with server.owner(run) as owner:
        digest = owner.find(campaign)
        envelope = owner.signed_campaign(digest)
        document = envelope.open(Campaign, key=owner.key, digest=digest).document
        status = owner.status(digest)
        if signed is not None:
            signed.write_text(envelope.model_dump_json() + "\n", encoding="utf-8")
            run.screen.say(f"The signed document is in {signed}.")
        run.screen.show(
            {"campaign": digest, "document": as_fields(document), "status": as_fields(status)},
            campaign_facts(document, digest),
            "",
            status_line(status),
            *rounds_of(status, document),
            *(("",) if status.rounds else ()),
            site_table(status),
        )


def close(run: Run, server: Server, campaign: Digest, *, yes: Yes = False) -> None:
    """Take no more uploads; closed by hand, there will be no starred threshold."""
    with server.owner(run) as owner:
        digest = owner.find(campaign)
        confirm(run, f"Close {short(digest)}? There will be no starred threshold.", yes)
        _show_status(run, owner.close(digest))


def abandon(run: Run, server: Server, campaign: Digest, *, yes: Yes = False) -> None:
    """Erase what is pending and end without results."""
    with server.owner(run) as owner:
        digest = owner.find(campaign)
        confirm(run, f"Abandon {short(digest)}? There will be no result at all.", yes)
        _show_status(run, owner.abandon(digest))


def register(app: typer.Typer) -> None:
    """Add the group of commands."""
    group = typer.Typer(help="Create and run campaigns, as their owner.", no_args_is_help=True)
    command(group, "create")(create)
    command(group, "list")(list_campaigns)
    command(group, "show")(show)
    command(group, "close")(close)
    command(group, "abandon")(abandon)
    app.add_typer(group, name="campaign")


def _evidence(features: str | None, model: str | None) -> Probabilities | Features:
    return Probabilities(model=model) if features is None else terms.features(features, model)


def _score_campaign(
    rounds: RoundTerms, shared: _Shared, features: str | None, model: str | None
) -> ScoreCampaign:
    asked = rounds.first_question(shared["opens"], shared["closes"])
    return ScoreCampaign.of(
        **shared,
        enrol_until=asked,
        round_seconds=rounds.seconds(asked, shared["closes"]),
        shares=rounds.shares(),
        least=rounds.least,
        tolerance=rounds.tolerance or 0.0,
        model=terms.fetched_model(features, model, rounds.outputs or ModelOutputs.LOGITS),
    )


def _show_created(run: Run, document: Campaign, digest: str, *, published: bool) -> None:
    fields = {
        "campaign": digest,
        "published": published,
        "starred_needs": _starred_needs(document),
        "document": as_fields(document),
    }
    if not published:
        text = document.to_bytes().decode()
        run.screen.show(fields, text, "Dry run: nothing was published.")
        return
    run.screen.show(fields, campaign_facts(document, digest))
    labels = isinstance(document, LabelCampaign)
    which = " --which starred" if labels and document.delta is not None else ""
    get = f"threshold get {short(digest)}{which} --wait 3600 -o threshold.json"
    run.screen.explain(
        "",
        "Invite each site; the operator makes its invitation on the server:",
        f"  tacit-aggregator invite --campaign {digest} --site NAME",
        f"Then: {run.spelled(get)}",
    )


def _starred_needs(document: Campaign) -> int | None:
    """The records from which there is a starred threshold; None without δ."""
    if document.delta is None:
        return None
    if isinstance(document, ScoreCampaign):
        flip, rounds = document.channel.flip, document.round_count
        return n_for_scores(document.alpha, flip, rounds, document.delta)
    if isinstance(document, LabelCampaign):
        return n_for_labels(document.alpha, document.channel.beta, document.delta)
    raise TypeError


def _warn_of_too_few(run: Run, document: Campaign) -> None:
    if isinstance(document, ScoreCampaign):  # one that plans too few cannot be made
        if words := margin_words(document):
            run.screen.say(words)
        return
    needed = _starred_needs(document)
    if needed is not None and document.planned_n < needed:
        run.screen.say(
            f"Warning: with these α, δ and ε a starred threshold takes {needed:,} records, and"
            f" {document.planned_n:,} are planned: there will be none. See tacit plan."
        )


def _show_status(run: Run, status: CampaignStatus) -> None:
    run.screen.show(as_fields(status), status_line(status))
