"""How the arguments of a call become its request."""

from __future__ import annotations

from enum import Enum
from typing import Any


class Omitted(Enum):
    """The default of an argument whose None has a meaning of its own, such as to lift a cap."""

    OMITTED = "omitted"

    def __repr__(self) -> str:
        return "OMITTED"


OMITTED = Omitted.OMITTED


def given(**fields: Any) -> dict[str, Any]:
    """The fields that were given: None stands for a field that was not."""
    return {name: value for name, value in fields.items() if value is not None and value is not OMITTED}


def sent(**fields: Any) -> dict[str, Any]:
    """The fields that were given, where None is a value too."""
    return {name: value for name, value in fields.items() if value is not OMITTED}
