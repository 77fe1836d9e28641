"""`tacit contribute`, `export`, `submit` and `acknowledge`: records on their way."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from tacit.protocol import ScoreCampaign
from tacit_client import Contribution, Contributor, Membership, submit
from tacit_client.cli.dry_run import show_preview
from tacit_client.cli.errors import BadOption
from tacit_client.cli.exits import ExitCode
from tacit_client.cli.files import Layout, Records, read_records
from tacit_client.cli.invitations import read_invitation
from tacit_client.cli.output import many, short
from tacit_client.cli.registering import Run, command, finish
from tacit_client.drawing import MOST_RECORDS
from tacit_client.errors import NeedsNetwork
from tacit_client.transport import Network

Campaign = Annotated[
    str | None,
    typer.Option(
        "--campaign", help="The beginning of the campaign's digest; not needed for the only one."
    ),
]
File = Annotated[
    Path, typer.Argument(help="The records: .csv, .npz or .parquet.", show_default=False)
]


def contribute(
    run: Run,
    layout: Layout,
    file: Annotated[
        Path | None, typer.Argument(help="The records: .csv, .npz or .parquet.")
    ] = None,
    *,
    campaign: Campaign = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would leave; draw and send nothing.")
    ] = False,
    resend: Annotated[
        bool, typer.Option("--resend", help="No file: send again what was drawn and waits.")
    ] = False,
    records_per_upload: Annotated[
        int,
        typer.Option(min=1, max=MOST_RECORDS, help="Fewer, if the line often breaks."),
    ] = MOST_RECORDS,
    wait: Annotated[
        bool,
        typer.Option(
            "--wait/--no-wait",
            help="Of score campaigns: answer until the search is over, or only what is asked now.",
        ),
    ] = True,
    without_the_rest: Annotated[
        bool,
        typer.Option(
            "--without-the-rest",
            help="Of score campaigns: enrolled records that are not in the file never answer.",
        ),
    ] = False,
) -> None:
    """Contribute the records of a file: randomize each label, or answer, once, and send."""
    if (file is None) != resend or (resend and dry_run):
        raise BadOption("Name the file with the records, or say --resend alone.")
    network = Network(ca_bundle=run.ca_bundle, records_per_upload=records_per_upload)
    with Contributor.open(campaign, run.home, network=network) as contributor:
        if file is None:
            with run.screen.progress() as on_progress:
                done = contributor.resend(on_progress)
            _show(run, contributor, done)
            return
        records = _read(run, contributor, layout, file)
        if dry_run:
            show_preview(run, contributor, records)
            return
        run.screen.say(contributor.notice)
        with run.screen.progress() as on_progress:
            done = contributor.contribute(
                records.given_labels,
                records.ids,
                records.persons,
                **records.evidence,
                wait=wait,
                absent_ok=without_the_rest,
                on_progress=on_progress,
            )
        _show(run, contributor, done, *_drawn(done), again=_again(contributor, done))


def export(
    run: Run,
    layout: Layout,
    file: File,
    *,
    output: Annotated[Path, typer.Option("--output", "-o", help="The bundle to write.")],
    campaign: Campaign = None,
) -> None:
    """Randomize the records of a file and write a bundle, for a site without network."""
    with Contributor.open(campaign, run.home) as contributor:
        if isinstance(contributor.campaign, ScoreCampaign):
            raise NeedsNetwork
        records = _read(run, contributor, layout, file)
        run.screen.say(contributor.notice)
        done = contributor.export(
            output, records.labels, records.ids, records.persons, **records.evidence
        )
        run.screen.show(
            {"campaign": contributor.digest, "bundle": str(output), **asdict(done)},
            *_drawn(done),
            f"{output} holds {many(done.uploads, 'upload')}.",
        )
        run.screen.explain(
            "Carry it to a machine with a network, and there:"
            f" tacit submit {output.name} --invitation FILE"
        )


def submit_bundle(
    run: Run,
    bundle: Annotated[Path, typer.Argument(help="What tacit export wrote.")],
    *,
    invitation: Annotated[
        str, typer.Option(help="The site's invitation: a file, - or the line itself.")
    ],
    receipt: Annotated[
        Path | None, typer.Option(help="Where to write the receipt; default: beside the bundle.")
    ] = None,
) -> None:
    """Send a bundle from a machine that has a network, and write its receipt."""
    target = receipt or bundle.with_name(bundle.name + ".receipt.json")
    network = Network(ca_bundle=run.ca_bundle)
    asked = read_invitation(invitation)
    with run.screen.progress() as on_progress:
        done = submit(bundle, asked, target, network=network, on_progress=on_progress)
    states = ("accepted", "counted", "late", "dropped", "refused")
    counts = {state: done.records(state) for state in states}
    run.screen.show(
        {"campaign": done.campaign, "receipt": str(target), "records": counts},
        _in_words(counts),
        f"The receipt is in {target}.",
    )
    run.screen.explain(f"Carry it back to the site, and there: tacit acknowledge {target.name}")


def acknowledge(
    run: Run,
    receipt: Annotated[Path, typer.Argument(help="What tacit submit wrote.")],
    *,
    campaign: Campaign = None,
) -> None:
    """Write into the ledger what became of a bundle."""
    with Contributor.open(campaign, run.home) as contributor:
        found = contributor.acknowledge(receipt)
        counts = {state.value: count for state, count in found.items()}
        over = contributor.membership is Membership.ENDED
        run.screen.show(
            {
                "campaign": contributor.digest,
                "records": counts,
                "membership": contributor.membership,
            },
            _in_words(counts),
            *(["The closing date has passed: the campaign's key is erased."] if over else []),
        )


def register(app: typer.Typer) -> None:
    """Add the commands."""
    command(app, "contribute")(contribute)
    command(app, "export")(export)
    command(app, "submit")(submit_bundle)
    command(app, "acknowledge")(acknowledge)


def _read(run: Run, contributor: Contributor, layout: Layout, file: Path) -> Records:
    records = read_records(file, contributor.campaign, layout)
    for warning in records.warnings:
        run.screen.say(warning)
    return records


def _show(
    run: Run, contributor: Contributor, done: Contribution, *first: str, again: str | None = None
) -> None:
    """What was sent and what became of it; an end of its own if all of it came too late.

    `again` is how to go on with it, if it does.
    """
    result = {"campaign": contributor.digest, **asdict(done)}
    run.screen.show(result, *first, *_sent(done, contributor.url))
    if again is not None:
        run.screen.explain(again)
    run.screen.explain(f"Next: {run.spelled(f'status {short(contributor.digest)}')}")
    all_late = done.late and not done.accepted
    if all_late or (done.missed and done.missed == done.records):
        finish(ExitCode.REFUSED_THERE)


def _sent(done: Contribution, url: str) -> list[str]:
    if not done.uploads:
        return ["Nothing waits to be sent."]
    lines = []
    if done.accepted:
        lines.append(f"{many(done.accepted, 'record')} accepted by {url}.")
    if done.late:
        all_of = "" if done.accepted else "All "
        lines.append(
            f"{all_of}{many(done.late, 'record')} came too late: the campaign or their round takes"
            " no more, and they are not counted."
        )
    return lines


def _drawn(done: Contribution) -> list[str]:
    drawn = f"{done.drawn:,} drawn now, {done.already:,} drawn before"
    lines = [f"{many(done.records, 'record')}: {drawn}."]
    if done.failed:
        failed = many(done.failed, "record")
        lines.append(f"The model failed on {failed}: the largest score stands for each.")
    if done.missed:
        missed = many(done.missed, "record")
        lines.append(f"{missed} missed their round: it had closed, and they answer nothing.")
    if done.unasked:
        lines.append(f"{many(done.unasked, 'record')} were not asked, or not yet.")
    if done.absent:
        absent = many(done.absent, "record")
        lines.append(f"{absent} enrolled before are not in this file, and have not answered.")
    return lines


def _again(contributor: Contributor, done: Contribution) -> str | None:
    """How records answer that were not asked yet."""
    if not done.unasked or contributor.membership is not Membership.JOINED:
        return None
    with_all = ", with a file of all records together" if done.absent else ""
    return f"To answer, run the same command again{with_all}."


def _in_words(counts: dict[str, int]) -> str:
    told = ", ".join(f"{count:,} {state}" for state, count in counts.items() if count)
    return f"Records: {told or 'none'}."
