"""The checks of `tacit doctor`: what is looked at, what is wrong, how to mend it."""

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import urlsplit
from urllib.request import getproxies

from tacit.protocol import PROTOCOL, ServerInfo
from tacit_client.api import Api
from tacit_client.cli.exits import ExitCode, exit_code, sentence
from tacit_client.cli.output import many
from tacit_client.cli.versions import versions
from tacit_client.errors import LedgerRestored, TacitClientError
from tacit_client.home import Home
from tacit_client.ledger import JoinedCampaign, Ledger, Membership, joined_campaigns
from tacit_client.transport import Network

MOST_SKEW = 60.0
"""Seconds by which this clock may differ from the server's."""


@dataclass(frozen=True)
class Check:
    """One thing looked at; `problem` is None where all is well."""

    name: str
    found: str
    problem: str | None = None
    fix: str | None = None
    code: ExitCode = ExitCode.OK

    @classmethod
    def failed(cls, name: str, error: TacitClientError, fix: str) -> "Check":
        """A check that an error put an end to."""
        return cls(name, "", sentence(error), fix, exit_code(error))


@dataclass(frozen=True)
class Endpoint:
    """A server to look at, the key pinned for it, and tokens to try."""

    url: str
    key: str | None
    token: str | None = None


def check_versions() -> Check:
    """What is installed."""
    return Check("versions", ", ".join(f"{name} {value}" for name, value in versions().items()))


def check_policy(home: Home) -> Check:
    """Whether the policy can be read, and what it allows."""
    try:
        policy = home.policy()
    except TacitClientError as error:
        return Check.failed("policy", error, f"Correct {home.policy_file}.")
    leaving = " and ".join(sorted(policy.may_leave)) or "nothing but labels"
    return Check("policy", f"{leaving} may leave; at most ε = {policy.max_epsilon:g} per person")


def check_ledger(home: Home) -> tuple[Check, list[JoinedCampaign]]:
    """Whether the ledger can be held and written, and is no restored copy."""
    if not home.ledger.exists():
        return _no_ledger_yet(home), []
    try:
        with Ledger.open(home) as ledger:
            with ledger.rehearsal() as connection:
                connection.execute("UPDATE meta SET sequence = sequence")
            joined = joined_campaigns(ledger)
            restored = ledger.meta.restored_floor is not None
    except TacitClientError as error:
        fix = "Wait for the other command, or see that this user may write there."
        return Check.failed("ledger", error, fix), []
    if restored:
        fix = "Contribute to campaigns that open from now on; ask the owner for a new one."
        return Check.failed("ledger", LedgerRestored(), fix), joined
    return Check("ledger", f"writable, {many(len(joined), 'campaign')}, in {home.path}"), joined


def _no_ledger_yet(home: Home) -> Check:
    existing = next(place for place in (home.path, *home.path.parents) if place.exists())
    if os.access(existing, os.W_OK | os.X_OK):
        return Check("ledger", f"none yet; the first `tacit join` makes it in {home.path}")
    return Check(
        "ledger",
        "",
        f"{existing} is not writable.",
        "Change its permissions, or name another place with --home.",
        ExitCode.REFUSED_HERE,
    )


def check_network(network: Network) -> tuple[Check, ...]:
    """Proxy and certificates, as the environment and the options say."""
    proxies = ", ".join(
        f"{scheme} through {_without_password(address)}"
        for scheme, address in sorted(getproxies().items())
    )
    bundle = "the system's certificates" if network.ca_bundle is None else str(network.ca_bundle)
    try:
        network.tls()
    except TacitClientError as error:
        trust = Check.failed("certificates", error, "Name a PEM file with --ca-bundle.")
    else:
        trust = Check("certificates", bundle)
    return Check("proxy", proxies or "none"), trust


def _without_password(address: str) -> str:
    parts = urlsplit(address if "//" in address else f"//{address}")
    try:
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        port = ""
    return f"{parts.hostname or 'itself'}{port}" if parts.netloc else address


def endpoints_of(joined: list[JoinedCampaign]) -> list[Endpoint]:
    """The servers of the campaigns that are not over, each once."""
    active = [campaign for campaign in joined if campaign.state is Membership.JOINED]
    return list(dict.fromkeys(Endpoint(each.url, each.key, each.token) for each in active))


def check_endpoint(endpoint: Endpoint, network: Network) -> list[Check]:
    """Whether a server answers, its clock, its version, its key and the token."""
    try:
        with Api(endpoint.url, endpoint.token, network) as api:
            info = api.server()
            now = datetime.now(UTC)
            checks = [
                Check("server", f"{endpoint.url} answers: {info.service} {info.version}"),
                check_clock(info, now),
                check_protocol(info),
                check_key(info, endpoint.key),
            ]
            if endpoint.token is not None:
                checks.append(_token(api))
            return checks
    except TacitClientError as error:
        fix = f"See that {endpoint.url} is right, the network is up, and proxy and CA bundle fit."
        return [Check.failed("server", error, fix)]


def check_clock(info: ServerInfo, now: datetime) -> Check:
    """Whether this clock agrees with the server's."""
    skew = (now - info.time).total_seconds()
    found = f"{abs(skew):.0f} s from the server's"
    if abs(skew) <= MOST_SKEW:
        return Check("clock", found)
    side = "ahead of" if skew > 0 else "behind"
    return Check(
        "clock",
        found,
        f"This clock is {abs(skew):.0f} s {side} the server's.",
        "Set this machine's clock, for example by NTP, or tell the operator.",
        ExitCode.BAD_INPUT,
    )


def check_protocol(info: ServerInfo) -> Check:
    """Whether the server speaks this client's protocol."""
    spoken = ", ".join(info.protocols)
    if PROTOCOL in info.protocols:
        return Check("protocol", f"the server speaks {spoken}")
    return Check(
        "protocol",
        "",
        f"The server speaks {spoken}, this client {PROTOCOL}.",
        "Install a version of tacit-client that speaks the server's.",
        ExitCode.REFUSED_THERE,
    )


def check_key(info: ServerInfo, pinned: str | None) -> Check:
    """Whether the pinned key is one that the server offers."""
    if pinned is None:
        return Check("key", "none pinned to compare with; --key names one")
    if pinned in info.keys:
        return Check("key", f"the pinned key {pinned[:12]} is the server's")
    return Check(
        "key",
        "",
        f"The pinned key {pinned[:12]} is none of those that the server offers.",
        "Send nothing. Ask the operator, by telephone, for the fingerprint of the key.",
        ExitCode.UNVERIFIED,
    )


def _token(api: Api) -> Check:
    try:
        info = api.token()
    except TacitClientError as error:
        return Check.failed(
            "token", error, "Ask the operator for a new invitation, and join again."
        )
    expires = "without end" if info.expires is None else f"until {info.expires:%Y-%m-%d %H:%M} UTC"
    return Check("token", f"{info.role} {info.name}, valid {expires}")
