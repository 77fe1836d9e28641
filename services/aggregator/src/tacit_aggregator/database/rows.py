"""The type of a row of any columns."""

from typing import Any

from sqlalchemy import Row

AnyRow = Row[*tuple[Any, ...]]
