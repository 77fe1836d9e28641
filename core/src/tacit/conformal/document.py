"""Results that are saved to JSON and loaded from it."""

import dataclasses
import json
import math
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar, Self, get_type_hints

from tacit.errors import InvalidDocument, TacitError
from tacit.scores import Score, score_from_dict


class Document:
    """One JSON object per frozen dataclass; numbers survive the round trip bit for bit."""

    kind: ClassVar[str]

    def _to_fields(self) -> dict[str, Any]:
        """The fields as JSON values."""
        values = {name: getattr(self, name) for name in _names(type(self))}
        return {
            name: value.to_dict() if isinstance(value, Score) else value
            for name, value in values.items()
        }

    @classmethod
    def _from_fields(cls, fields: "Fields") -> Self:
        """The result that `_to_fields` described, each field of the type it is declared with."""
        types = get_type_hints(cls)
        return cls(**{name: fields.read(name, types[name]) for name in _names(cls)})

    def to_json(self) -> str:
        """The result as one JSON object."""
        document = {"tacit": self.kind, **self._to_fields()}
        return json.dumps(document, ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read what `to_json` wrote; anything else is an `InvalidDocument`."""
        try:
            document = json.loads(text, object_pairs_hook=_without_repetition)
        except InvalidDocument:
            raise
        except (ValueError, RecursionError) as error:
            raise InvalidDocument("This is not JSON.") from error
        if not isinstance(document, dict) or document.pop("tacit", None) != cls.kind:
            raise InvalidDocument(f"This is not a saved {cls.kind}.")
        fields = Fields(document)
        try:
            result = cls._from_fields(fields)
        except InvalidDocument:
            raise
        except (TacitError, OverflowError) as error:
            raise InvalidDocument(
                f"A field of this {cls.kind} has a wrong value: {error}"
            ) from error
        fields.must_all_be_read()
        return result

    def save(self, path: str | Path) -> None:
        """Write the result to a file."""
        Path(path).write_text(self.to_json() + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a file that `save` wrote."""
        return cls.from_json(Path(path).read_bytes())


def _names(kind: type) -> list[str]:
    return [field.name for field in dataclasses.fields(kind)]


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object; a name that occurs twice could be read in two ways."""
    document = dict(pairs)
    if len(document) < len(pairs):
        raise InvalidDocument("A field occurs twice.")
    return document


class Fields:
    """The fields of a loaded document, read once each with the type they must have."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._unread = dict(document)

    def read(self, name: str, kind: Any) -> Any:
        """A value of the given type, one of those that results are made of."""
        if kind is Score:
            return score_from_dict(self.mapping(name))
        if isinstance(kind, type) and issubclass(kind, StrEnum):
            return self._choice(name, kind)
        readers: dict[Any, Callable[[str], Any]] = {
            float: self.number,
            float | None: self.number_or_none,
            int: self.integer,
            str: self.text,
            tuple[str, ...]: self.texts,
        }
        return readers[kind](name)

    def number(self, name: str) -> float:
        """A finite number."""
        value = self._take(name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InvalidDocument(f"{name} must be a number.")
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise InvalidDocument(f"{name} must be finite.")
        return number

    def number_or_none(self, name: str) -> float | None:
        """A finite number, or null."""
        return self.number(name) if self._unread.get(name, 0) is not None else self._take(name)

    def integer(self, name: str) -> int:
        """A non-negative integer."""
        value = self._take(name)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise InvalidDocument(f"{name} must be a non-negative integer.")
        return value

    def text(self, name: str) -> str:
        """A string."""
        value = self._take(name)
        if not isinstance(value, str):
            raise InvalidDocument(f"{name} must be a string.")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of strings."""
        value = self._take(name)
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise InvalidDocument(f"{name} must be a list of strings.")
        return tuple(value)

    def mapping(self, name: str) -> dict[str, Any]:
        """A JSON object."""
        value = self._take(name)
        if not isinstance(value, dict):
            raise InvalidDocument(f"{name} must be an object.")
        return value

    def must_all_be_read(self) -> None:
        """Refuse fields that no reader asked for."""
        if self._unread:
            raise InvalidDocument(f"Unknown fields: {', '.join(sorted(self._unread))}.")

    def _choice(self, name: str, kind: type[StrEnum]) -> StrEnum:
        value = self.text(name)
        if value not in list(kind):
            raise InvalidDocument(f"{name} must be one of: {', '.join(kind)}.")
        return kind(value)

    def _take(self, name: str) -> Any:
        try:
            return self._unread.pop(name)
        except KeyError:
            raise InvalidDocument(f"The field {name} is missing.") from None
