"""What all models on the wire share: strict types, no unknown fields, no values in errors."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar, Self, TypeVar

import rfc8785
from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    StringConstraints,
    ValidationError,
)
from pydantic_core import ErrorDetails, from_json

from tacit.errors import InvalidDocument
from tacit.protocol.digests import sha256_hex
from tacit.protocol.versions import check_version

EXACT = 2**53 - 1
"""Integers up to here are the same number to every reader of JSON."""

_MOST_ERRORS = 20
_MOST_CHARACTERS = 200


def _whole_second_in_utc(moment: AwareDatetime) -> AwareDatetime:
    offset = moment.utcoffset()
    if moment.microsecond or offset is None or offset.total_seconds() != 0:
        raise ValueError("a date must be in UTC and a whole second, like 2026-03-01T12:00:00Z")
    return moment


def _rfc3339(moment: AwareDatetime) -> str:
    return moment.replace(tzinfo=None).isoformat() + "Z"


def _of_exact_values(value: Any) -> Any:
    """The value, if every reader of JSON reads it as the same, also one that has only doubles."""
    if isinstance(value, dict):
        _of_exact_values(list(value.values()))
    elif isinstance(value, list):
        for part in value:
            _of_exact_values(part)
    elif isinstance(value, int | float) and not -EXACT <= value <= EXACT:
        raise ValueError("numbers must lie from -(2^53 - 1) to 2^53 - 1")
    elif not isinstance(value, str | int | float | None):
        raise ValueError("only objects, lists, strings, numbers, true, false and null")
    return value


Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
"""SHA-256 in lowercase hexadecimal."""

Identifier = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]
"""128 random bits in lowercase hexadecimal."""

_UNSEEN = r"\p{Cc}\p{Cf}\p{Co}\p{Zl}\p{Zp}"

Name = Annotated[
    str,
    StringConstraints(pattern=rf"^[^\s{_UNSEEN}]([^{_UNSEEN}]{{0,98}}[^\s{_UNSEEN}])?$"),
]
"""1 to 100 characters in one line, none of them invisible, no space at either end."""

Moment = Annotated[
    AwareDatetime, AfterValidator(_whole_second_in_utc), PlainSerializer(_rfc3339, when_used="json")
]
"""A whole second in UTC, as RFC 3339 writes it with a Z."""

Number = Annotated[float, Field(ge=-EXACT, le=EXACT)]
"""A number that documents may hold."""

JsonObject = Annotated[dict[str, Any], AfterValidator(_of_exact_values)]
"""An object whose fields another part of Tacit knows."""


class Wire(BaseModel):
    """A message or a part of one."""

    # An error of pydantic shows the value it refuses; a message's value may be somebody's data.
    model_config = ConfigDict(
        strict=True,
        extra="forbid",
        frozen=True,
        allow_inf_nan=False,
        hide_input_in_errors=True,
    )


Form = TypeVar("Form", bound=Wire)


class SignedDocument(Wire):
    """A document that is digested and signed: its bytes are canonical JSON (RFC 8785)."""

    kind: ClassVar[str]

    def to_bytes(self) -> bytes:
        """The canonical bytes, over which digest and signature are made."""
        try:
            return rfc8785.dumps(self.model_dump(mode="json"))
        except ValueError as error:  # text that is no Unicode, in a document that was made here
            raise InvalidDocument(f"This {self.kind} cannot be written as JSON.") from error

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical bytes."""
        return sha256_hex(self.to_bytes())

    @classmethod
    def form_of(cls, fields: Mapping[str, Any]) -> type[Self]:  # noqa: ARG003 -- some kinds have forms
        """The class that reads a document of these fields, where its kind has several."""
        return cls

    @classmethod
    def from_bytes(cls, payload: bytes) -> Self:
        """Read canonical bytes; anything else, also another spelling of the same, is refused."""
        fields = parsed(payload)
        if fields.get("tacit") != cls.kind:
            raise InvalidDocument(f"This is not a {cls.kind}.")
        check_version(fields.get("version"))
        try:
            document = cls.form_of(fields).model_validate_json(payload)
        except ValidationError as error:
            raise InvalidDocument(f"This is not a valid {cls.kind}: {described(error)}") from None
        if document.to_bytes() != payload:
            raise InvalidDocument(f"The bytes of this {cls.kind} are not canonical JSON.")
        return document


def chosen_form(
    forms: Iterable[type[Form]], fields: Mapping[str, Any], field: str, kind: str
) -> type[Form]:
    """The form whose `field` has the value that the document's has."""
    for form in forms:
        if form.model_fields[field].default == fields.get(field):
            return form
    raise InvalidDocument(f"This is not a valid {kind}: {field}: is none of those known here.")


def parsed(payload: bytes) -> Mapping[str, Any]:
    """The JSON object that `payload` is."""
    try:
        fields = from_json(payload, allow_inf_nan=False)
    except ValueError as error:
        raise InvalidDocument("This is not JSON.") from error
    if not isinstance(fields, dict):
        raise InvalidDocument("This is not a JSON object.")
    return fields


def field_errors(error: ValidationError) -> tuple[tuple[str, str], ...]:
    """Where and what is wrong, never the value that is; the first ones, if there are many."""
    details = error.errors(include_url=False, include_input=False)[:_MOST_ERRORS]
    return tuple((_place(detail), _message(detail)) for detail in details)


def _place(detail: ErrorDetails) -> str:
    parts = [_short(str(part)) for part in detail["loc"]]
    if detail["type"] == "extra_forbidden":  # its name is whatever somebody sent
        parts[-1:] = ["(unknown)"]
    return _short(".".join(parts)) or "body"


def _message(detail: ErrorDetails) -> str:
    if detail["type"] == "union_tag_invalid":  # pydantic would repeat the value
        return f"Input should be one of: {detail['ctx']['expected_tags']}"
    if detail["type"] == "value_error":
        return _short(str(detail["ctx"]["error"]).removesuffix("."))
    return _short(detail["msg"])


def _short(text: str) -> str:
    return text if len(text) <= _MOST_CHARACTERS else text[: _MOST_CHARACTERS - 1] + "…"


def described(error: ValidationError) -> str:
    """All that is wrong, in one sentence."""
    return "; ".join(f"{field}: {message}" for field, message in field_errors(error)) + "."
