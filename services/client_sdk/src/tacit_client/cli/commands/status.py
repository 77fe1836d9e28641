"""`tacit status` and `tacit ledger show`: where joined campaigns stand, here and at the server."""

import time
from typing import Annotated, Any

import typer

from tacit.protocol import CampaignStatus
from tacit_client import Ledger, Outbox
from tacit_client.cli.exits import exit_code
from tacit_client.cli.output import RANDOMIZED_ALONE, facts, short, table
from tacit_client.cli.registering import Run, command, finish
from tacit_client.cli.standing import Standing, digests_of, looking, standing_of
from tacit_client.cli.words import status_line
from tacit_client.ledger import JoinedCampaign, find_campaign, joined_campaigns, spending
from tacit_client.ledger.campaigns import not_joined
from tacit_client.news import OVER, news

UNKNOWN = "what was spent without a witness is not known"

Beginning = Annotated[
    str | None, typer.Argument(help="The beginning of a digest; without it, all of them.")
]


def status(
    run: Run,
    campaign: Beginning = None,
    *,
    follow: Annotated[
        bool,
        typer.Option("--follow", help="Go on until it is over; with --json, a line each time."),
    ] = False,
    every: Annotated[float, typer.Option(help="Seconds between questions.", min=0.2)] = 5.0,
) -> None:
    """Show where the joined campaigns stand, and what each waits for."""
    if follow:
        _follow(run, campaign, every)
        return
    standings = [standing_of(run, digest) for digest in digests_of(run, campaign)]
    counted: tuple[str, ...] = ("records", "accepted", "counted")
    if any(standing.here for standing in standings):
        counted += ("late", "unanswered")
    rows = [_row(standing, counted) for standing in standings]
    headings = ("campaign", "title", "here", "server", *counted, "waits for")
    run.screen.show(
        {"campaigns": [standing.fields() for standing in standings]},
        table(headings, rows, numbers=",".join(counted))
        if rows
        else f"No campaign is joined yet: {run.spelled('join INVITATION')}",
        *(part for standing in standings for part in standing.rounds()),
    )
    failed = next((each.error for each in standings if each.error is not None), None)
    if failed is not None:
        finish(exit_code(failed))


def ledger_show(run: Run, campaign: Beginning = None) -> None:
    """Show what the ledger holds: campaigns, records, ε spent. Asks no server."""
    with looking(run.home) as ledger:
        spent = spending(ledger)
        policy = run.home.policy()
        joined = joined_campaigns(ledger, campaign or "")
        if campaign and not joined:
            raise not_joined(ledger)
        entries = [_entry(ledger, each) for each in joined]
        restored = ledger.meta.restored_floor is not None
    document = {
        "home": str(run.home.path),
        "restored": restored,
        "persons": spent.persons,
        "most_epsilon": spent.most_epsilon,
        "least_epsilon": spent.least_epsilon,
        "max_epsilon": policy.max_epsilon,
        "may_leave": sorted(policy.may_leave),
        "campaigns": entries,
    }
    states = ("drawn", "accepted", "counted", "late", "dropped", "refused")
    rows = [
        (
            short(entry["campaign"]),
            entry["title"],
            entry["membership"],
            f"{entry['epsilon']:g}",
            *(f"{entry['records'][state]:,}" for state in states),
        )
        for entry in entries
    ]
    run.screen.show(
        document,
        facts(
            [
                ("home", run.home.path),
                ("persons", f"{spent.persons:,}"),
                ("most ε of one", f"{spent.most_epsilon:g} of {policy.max_epsilon:g} allowed"),
                ("may leave", ", ".join(sorted(policy.may_leave)) or RANDOMIZED_ALONE),
                *(
                    [
                        ("restored", "this ledger is an old copy; see tacit doctor"),
                        ("least ε of one", f"{spent.least_epsilon:g}, since the copy; {UNKNOWN}"),
                    ]
                    if restored
                    else []
                ),
            ]
        ),
        "",
        table(("campaign", "title", "here", "ε", *states), rows, numbers=",".join(("ε", *states))),
    )


def register(app: typer.Typer) -> None:
    """Add the commands."""
    command(app, "status")(status)
    group = typer.Typer(help="Look into the ledger.", no_args_is_help=True)
    command(group, "show")(ledger_show)
    app.add_typer(group, name="ledger")


def _follow(run: Run, beginning: str | None, every: float) -> None:
    with looking(run.home) as ledger:
        digest = find_campaign(ledger, beginning).digest
    last: CampaignStatus | None = None
    while True:
        # The ledger is held only while asking, so that this site can contribute meanwhile.
        standing = standing_of(run, digest)
        if standing.error is not None:
            raise standing.error
        if standing.status is None:
            run.screen.show(standing.fields(), f"{short(digest)} {standing.membership}.")
            return
        told = news(standing.status)
        if told != last:
            words = (status_line(standing.status), *standing.own_part().lines())
            run.screen.show(standing.fields(), *words, *standing.rounds()[2:])
            last = told
        if standing.status.state in OVER:
            return
        time.sleep(every)


def _row(standing: Standing, counted: tuple[str, ...]) -> tuple[object, ...]:
    counts = {
        **standing.records,
        "records": max(standing.dealt, sum(standing.records.values())),
        "unanswered": standing.unanswered,
    }
    return (
        short(standing.digest),
        standing.title,
        standing.membership,
        standing.server(),
        *(f"{counts[name]:,}" for name in counted),
        standing.waits_for(),
    )


def _entry(ledger: Ledger, joined: JoinedCampaign) -> dict[str, Any]:
    counts = Outbox(ledger, joined.number).counts()
    return {
        "campaign": joined.digest,
        "title": joined.document().title,
        "site": joined.site,
        "url": joined.url,
        "membership": joined.state,
        "epsilon": joined.epsilon_nano / 10**9,
        "records": {state.value: count for state, count in counts.items()},
    }
