"""`tacit join` and `tacit leave`: taking part in a campaign."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from tacit.protocol import LabelCampaign
from tacit_client import Contributor, Membership, Policy
from tacit_client.cli.confirming import Yes, confirm
from tacit_client.cli.invitations import read_invitation
from tacit_client.cli.output import short
from tacit_client.cli.registering import Run, command
from tacit_client.cli.words import campaign_facts, leaves
from tacit_client.errors import PolicyRefused
from tacit_client.transport import Network

NOT_TOLD = "The server was not told, and still expects records: tell the campaign's owner."


def join(
    run: Run,
    invitation: Annotated[
        str, typer.Argument(help="The invitation: a file, - for standard input, or the line.")
    ],
    *,
    campaign: Annotated[
        Path | None,
        typer.Option(help="The signed campaign, carried here: then nothing is sent."),
    ] = None,
    may_leave: Annotated[
        list[str] | None,
        typer.Option(help="Let probabilities or features leave, from now on; added to the policy."),
    ] = None,
    max_epsilon: Annotated[
        float | None, typer.Option(help="The most ε of one person, from now on.")
    ] = None,
) -> None:
    """Join a campaign: verify it against invitation and policy; send no records yet."""
    asked = read_invitation(invitation)
    before = run.home.policy()
    policy = _changed(before, may_leave or [], max_epsilon)
    network = Network(ca_bundle=run.ca_bundle)
    try:
        joined = Contributor.join(asked, run.home, policy, document=campaign, network=network)
    except PolicyRefused as error:
        where = f"The policy is in {run.home.policy_file}"
        raise type(error)(f"{error} {where}; --may-leave and --max-epsilon change it.") from None
    with joined as contributor:
        if policy != before:
            run.home.save_policy(policy)
            run.screen.say(f"The policy in {run.home.policy_file} was changed.")
        document = {
            "campaign": contributor.digest,
            "title": contributor.campaign.title,
            "site": contributor.site,
            "url": contributor.url,
            "key": asked.key,
            "epsilon": contributor.campaign.epsilon,
            "leaves": leaves(contributor.campaign),
            "notice": contributor.notice,
        }
        run.screen.explain(
            campaign_facts(contributor.campaign, contributor.digest), "", contributor.notice
        )
        run.screen.show(document, f"Joined as {contributor.site}.")
        carried = campaign is not None and isinstance(contributor.campaign, LabelCampaign)
        following = "export FILE -o BUNDLE" if carried else "contribute FILE --dry-run"
        run.screen.explain(f"Next: {run.spelled(following)}")


def leave(
    run: Run,
    campaign: Annotated[
        str | None, typer.Argument(help="The beginning of its digest; not needed for the only one.")
    ] = None,
    *,
    offline: Annotated[
        bool, typer.Option("--offline", help="Erase the key here without telling the server.")
    ] = False,
    yes: Yes = False,
) -> None:
    """Leave a campaign: what was accepted stays counted, its key is erased here."""
    network = Network(ca_bundle=run.ca_bundle)
    with Contributor.open(campaign, run.home, network=network) as contributor:
        joined = contributor.membership is Membership.JOINED
        if joined:
            confirm(run, f"Leave {contributor.campaign.title}, {short(contributor.digest)}?", yes)
        contributor.leave(offline=offline)
        counts = {state.value: count for state, count in contributor.outbox.counts().items()}
        run.screen.show(
            {"campaign": contributor.digest, "state": contributor.membership, "records": counts},
            f"{contributor.campaign.title}: {contributor.membership}. What was accepted stays"
            " counted, what was spent stays spent; the campaign's key is erased.",
            *([NOT_TOLD] if joined and offline else []),
        )


def register(app: typer.Typer) -> None:
    """Add the commands."""
    command(app, "join")(join)
    command(app, "leave")(leave)


def _changed(policy: Policy, may_leave: list[str], max_epsilon: float | None) -> Policy:
    """The policy with what the options add to it."""
    named = {kind.strip() for listed in may_leave for kind in listed.split(",")}
    wider = replace(policy, may_leave=policy.may_leave | named)
    return wider if max_epsilon is None else replace(wider, max_epsilon=max_epsilon)
