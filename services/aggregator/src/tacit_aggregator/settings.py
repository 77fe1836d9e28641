"""Settings, read from environment variables that begin with TACIT_."""

from pathlib import Path
from typing import Literal

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from tacit_aggregator.errors import OperatorError

MEBIBYTE = 2**20


class Settings(BaseSettings):
    """Defaults work on a laptop; `environment=production` refuses what is unsafe elsewhere."""

    model_config = SettingsConfigDict(env_prefix="TACIT_", extra="ignore", frozen=True)

    environment: Literal["development", "production"] = "development"
    database_url: str = Field(default="sqlite:///tacit-aggregator.db", repr=False)
    """sqlite:///path for one server, postgresql://user:password@host/database for any number."""
    database_wait_seconds: float = Field(default=30.0, ge=0)
    """How long a server that starts waits for a PostgreSQL that does not answer yet."""
    database_connections: int = Field(default=10, ge=2)
    """How many connections to PostgreSQL serve requests; a server has two more of its own."""
    key_secret_file: Path | None = None
    """The secret that private keys are encrypted with; beside a SQLite file if it is not set."""
    public_url: str | None = None
    """Where sites reach this server, as invitations say it."""
    host: str = "127.0.0.1"
    port: int = Field(default=8080, ge=0, le=65535)
    metrics_port: int | None = Field(default=None, ge=0, le=65535)
    """Prometheus metrics on a port of their own, on `host`; None: nowhere."""
    most_connections: int = Field(default=4096, ge=1)
    """Further ones are refused; fewer if the system gives the process fewer descriptors."""
    head_seconds: float = Field(default=20.0, gt=0)
    """How long a request's head may take to arrive, from the first byte or a new connection."""
    most_body_bytes: int = Field(default=32 * MEBIBYTE, ge=1024)
    body_seconds: float = Field(default=60.0, gt=0)
    """How long a request's body may take to arrive."""
    most_bodies_bytes: int = Field(default=256 * MEBIBYTE, ge=1024)
    """Requests are put off while the bodies that arrive and are checked have more than this."""
    most_pending_bytes: int = Field(default=4096 * MEBIBYTE, ge=MEBIBYTE)
    """Uploads are put off while more than this waits to be counted."""
    scoring_workers: int = Field(default=1, ge=1, le=64)
    scoring_seconds: float = Field(default=300.0, gt=0)
    """A worker that takes longer for one step, 512 records at most, is ended.

    Its uploads are tried again, one by one."""
    drain_seconds: float = Field(default=0.0, ge=0)
    """How long a server that was told to stop still takes requests while /readyz says no.

    So that what stands before it notices."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["json", "console"] = "json"


def refuse_unsafe(settings: Settings) -> None:
    """Refuse settings that are fine on a laptop and unsafe in production.

    The file of the secret is looked at where it is read, by `keys.secret.read_secret`.
    """
    if settings.environment != "production":
        return
    if settings.public_url is None or not settings.public_url.startswith("https://"):
        raise OperatorError(
            "In production sites must reach this server through TLS: set TACIT_PUBLIC_URL to an"
            " address that begins with https://"
        )
    if settings.log_format != "json":
        raise OperatorError("In production logs are JSON: set TACIT_LOG_FORMAT=json")
