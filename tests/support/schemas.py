"""What the schemas of an OpenAPI document allow."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from pydantic import StringConstraints, TypeAdapter, ValidationError

Json = dict[str, Any]
Place = tuple[str | int, ...]


def name_of(place: Place) -> str:
    """A place as it is written: every item of a list is [] ."""
    parts = ("[]" if isinstance(part, int) else f".{part}" for part in place)
    return "".join(parts).removeprefix(".")


@dataclass(frozen=True)
class Schemas:
    """The schemas of an OpenAPI document."""

    components: Json

    def resolve(self, schema: Json) -> Json:
        """The schema that a reference is to."""
        while "$ref" in schema:
            schema = self.components[schema["$ref"].rpartition("/")[2]]
        return schema

    def branches(self, schema: Json) -> list[Json]:
        """The alternatives of a schema; itself if it has none."""
        schema = self.resolve(schema)
        chosen = schema.get("anyOf") or schema.get("oneOf") or [schema]
        return [self.resolve(branch) for branch in chosen]

    def fields(self, schema: Json, before: str = "") -> Iterator[str]:
        """Every field there is, at any depth, by name."""
        for branch in self.branches(schema):
            for name, part in branch.get("properties", {}).items():
                yield f"{before}{name}"
                yield from self.fields(part, f"{before}{name}.")
            if "items" in branch:
                yield f"{before.removesuffix('.')}[]"
                yield from self.fields(branch["items"], f"{before.removesuffix('.')}[].")

    def places(self, schema: Json, value: Any, place: Place = ()) -> Iterator[tuple[Place, Json]]:
        """Every place in a value, with the schema of what stands there."""
        yield place, schema
        branch = next(each for each in self.branches(schema) if self.allows(each, value))
        if isinstance(value, dict):
            for name, part in branch.get("properties", {}).items():
                if name in value:
                    yield from self.places(part, value[name], (*place, name))
        if isinstance(value, list) and value:
            yield from self.places(branch["items"], value[0], (*place, 0))

    def allows(self, schema: Json, value: Any) -> bool:
        """Whether the schema allows a value."""
        branches = self.branches(schema)
        if len(branches) > 1:
            return any(self.allows(branch, value) for branch in branches)
        (branch,) = branches
        if "const" in branch and (type(value), value) != (str, branch["const"]):
            return False
        if "enum" in branch and not (isinstance(value, str) and value in branch["enum"]):
            return False
        return self._is_of_type(branch, value)

    def _is_of_type(self, schema: Json, value: Any) -> bool:
        match schema["type"]:
            case "string":
                found = _is_string(schema, value)
            case "number":
                found = _is_number(schema, value)
            case "integer":
                found = isinstance(value, int) and _is_number(schema, value)
            case "array":
                found = self._is_array(schema, value)
            case "object":
                found = self._is_object(schema, value)
            case other:
                assert other == "null", f"a type that is not known here: {other}"
                found = value is None
        return found

    def _is_array(self, schema: Json, value: Any) -> bool:
        if not isinstance(value, list):
            return False
        fits = schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", math.inf)
        return fits and all(self.allows(schema["items"], item) for item in value)

    def _is_object(self, schema: Json, value: Any) -> bool:
        if not isinstance(value, dict) or not set(schema.get("required", ())) <= set(value):
            return False
        known = schema.get("properties", {})
        if not schema.get("additionalProperties", True) and not set(value) <= set(known):
            return False
        return all(self.allows(known[name], part) for name, part in value.items() if name in known)


def _is_string(schema: Json, value: Any) -> bool:
    if not isinstance(value, str):
        return False
    if schema.get("format") == "date-time":
        return _is_moment(value)
    return "pattern" not in schema or _matches(schema["pattern"], value)


def _is_number(schema: Json, value: Any) -> bool:
    if not isinstance(value, int | float) or isinstance(value, bool) or not _is_finite(value):
        return False
    least, most = schema.get("minimum", -math.inf), schema.get("maximum", math.inf)
    return bool(least <= value <= most and value < schema.get("exclusiveMaximum", math.inf))


def _is_finite(value: int | float) -> bool:
    return isinstance(value, int) or math.isfinite(value)


def _matches(pattern: str, value: str) -> bool:
    # The patterns are of the dialect that pydantic reads.
    try:
        TypeAdapter(Annotated[str, StringConstraints(pattern=pattern)]).validate_python(value)
    except (ValidationError, UnicodeEncodeError):
        return False
    return True


def _is_moment(value: str) -> bool:
    try:
        return datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False
