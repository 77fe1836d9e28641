"""Messages as they arrive: bytes of JSON, checked whole before anyone looks at a field."""

from typing import TypeVar

from pydantic import BaseModel, ValidationError

from tacit.protocol import FieldError, Problems, versions, wire
from tacit_aggregator.errors import Refusal

Model = TypeVar("Model", bound=BaseModel)


def read_model(kind: type[Model], body: bytes) -> Model:
    """The message in the body; what is wrong is named by field, never by value."""
    try:
        message = kind.model_validate_json(body)
    except ValidationError as error:
        _check_version(error)
        raise _invalid(error) from None
    if body.count(b'"') != _quotes(message):
        raise Refusal(Problems.INVALID_REQUEST, "A field stands in the body twice.")
    return message


def _check_version(error: ValidationError) -> None:
    """Of a version that is not spoken here nothing else is judged: it may be right there."""
    for detail in error.errors(include_url=False, include_context=False):
        if detail["loc"] == ("version",):
            versions.check_version(detail["input"])


def _quotes(message: BaseModel) -> int:
    """How many quotation marks a body has that holds each field of the message once.

    No string of a message that is read here may hold one itself. Another parser that looks for
    fields given twice takes several times as long as reading the message.
    """
    total = 0
    for name in message.model_fields_set:
        value = getattr(message, name)
        total += 2 + (2 if isinstance(value, str) else 0)
        total += _quotes(value) if isinstance(value, BaseModel) else 0
    return total


def _invalid(error: ValidationError) -> Refusal:
    return Refusal(
        Problems.INVALID_REQUEST,
        errors=tuple(
            FieldError(field=field, message=message) for field, message in wire.field_errors(error)
        ),
    )
