"""How the arguments of a call become its request."""

from __future__ import annotations

from enum import Enum
from typing import Any


class Omitted(Enum):
    """The default of an argument for which None is a value: for example, None lifts a cap."""

    OMITTED = "omitted"

    def __repr__(self) -> str:
        return "OMITTED"


OMITTED = Omitted.OMITTED


def given(**fields: Any) -> dict[str, Any]:
    """The fields that the caller gave. None counts as not given."""
    return {name: value for name, value in fields.items() if value is not None and value is not OMITTED}


def sent(**fields: Any) -> dict[str, Any]:
    """The fields that the caller gave. None counts as a value."""
    return {name: value for name, value in fields.items() if value is not OMITTED}
