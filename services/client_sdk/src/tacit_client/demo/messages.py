"""Messages as they went over the wire, with what is long cut short."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tacit_client.demo.wire import Exchange

LONGEST = 40
"""Characters of a text that are shown."""
_MOST_NAMES = 12


@dataclass(frozen=True)
class Message:
    """One message: what it is, how it travelled, what it said."""

    what: str
    travelled: str
    content: Any

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return {"what": self.what, "travelled": self.travelled, "content": self.content}


def one_of_each(
    exchanges: list[Exchange], contributor: str, labels: str, scores: str
) -> list[Message]:
    """What a label campaign and a score campaign are made of, each kind of message once."""
    return [
        *_of_labels([seen for seen in exchanges if labels in seen.path], contributor),
        *_of_scores([seen for seen in exchanges if scores in seen.path], contributor),
    ]


def _of_labels(exchanges: list[Exchange], contributor: str) -> list[Message]:
    """A signed campaign, an enrolment, an upload, its receipt and a signed threshold."""
    of_site = [seen for seen in exchanges if seen.party == contributor]
    campaign = _first(exchanges, "PUT", "/v1/campaigns/", depth=3)
    upload = _first(of_site, "PUT", "/uploads/")
    return [
        _answered("campaign", campaign),
        _asked("enrolment", _first(of_site, "PUT", "/enrolment")),
        _asked("upload", upload),
        _answered("receipt", upload),
        _answered("threshold", _first(exchanges, "GET", "/thresholds/nominal")),
    ]


def _of_scores(exchanges: list[Exchange], contributor: str) -> list[Message]:
    """A signed question, a site's answers to it and its word that these are all."""
    of_site = [seen for seen in exchanges if seen.party == contributor]
    polls = [seen for seen in of_site if "/round?" in seen.path]
    asked = [seen for seen in polls if json.loads(seen.answer).get("question")]
    return [
        _answered("question", _first(asked, "GET", "/round?")),
        _asked("answers", _first(of_site, "PUT", "/uploads/")),
        _asked("done", _first(of_site, "PUT", "/done")),
    ]


def _first(exchanges: Iterable[Exchange], method: str, part: str, depth: int = 0) -> Exchange:
    """The first exchange that succeeded, by method and address."""
    return next(
        seen
        for seen in exchanges
        if seen.method == method
        and seen.status < 300
        and part in seen.path
        and (not depth or seen.path.count("/") == depth)
    )


def _asked(what: str, seen: Exchange) -> Message:
    travelled = f"→ {seen.method} {_address(seen)}"
    return Message(what, travelled, shortened(json.loads(seen.body)))


def _answered(what: str, seen: Exchange) -> Message:
    travelled = f"{seen.method} {_address(seen)} → {seen.status}"
    return Message(what, travelled, shortened(_opened(json.loads(seen.answer))))


def _opened(value: Any) -> Any:
    """The same with payloads spread out to be read: texts over which the signatures are."""
    if not isinstance(value, dict):
        return value
    return {
        name: json.loads(part) if name == "payload" else _opened(part)
        for name, part in value.items()
    }


def _address(seen: Exchange) -> str:
    return "/".join(_digest(part) for part in seen.path.split("/"))


def _digest(part: str) -> str:
    return f"{part[:8]}…" if len(part) > 30 else part


def shortened(value: Any) -> Any:
    """The same value, but of long texts and lists the beginning only."""
    if isinstance(value, dict):
        return {name: shortened(part) for name, part in value.items()}
    if isinstance(value, list):
        kept = [shortened(part) for part in value[:_MOST_NAMES]]
        return [*kept, "…"] if len(value) > _MOST_NAMES else kept
    if isinstance(value, str) and len(value) > LONGEST:
        return value[: LONGEST - 1] + "…"
    return value


def spread(value: Any, width: int, indent: int = 0, before: int = 0) -> str:
    """JSON in lines of at most `width` where that is possible, what fits into one line in one."""
    line = json.dumps(value, ensure_ascii=False)
    if indent + before + len(line) < width or not isinstance(value, dict | list) or not value:
        return line
    inner = indent + 2
    if isinstance(value, dict):
        parts = [
            f"{json.dumps(name)}: {spread(part, width, inner, len(name) + 4)}"
            for name, part in value.items()
        ]
    else:
        parts = [spread(part, width, inner) for part in value]
    first, last = "{}" if isinstance(value, dict) else "[]"
    margin = "\n" + " " * inner
    return first + margin + f",{margin}".join(parts) + "\n" + " " * indent + last
