"""HTTP to one server: bounded in time and size, with retries of what may be retried."""

import ipaddress
import ssl
import time
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from importlib.metadata import version
from pathlib import Path
from typing import Self, TypeVar

import httpx
import truststore
from pydantic import BaseModel, ValidationError
from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt
from tenacity import wait_random_exponential as full_jitter

from tacit.protocol import PROTOCOL, Problem
from tacit.protocol.problems import MEDIA_TYPE
from tacit.protocol.versions import HEADER
from tacit_client.errors import (
    AnswerTooLarge,
    CertificateRefused,
    InsecureUrl,
    NotAServer,
    RedirectRefused,
    ServerProblem,
    TacitClientError,
    Timeout,
    TransportError,
    Unreachable,
    problem_error,
)

RETRIED_STATUSES = frozenset({408, 429, 500, 502, 503, 504})
MEBIBYTE = 2**20
_SLOWEST = 2**16
"""Bytes per second that a long answer must come with, beyond its first `total_seconds`."""

Message = TypeVar("Message", bound=BaseModel)


@dataclass(frozen=True)
class Network:
    """How the client speaks with servers. Proxies come from HTTPS_PROXY and NO_PROXY."""

    connect_seconds: float = 10.0
    read_seconds: float = 30.0
    """The longest silence while sending or receiving."""
    total_seconds: float = 120.0
    """The longest that one answer may take to arrive."""
    attempts: int = 6
    longest_wait: float = 30.0
    """The longest pause before an attempt, whatever Retry-After says."""
    ca_bundle: Path | None = None
    """A PEM file of trusted authorities; None: those of the operating system."""
    allow_insecure: bool = False
    """Let tokens travel over plain http; for closed test networks only."""
    most_answer_bytes: int = 16 * MEBIBYTE
    most_model_bytes: int = 2048 * MEBIBYTE
    """The largest model that is fetched."""
    patience_seconds: float = 600.0
    """How long a server may stay away between two rounds before that is an error."""
    records_per_upload: int = 10_000
    """The most records in one upload; with fewer, less has to be sent again over a bad line."""

    def tls(self) -> ssl.SSLContext:
        """How the server's certificate is checked."""
        if self.ca_bundle is None:
            return truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        try:
            return ssl.create_default_context(cafile=str(self.ca_bundle))
        except (OSError, ssl.SSLError) as error:
            raise CertificateRefused("The CA bundle cannot be read as a PEM file.") from error


@dataclass(frozen=True)
class Answer:
    """What a server answered with a status below 400."""

    status: int
    content: bytes = field(repr=False)
    retry_after: float | None = None

    def read(self, kind: type[Message]) -> Message:
        """The message that the answer holds."""
        try:
            return kind.model_validate_json(self.content)
        except ValidationError:
            raise NotAServer(status=self.status) from None


class Transport:
    """Requests to one origin, which alone gets the token. Every one goes through `send`."""

    def __init__(self, url: str, token: str | None = None, network: Network | None = None) -> None:
        self.network = network or Network()
        self.url = url.rstrip("/")
        loopback = check_url(url, allow_insecure=self.network.allow_insecure)
        headers = {
            "User-Agent": f"tacit-client/{version('tacit-client')}",
            "Accept": f"application/json, {MEDIA_TYPE}",
            "Accept-Encoding": "identity",
            HEADER: PROTOCOL,
        }
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        self._client = httpx.Client(
            headers=headers,
            verify=self.network.tls(),
            timeout=httpx.Timeout(self.network.read_seconds, connect=self.network.connect_seconds),
            follow_redirects=False,
            trust_env=not loopback,  # what stays on this machine goes through no proxy
        )

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def send(
        self,
        name: str,  # noqa: ARG002 -- says what is sent; tests stop the process by it
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        parameters: dict[str, str] | None = None,
        into: Path | None = None,
    ) -> Answer:
        """One request of the protocol, all of which may be repeated; tried again with full jitter.

        A problem document becomes its error, anything else that is no answer a `TransportError`.
        With `into` the answer's content is written to that file, and may be as large as a model.
        """
        retrying = Retrying(
            retry=retry_if_exception(may_be_tried_again),
            stop=stop_after_attempt(max(1, self.network.attempts)),
            wait=self._pause,
            reraise=True,
        )
        return retrying(self._once, method, path, body, parameters, into)

    def _pause(self, state: RetryCallState) -> float:
        jitter = full_jitter(multiplier=0.2, max=self.network.longest_wait)(state)
        error = state.outcome.exception() if state.outcome is not None else None
        asked = error.retry_after if isinstance(error, ServerProblem) else None
        return min(max(jitter, asked or 0.0), self.network.longest_wait)

    def _once(
        self,
        method: str,
        path: str,
        body: bytes | None,
        parameters: dict[str, str] | None,
        into: Path | None,
    ) -> Answer:
        deadline = time.monotonic() + self.network.total_seconds
        headers = {} if body is None else {"Content-Type": "application/json"}
        try:
            with self._client.stream(
                method, self.url + path, content=body, params=parameters, headers=headers
            ) as response:
                if response.is_redirect:
                    raise RedirectRefused
                if into is None or response.status_code >= 400:
                    content = self._bounded(response, deadline)
                else:
                    content = self._saved(response, into, deadline)
        except httpx.TimeoutException:
            raise Timeout from None
        except httpx.TransportError as error:
            raise self._unreachable(error) from None
        except httpx.InvalidURL:
            raise InsecureUrl("The server's address is not a valid URL.") from None
        return _answer(response, content)

    def _unreachable(self, error: httpx.TransportError) -> TransportError:
        if _is_about_the_certificate(error):
            return CertificateRefused()
        return Unreachable.at(_host_and_port(self.url))

    def _bounded(self, response: httpx.Response, deadline: float) -> bytes:
        content = bytearray()
        for part in response.iter_raw():
            content += part
            if len(content) > self.network.most_answer_bytes:
                raise AnswerTooLarge
            if time.monotonic() > deadline:
                raise Timeout
        return bytes(content)

    def _saved(self, response: httpx.Response, into: Path, deadline: float) -> bytes:
        """Write a long answer to a file; it may take longer than others, but must go on."""
        received = 0
        with into.open("wb") as file:
            for part in response.iter_raw():
                received += len(part)
                if received > self.network.most_model_bytes:
                    raise AnswerTooLarge(
                        "The model is larger than this site fetches; see Network.most_model_bytes."
                    )
                if time.monotonic() > deadline + received / _SLOWEST:
                    raise Timeout
                file.write(part)
        return b""


def check_url(url: str, *, allow_insecure: bool = False) -> bool:
    """Refuse an address that a token must not be sent to; whether it is this machine itself."""
    try:
        parts = httpx.URL(url)
    except httpx.InvalidURL:
        raise InsecureUrl("The server's address is not a valid URL.") from None
    if parts.userinfo or parts.query or parts.fragment:
        raise InsecureUrl("The server's address must hold no password, query or fragment.")
    loopback = _is_loopback(parts.host)
    if parts.scheme == "https" or (parts.scheme == "http" and (loopback or allow_insecure)):
        return loopback
    raise InsecureUrl


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _answer(response: httpx.Response, content: bytes) -> Answer:
    retry_after = _seconds(response.headers.get("Retry-After"))
    if response.status_code < 400:
        return Answer(response.status_code, content, retry_after)
    media_type = response.headers.get("Content-Type", "").split(";")[0].strip().lower()
    if media_type != MEDIA_TYPE:
        raise NotAServer(
            f"Something that is not a Tacit server answered with status {response.status_code};"
            " check the address and the proxy settings.",
            status=response.status_code,
        )
    try:
        problem = Problem.model_validate_json(content)
    except ValidationError:
        raise NotAServer(status=response.status_code) from None
    raise problem_error(problem, retry_after)


def _seconds(header: str | None) -> float | None:
    """Retry-After, in seconds or as a date."""
    if header is None:
        return None
    if header.strip().isdecimal():
        return float(header)
    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
    except (TypeError, ValueError):
        return None


def _is_about_the_certificate(error: BaseException) -> bool:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return True
        cause = cause.__cause__ or cause.__context__
    return False


def _host_and_port(url: str) -> str:
    """Where a URL leads to, and nothing else of it."""
    parts = httpx.URL(url)
    host = f"[{parts.host}]" if ":" in parts.host else parts.host
    return f"{host}:{parts.port or (443 if parts.scheme == 'https' else 80)}"


def may_be_tried_again(error: BaseException) -> bool:
    """Whether the same request may succeed later."""
    if isinstance(error, CertificateRefused):
        return False
    if isinstance(error, Unreachable | Timeout):
        return True
    return isinstance(error, TacitClientError) and _status(error) in RETRIED_STATUSES


def _status(error: TacitClientError) -> int | None:
    if isinstance(error, ServerProblem):
        return error.problem.status
    return error.status if isinstance(error, NotAServer) else None
