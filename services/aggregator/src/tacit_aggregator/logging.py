"""Structured logs, one JSON object per line on standard output, with nothing secret in them."""

import json
import logging
import re
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import structlog
from structlog.typing import EventDict, Processor

from tacit.errors import TacitError
from tacit_aggregator.errors import OperatorError
from tacit_aggregator.settings import Settings

_SECRET_NAMES = frozenset(
    {
        "authorization",
        "body",
        "evidence",
        "features",
        "headers",
        "invitation",
        "key",
        "labels",
        "noisy",
        "password",
        "payload",
        "private_pem",
        "probabilities",
        "query",
        "secret",
        "token",
        "token_hash",
        "uniforms",
    }
)
_TOKEN = re.compile(r"tacit_[A-Za-z0-9_-]{43}|tacit-invitation\.[A-Za-z0-9_=-]+")
_MOST_PLACES = 12
_REDACTED = "[redacted]"
_ENCODE = json.JSONEncoder().encode


def configure_logging(settings: Settings) -> None:
    """Send all logs of this process, also those of libraries, through the same processors."""
    level = logging.getLevelNamesMapping()[settings.log_level.upper()]
    shared: list[Processor] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        describe_exception,
        redact,
    ]
    renderer: Processor = (
        structlog.processors.JSONRenderer(serializer=_json)
        if settings.log_format == "json"
        else structlog.dev.ConsoleRenderer(colors=sys.stdout.isatty())
    )
    structlog.configure(
        processors=[*shared, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(sys.stdout),
        cache_logger_on_first_use=True,
    )
    _route_standard_logging(shared, renderer, level)


def _json(event: EventDict, **_: Any) -> str:
    """What `redact` leaves needs no other encoder; making one for each line would take longer."""
    return _ENCODE(event)


def describe_exception(_: Any, __: str, event: EventDict) -> EventDict:
    """What kind of error and where; its words only if they are ours, since others show values."""
    error = _error_of(event.pop("exc_info", None))
    if error is not None:
        event["error"] = type(error).__name__
        if isinstance(error, OperatorError | TacitError):
            event["reason"] = str(error)
        frames = traceback.extract_tb(error.__traceback__)[-_MOST_PLACES:]
        event["places"] = [f"{Path(one.filename).name}:{one.lineno} {one.name}" for one in frames]
    return event


def redact(_: Any, __: str, event: EventDict) -> EventDict:
    """Replace what must not be in a log, by its name, and tokens wherever they stand."""
    return {name: _redacted(name, value) for name, value in event.items()}


def _error_of(exc_info: Any) -> BaseException | None:
    """Structlog is given True, an exception, or what sys.exc_info gives."""
    if isinstance(exc_info, BaseException):
        return exc_info
    found = exc_info if isinstance(exc_info, tuple) else sys.exc_info() if exc_info else ()
    return found[1] if len(found) == 3 else None


def _redacted(name: str, value: Any) -> Any:
    if name.lower() in _SECRET_NAMES:
        return _REDACTED
    if isinstance(value, str):
        return _TOKEN.sub(_REDACTED, value) if "tacit" in value else value
    if isinstance(value, Mapping):
        return {key: _redacted(str(key), inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_redacted("", inner) for inner in value]
    if value is None or isinstance(value, bool | int | float):
        return value
    # Bytes, arrays, models: what they would show of themselves is not known here.
    return f"[{type(value).__name__}]"


def _route_standard_logging(shared: list[Processor], renderer: Processor, level: int) -> None:
    without_meta = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.add_logger_name],
            # Redaction last but one: a library's own fields and its traceback are in by then.
            processors=[without_meta, _without_colours, *shared, renderer],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(max(level, logging.INFO))
    logging.captureWarnings(True)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = name != "uvicorn.access"  # requests are logged without their query
    # What uvicorn says of its start and end is said by our own events.
    logging.getLogger("uvicorn.error").setLevel(max(level, logging.WARNING))
    logging.getLogger("alembic").setLevel(max(level, logging.WARNING))


def _without_colours(_: Any, __: str, event: EventDict) -> EventDict:
    event.pop("color_message", None)
    return event
