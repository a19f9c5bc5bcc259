"""Sends a call, and sends it again after transient failures."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from .errors import HoldfastError, is_transient
from .steps import Core, Send, Sleep, Steps
from .surroundings import Surroundings, moment, since

T = TypeVar("T")

TRY_SECONDS = 10.0
"""How long one try may take, on top of its wait inside the service."""

SLOW = frozenset({"commit", "resetFence", "report", "clean"})
"""The calls that may need all of the 30 seconds after which API Gateway ends a request."""

ID_OF = {
    "onceBegin": "requestId",
    "rateReserve": "requestId",
    "publish": "requestId",
    "repairNames": "requestId",
    "commit": "commitId",
    "resetFence": "commitId",
}
"""The field that names a call, so that a retry after a lost answer finds what an earlier try has done."""


def attempt(operation: str, request: Mapping[str, Any], seconds: float | None = None) -> Steps[Any]:
    """One try of a call."""
    return (
        yield Send(operation, request, (35.0 if operation in SLOW else TRY_SECONDS) if seconds is None else seconds)
    )


def backoff(surroundings: Surroundings, failures: int, error: BaseException | None = None) -> float:
    """Returns how many seconds to pause after a number of failures: as long as the service asks for, and a random time.

    The random time keeps clients from returning together. It is at most four seconds, because the service keeps a
    position in line for five.
    """
    retry_after_ms = error.retry_after_ms if isinstance(error, HoldfastError) else None
    return (retry_after_ms or 0) / 1000 + surroundings.random() * min(4.0, 0.1 * 2.0 ** min(failures, 10))


def retry(
    surroundings: Surroundings,
    timeout: float,
    act: Callable[[Mapping[str, str]], Steps[T]],
    may_retry: Callable[[HoldfastError], bool] = is_transient,
) -> Steps[T]:
    """Repeats `act` until it succeeds, fails permanently, or the time has run out.

    Args:
        act: receives the fields that the service wants in a retry, so that the retry finds out what became of the try
            before.
    """
    started_at = moment(surroundings)
    retry_with: dict[str, str] = {}
    failures = 0
    while True:
        try:
            return (yield from act(retry_with))
        except HoldfastError as error:
            pause = backoff(surroundings, failures, error)
            if not may_retry(error) or since(surroundings, started_at) + pause >= timeout:
                raise
            retry_with = {**retry_with, **(error.retry_with or {})}
        failures += 1
        yield Sleep(pause)


def call(
    core: Core, operation: str, request: Mapping[str, Any], timeout: float = 30.0, seconds: float | None = None
) -> Steps[Any]:
    """Sends a call until it succeeds, fails permanently, or the time has run out. All tries have the same id."""
    name = ID_OF.get(operation)
    named = {name: core.surroundings.uuid(), **request} if name else request
    return retry(
        core.surroundings,
        timeout,
        lambda retry_with: attempt(operation, {**named, **retry_with}, seconds),
        # A report whose answer was lost may still run, and the service would refuse a second report.
        lambda error: is_transient(error, request) and not (operation == "report" and error.code == "Unreachable"),
    )


def assert_seconds(**times: float | None) -> None:
    """Raises ValueError for a time that is negative or not a number."""
    for name, value in times.items():
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, (int, float)) or math.isnan(value) or value < 0:
            raise ValueError(f"{name} must be a number of seconds from 0, not {value!r}")
