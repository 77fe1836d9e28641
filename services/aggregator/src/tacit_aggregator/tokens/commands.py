"""The commands `token` and `invite`."""

import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from tacit.protocol import Role
from tacit_aggregator.clock import moment
from tacit_aggregator.console import (
    CommandGroup,
    Json,
    print_json,
    print_table,
    say,
    workplace,
    write_private,
)
from tacit_aggregator.tokens import service
from tacit_aggregator.tokens.invitations import Address, Invited, address_of, find_campaign, invite

DAY = 86_400

app = typer.Typer(cls=CommandGroup, no_args_is_help=True, help="Who may speak to this server.")

ExpiresDays = Annotated[
    int, typer.Option(min=1, max=3650, metavar="N", help="How many days it is valid.")
]
Campaign = Annotated[
    str, typer.Option(metavar="DIGEST", help="The campaign's digest, or the beginning of it.")
]


@app.command("create")
def create(
    role: Annotated[Role, typer.Option(help="What it may do.")],
    name: Annotated[str, typer.Option(help="The owner's, the operator's or the site's name.")],
    campaign: Campaign = "",
    expires_days: ExpiresDays = 365,
    as_json: Json = False,
) -> None:
    """Mint a token and print it, this once; only its hash is stored."""
    now = time.time()
    with workplace() as place, place.database.transaction("create token") as connection:
        digest = find_campaign(connection, campaign).digest if campaign else None
        expires_at = now + expires_days * DAY
        minted = service.create(
            connection, role, name, campaign=digest, expires_at=expires_at, now=now
        )
    if as_json:
        print_json(
            {
                "id": minted.id,
                "token": minted.token,
                "role": role.value,
                "name": name,
                "campaign": digest,
                "expires": moment(expires_at),
            }
        )
        return
    typer.echo(minted.token)
    say(f"This token is shown once. It is valid until {moment(expires_at)}; its id is {minted.id}.")


@app.command("list")
def list_tokens(as_json: Json = False) -> None:
    """List all tokens, by id; the tokens themselves are not stored."""
    with workplace() as place, place.database.read() as connection:
        found = service.list_tokens(connection)
    now = time.time()
    rows = [_row(token, now) for token in found]
    if as_json:
        print_json(rows)
    else:
        print_table(rows, "There are no tokens; make one: tacit-aggregator token create")


@app.command("revoke")
def revoke(token_id: Annotated[str, typer.Argument(metavar="ID")], as_json: Json = False) -> None:
    """Make a token worthless; a running server follows within seconds."""
    with workplace() as place, place.database.transaction("revoke token") as connection:
        service.revoke(connection, token_id, time.time())
    if as_json:
        print_json({"id": token_id, "state": "revoked"})
    else:
        say(f"The token {token_id} is revoked.")


def invite_command(
    campaign: Campaign,
    site: Annotated[str, typer.Option(help="The site's name, as the owner will see it.")],
    url: Annotated[
        str | None, typer.Option(help="Where the site reaches this server.", metavar="URL")
    ] = None,
    expires_days: ExpiresDays = 365,
    out: Annotated[
        Path | None, typer.Option(help="Write it to this new file, which only you may read.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Invite a site: mint its token and print the invitation, which holds it.

    Whoever has the invitation can contribute in the site's name: hand it over as you would a
    password. A site that was invited before gets a further token.
    """
    now = time.time()
    with workplace() as place, place.database.transaction("invite site") as connection:
        address = address_of(place.settings, url)
        invited = invite(
            connection,
            campaign,
            site,
            url=address.url,
            expires_at=now + expires_days * DAY,
            now=now,
        )
        if out is not None:  # before the commit: no token without the file that holds it
            write_private(out, invited.invitation.to_text() + "\n")
    if as_json:
        print_json(_described(invited, out, now + expires_days * DAY))
    elif out is None:
        typer.echo(invited.invitation.to_text())
    _say_what_was_done(invited, out, address)


def _say_what_was_done(invited: Invited, out: Path | None, address: Address) -> None:
    where = f" The invitation is in {out}." if out is not None else ""
    say(
        f"{invited.invitation.site} is invited to {invited.title!r}; the id of its token is"
        f" {invited.token_id}.{where}"
    )
    if address.assumed:
        say(
            f"It will look for this server at {address.url}, which works on this machine only: set"
            " TACIT_PUBLIC_URL, or give --url."
        )
    else:
        say(f"It will look for this server at {address.url}.")
    if invited.earlier_tokens:
        say(
            f"It was invited before: {invited.earlier_tokens} earlier token(s) stay valid until you"
            " revoke them (tacit-aggregator token list)."
        )


def _described(invited: Invited, out: Path | None, expires_at: float) -> dict[str, Any]:
    invitation = invited.invitation
    return {
        "site": invitation.site,
        "campaign": invitation.campaign,
        "url": invitation.url,
        "key": invitation.key,
        "token_id": invited.token_id,
        "expires": moment(expires_at),
        "earlier_tokens": invited.earlier_tokens,
        **({"invitation": invitation.to_text()} if out is None else {"file": str(out)}),
    }


def _row(token: service.StoredToken, now: float) -> dict[str, Any]:
    expired = token.expires_at is not None and token.expires_at <= now
    fields = asdict(token)
    return {
        "id": token.id,
        "role": token.role.value,
        "name": token.name,
        "campaign": token.campaign,
        "state": "revoked" if token.revoked_at else "expired" if expired else "valid",
        **{
            name.removesuffix("_at"): None if fields[name] is None else moment(fields[name])
            for name in ("created_at", "expires_at", "revoked_at")
        },
    }
