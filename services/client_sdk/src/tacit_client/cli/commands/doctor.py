"""`tacit doctor`: what could keep this site from contributing, and how to mend it."""

from typing import Annotated

import typer

from tacit_client.cli.checks import (
    Check,
    Endpoint,
    State,
    check_endpoint,
    check_ledger,
    check_model_runtime,
    check_network,
    check_policy,
    check_versions,
    endpoints_of,
)
from tacit_client.cli.output import table
from tacit_client.cli.registering import Run, command, finish
from tacit_client.cli.server import Server, checked_key
from tacit_client.transport import Network


def doctor(
    run: Run,
    *,
    url: Annotated[
        str | None, typer.Option(help="A server to look at beside those of joined campaigns.")
    ] = None,
    key: Annotated[str | None, typer.Option(help="The key pinned for it.")] = None,
) -> None:
    """Check server, clock, key, ledger, policy, versions, proxy and certificates."""
    network = Network(
        attempts=1, connect_seconds=5, read_seconds=10, total_seconds=15, ca_bundle=run.ca_bundle
    )
    ledger, joined = check_ledger(run.home)
    checks = [check_versions(), check_policy(run.home), ledger]
    checks += [*check_model_runtime(joined), *check_network(network)]
    endpoints = endpoints_of(joined)
    owners = Server(url, None if key is None else checked_key(key)).or_remembered(run)
    if owners.url is not None and owners.url not in {endpoint.url for endpoint in endpoints}:
        endpoints.append(Endpoint(owners.url, owners.key))
    for endpoint in endpoints:
        checks += check_endpoint(endpoint, network)
    if not endpoints:
        why = "no campaign goes on" if ledger.problem is None else "the ledger cannot be read"
        checks.append(Check.skipped("server", f"{why}; --url names one to look at"))
    _show(run, checks)


def _show(run: Run, checks: list[Check]) -> None:
    problems = [check for check in checks if check.problem is not None]
    document = {
        "ok": not problems,
        "not_checked": [check.name for check in checks if check.state is State.NOT_CHECKED],
        "checks": [
            {
                "name": check.name,
                "state": check.state,
                "found": check.found,
                "problem": check.problem,
                "fix": check.fix,
            }
            for check in checks
        ],
    }
    rows = [
        (
            check.name,
            check.state.upper() if check.state is State.PROBLEM else check.state,
            check.problem or check.found,
        )
        for check in checks
    ]
    fixes = [f"{check.name}: {check.fix}" for check in problems]
    run.screen.show(document, table(("check", "", "found"), rows), *fixes)
    if problems:
        finish(problems[0].code)


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "doctor")(doctor)
