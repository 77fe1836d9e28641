"""`tacit status` and `tacit ledger show`: where joined campaigns stand, here and at the server."""

import time
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from tacit.protocol import CampaignState, CampaignStatus
from tacit_client import Contributor, Ledger, Membership, Outbox
from tacit_client.cli.exits import exit_code, sentence
from tacit_client.cli.output import facts, short, table
from tacit_client.cli.registering import Run, command, finish
from tacit_client.cli.words import as_fields, status_line
from tacit_client.errors import TacitClientError
from tacit_client.ledger import JoinedCampaign, find_campaign, joined_campaigns, spending
from tacit_client.ledger.campaigns import not_joined
from tacit_client.transport import Network

UNKNOWN = "what was spent without a witness is not known"

_OVER = frozenset({CampaignState.CLOSED, CampaignState.ABANDONED})

Beginning = Annotated[
    str | None, typer.Argument(help="The beginning of a digest; without it, all of them.")
]


@dataclass(frozen=True)
class Standing:
    """One joined campaign: what the ledger says, and the server, if it could be asked."""

    digest: str
    title: str
    membership: Membership
    records: dict[str, int]
    status: CampaignStatus | None
    error: TacitClientError | None

    def waits_for(self) -> str:
        """What is missing, in a sentence."""
        if self.error is not None:
            return sentence(self.error)
        if self.status is None:
            return "nothing: over for this site"
        if self.records["drawn"]:
            return "what was drawn to be sent: tacit contribute --resend"
        return " ".join(self.status.waiting_for) or "nothing"

    def fields(self) -> dict[str, Any]:
        """The same for a program."""
        return {
            "campaign": self.digest,
            "title": self.title,
            "membership": self.membership,
            "records": self.records,
            "server": None if self.status is None else as_fields(self.status),
            "problem": None if self.error is None else sentence(self.error),
            "waits_for": self.waits_for(),
        }


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
    standings = [_standing(run, digest) for digest in _digests(run, campaign)]
    rows = [_row(standing) for standing in standings]
    headings = (
        *("campaign", "title", "here", "server"),
        *("records", "accepted", "counted", "waits for"),
    )
    run.screen.show(
        {"campaigns": [standing.fields() for standing in standings]},
        table(headings, rows, numbers="records,accepted,counted")
        if rows
        else f"No campaign is joined yet: {run.spelled('join INVITATION')}",
    )
    failed = next((each.error for each in standings if each.error is not None), None)
    if failed is not None:
        finish(exit_code(failed))


def ledger_show(run: Run, campaign: Beginning = None) -> None:
    """Show what the ledger holds: campaigns, records, ε spent. Asks no server."""
    with Ledger.open(run.home) as ledger:
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
                ("may leave", ", ".join(sorted(policy.may_leave)) or "nothing but labels"),
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


def _digests(run: Run, beginning: str | None) -> list[str]:
    with Ledger.open(run.home) as ledger:
        found = joined_campaigns(ledger, beginning or "")
        if beginning and not found:
            raise not_joined(ledger)
    return [each.digest for each in found]


def _standing(run: Run, digest: str) -> Standing:
    """Ask the server of one campaign, and mark in the ledger what it says."""
    with Contributor.open(digest, run.home, network=_network(run)) as contributor:
        found: CampaignStatus | None = None
        failed: TacitClientError | None = None
        if contributor.membership is Membership.JOINED:
            try:
                found = contributor.refresh()
            except TacitClientError as error:
                failed = error
        counts = {state.value: count for state, count in contributor.outbox.counts().items()}
        return Standing(
            digest, contributor.campaign.title, contributor.membership, counts, found, failed
        )


def _network(run: Run) -> Network:
    return Network(attempts=2, ca_bundle=run.ca_bundle)


def _follow(run: Run, beginning: str | None, every: float) -> None:
    with Ledger.open(run.home) as ledger:
        digest = find_campaign(ledger, beginning).digest
    last = ""
    while True:
        # The ledger is held only while asking, so that this site can contribute meanwhile.
        standing = _standing(run, digest)
        if standing.error is not None:
            raise standing.error
        if standing.status is None:
            run.screen.show(standing.fields(), f"{short(digest)} {standing.membership}.")
            return
        line = status_line(standing.status)
        if line != last:
            run.screen.show(standing.fields(), line)
            last = line
        if standing.status.state in _OVER:
            return
        time.sleep(every)


def _row(standing: Standing) -> tuple[object, ...]:
    return (
        short(standing.digest),
        standing.title,
        standing.membership,
        "?" if standing.status is None else standing.status.state,
        f"{sum(standing.records.values()):,}",
        f"{standing.records['accepted']:,}",
        f"{standing.records['counted']:,}",
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
