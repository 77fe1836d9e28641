"""The checks of `tacit doctor`: what is looked at, what is wrong, how to mend it."""

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from importlib.metadata import version
from urllib.parse import urlsplit
from urllib.request import getproxies

from tacit.protocol import PROTOCOL, ScoreCampaign, ServerInfo
from tacit_client.api import Api
from tacit_client.cli.exits import ExitCode, exit_code, sentence
from tacit_client.cli.fixes import fix_of
from tacit_client.cli.output import RANDOMIZED_ALONE, many
from tacit_client.cli.versions import versions
from tacit_client.errors import LedgerRestored, RuntimeMissing, TacitClientError
from tacit_client.home import Home
from tacit_client.ledger import JoinedCampaign, Ledger, Membership, joined_campaigns
from tacit_client.rounds.model import check_runtime
from tacit_client.transport import Network

MOST_SKEW = 60.0
"""Seconds by which this clock may differ from the server's."""


class State(StrEnum):
    """How a check ended."""

    OK = "ok"
    PROBLEM = "problem"
    NOT_CHECKED = "not checked"


@dataclass(frozen=True)
class Check:
    """One thing looked at; a problem has a fix and the code that the command ends with."""

    name: str
    found: str
    problem: str | None = None
    fix: str | None = None
    code: ExitCode = ExitCode.OK
    looked: bool = True

    @property
    def state(self) -> State:
        """Well, not well, or not known."""
        if self.problem is not None:
            return State.PROBLEM
        return State.OK if self.looked else State.NOT_CHECKED

    @classmethod
    def failed(cls, name: str, error: TacitClientError, place: object) -> "Check":
        """A check of a file or an address that an error put an end to."""
        return cls(name, "", sentence(error), fix_of(error, place), exit_code(error))

    @classmethod
    def skipped(cls, name: str, why: str) -> "Check":
        """A check that could not be made, and why."""
        return cls(name, why, looked=False)


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
        return Check.failed("policy", error, home.policy_file)
    leaving = " and ".join(sorted(policy.may_leave)) or RANDOMIZED_ALONE
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
        return Check.failed("ledger", error, home.path), []
    if restored:
        return Check.failed("ledger", LedgerRestored(), home.path), joined
    return Check("ledger", f"writable, {many(len(joined), 'campaign')}, in {home.path}"), joined


def check_model_runtime(joined: list[JoinedCampaign]) -> list[Check]:
    """Whether the models of joined campaigns can be run here; nothing if none needs it."""
    active = [each.document() for each in joined if each.state is Membership.JOINED]
    if not any(isinstance(each, ScoreCampaign) and each.model is not None for each in active):
        return []
    try:
        check_runtime()
    except RuntimeMissing as error:
        fix = "pip install 'tacit-client[onnx]', or contribute probabilities or scores instead."
        return [Check("onnxruntime", "", sentence(error), fix, exit_code(error))]
    return [Check("onnxruntime", f"{version('onnxruntime')}, for a campaign's model")]


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
        trust = Check.failed("certificates", error, bundle)
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
                checks.append(_token(api, endpoint.url))
            return checks
    except TacitClientError as error:
        return [Check.failed("server", error, endpoint.url)]


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
        return Check.skipped("key", "none is pinned to compare with; --key names one")
    if pinned in info.keys:
        return Check("key", f"the pinned key {pinned[:12]} is the server's")
    return Check(
        "key",
        "",
        f"The pinned key {pinned[:12]} is none of those that the server offers.",
        "Send nothing. Ask the operator, by telephone, for the fingerprint of the key.",
        ExitCode.UNVERIFIED,
    )


def _token(api: Api, url: str) -> Check:
    try:
        info = api.token()
    except TacitClientError as error:
        return Check.failed("token", error, url)
    expires = "without end" if info.expires is None else f"until {info.expires:%Y-%m-%d %H:%M} UTC"
    return Check("token", f"{info.role} {info.name}, valid {expires}")
