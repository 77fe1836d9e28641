"""A lying server: between clients and a true aggregator, it changes what either of them says."""

import base64
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import rfc8785

from tacit.protocol import LabelCampaign, Signed, SigningKey, sha256_hex
from tacit.protocol.signatures import signed_bytes
from tests.support.aggregator import PATIENCE
from tests.support.small_server import Reply, Request, SmallServer, small_server

Forward = Callable[[Request], Reply]
Lie = Callable[[Request, Forward], Reply | None]

_CARRIED = ("authorization", "content-type", "tacit-protocol")


@contextmanager
def liar(truth: str, lie: Lie) -> Iterator[SmallServer]:
    """A server that answers as `lie` says, which may ask the true one; None: it hangs up."""
    with httpx.Client(base_url=truth, timeout=PATIENCE, trust_env=False) as http:

        def forward(request: Request) -> Reply:
            given = {name.lower(): value for name, value in request.headers.items()}
            headers = {name: given[name] for name in _CARRIED if name in given}
            told = http.request(request.method, request.path, content=request.body, headers=headers)
            media = told.headers.get("content-type", "application/json")
            return Reply(told.status_code, told.content, {"Content-Type": media})

        with small_server(lambda _, request: lie(request, forward)) as server:
            yield server


def instead(end: str, answer: Callable[[bytes], bytes], method: str = "GET") -> Lie:
    """Change what is answered where the path ends like this; be honest otherwise."""

    def lie(request: Request, forward: Forward) -> Reply:
        told = forward(request)
        if request.method != method or not request.path.partition("?")[0].endswith(end):
            return told
        return Reply(told.status, answer(told.body), told.headers)

    return lie


def signed_as(content: Signed, **changes: str) -> bytes:
    """A signed document with some of its fields changed."""
    return content.model_copy(update=changes).model_dump_json().encode()


def of_version(campaign: LabelCampaign, version: str, key: SigningKey) -> tuple[Signed, str]:
    """The campaign as a document of another version, truly signed, and its digest."""
    payload = rfc8785.dumps(json.loads(campaign.to_bytes()) | {"version": version})
    signature = key.private.sign(signed_bytes("campaign", payload))
    signed = Signed(
        payload=payload.decode(),
        public_key=base64.b64encode(key.public_bytes).decode(),
        signature=base64.b64encode(signature).decode(),
    )
    return signed, sha256_hex(payload)


def tacit(
    home: Path, *arguments: str | Path, **variables: str
) -> "subprocess.CompletedProcess[str]":
    """Run the command as a process, whatever comes of it."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TACIT_")}
    return subprocess.run(
        [sys.executable, "-m", "tacit_client.cli", *map(str, arguments)],
        env={**clean, "TACIT_HOME": str(home), **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=2 * PATIENCE,
        check=False,
    )


def told(ended: "subprocess.CompletedProcess[str]") -> dict[str, Any]:
    """The object that a command with --json printed."""
    found: dict[str, Any] = json.loads(ended.stdout)
    return found
