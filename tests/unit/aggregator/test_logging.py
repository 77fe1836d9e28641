"""Logs: one JSON object per line, nothing secret in any of them."""

import json
import subprocess
import sys
from typing import Any

import pytest

from tacit_aggregator.logging import redact

TOKEN = "tacit_" + "aB3_-" * 8 + "xyz"

PROGRAM = """
import logging, structlog
from tacit_aggregator.errors import OperatorError
from tacit_aggregator.logging import configure_logging
from tacit_aggregator.settings import Settings

early = structlog.get_logger("early")
configure_logging(Settings(log_format="{format}"))
early.info("ours", site="north", count=3)
logging.getLogger("uvicorn.error").warning("theirs %s", "{token}", extra={{"features": [1, 2]}})
logging.getLogger("uvicorn.access").info("GET /v1?query")
logging.getLogger("sqlalchemy").debug("too fine")
for error in (ValueError("0.123456 is odd"), OperatorError("Run migrate.")):
    try:
        raise error
    except Exception:
        early.exception("failed")
        logging.getLogger("library").exception("failed")
"""


def lines(log_format: str) -> list[str]:
    program = PROGRAM.format(format=log_format, token=TOKEN)
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=60
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_our_lines_and_those_of_libraries_are_json_with_level_and_time() -> None:
    events: list[dict[str, Any]] = [json.loads(line) for line in lines("json")]
    assert [event["event"] for event in events[:2]] == ["ours", "theirs [redacted]"]
    assert (events[0]["site"], events[0]["count"]) == ("north", 3)
    assert all(event["level"] and event["timestamp"] for event in events)
    assert not any("GET" in event["event"] or "too fine" in event["event"] for event in events)


@pytest.mark.parametrize("log_format", ["json", "console"])
def test_an_error_is_logged_by_kind_and_place_and_only_in_our_own_words(log_format: str) -> None:
    text = "\n".join(lines(log_format))
    assert text.count("ValueError") == 2
    assert text.count("Run migrate.") == 2
    assert "<string>:" in text
    assert "0.123456" not in text
    assert TOKEN not in text


@pytest.mark.parametrize(
    "name",
    ["token", "Authorization", "labels", "features", "probabilities", "body", "secret", "key"],
)
def test_what_is_secret_is_dropped_by_its_name_at_any_depth(name: str) -> None:
    event = redact(None, "info", {"event": "x", name: "abc", "inner": {name: ["abc"]}})
    assert "abc" not in repr(event)
    assert set(event) == {"event", name, "inner"}


def test_tokens_and_invitations_are_dropped_wherever_they_stand() -> None:
    event = redact(
        None,
        "info",
        {"event": f"sent {TOKEN}.", "list": [TOKEN], "text": "tacit-invitation.eyJ0YWNpdCI6"},
    )
    assert event == {"event": "sent [redacted].", "list": ["[redacted]"], "text": "[redacted]"}


def test_bytes_and_objects_are_logged_by_their_type() -> None:
    event = redact(None, "info", {"event": "x", "content": b"abc", "one": object(), "n": 1.5})
    assert event == {"event": "x", "content": "[bytes]", "one": "[object]", "n": 1.5}
