"""The base of all errors. The subclass of each code is in `contract.py`, which is generated from the contract."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_PREFIX = "urn:holdfast:error:"


class HoldfastError(Exception):
    """A call that failed. Branch on the class, or on `code`.

    Every field of the problem is an attribute too, in snake_case: `error.retry_after_ms`.

    Example:
        >>> try:
        ...     lease = client.acquire("nightly")
        ... except holdfast.LeaseHeld as error:
        ...     print("held by", error.holder)
    """

    code: str
    """The code of the error, such as `LeaseHeld`."""
    detail: str
    """The message, for people."""
    status: int | None = None
    """The HTTP status. None if there was no answer."""
    trace_id: str | None = None
    """The id of the request, to look up in the logs of the service."""
    retry_after_ms: int | None = None
    """After how many milliseconds a retry may succeed."""
    retry_with: Mapping[str, str] | None = None
    """Fields with which the same call learns its outcome. The client adds them to its own retries."""
    fields: Mapping[str, Any]
    """The problem as the service sent it."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        """Args: fields: the problem details of the service, or fields of the same names."""
        super().__init__(fields["detail"])
        self.fields = dict(fields)
        for name, value in self.fields.items():
            setattr(self, snake(name), value)

    def __reduce__(self) -> tuple[type[HoldfastError], tuple[Mapping[str, Any]]]:
        """Spark, Airflow and other frameworks pickle an error to send it to another process."""
        return type(self), (self.fields,)


def snake(name: str) -> str:
    """A name of the API as Python writes it: `retryAfterMs` is `retry_after_ms`."""
    return re.sub(r"(?<=[a-z0-9])[A-Z]", lambda found: "_" + found[0], name).lower()


def error_of(fields: Mapping[str, Any]) -> HoldfastError:
    """The error for a problem, in the class for its code."""
    from .contract import ERRORS  # which imports this module

    return ERRORS.get(fields["code"], HoldfastError)(fields)


def problem_of(body: object) -> HoldfastError | None:
    """The error for a problem of the service. None if the body is something else."""
    if not isinstance(body, dict) or not str(body.get("type")).startswith(_PREFIX):
        return None
    return error_of({"detail": "", **body}) if isinstance(body.get("code"), str) else None


def lease_lost(key: str, reason: str, holder: str | None = None) -> HoldfastError:
    """The error of a lease that is lost or released."""
    detail = f"the lease of {key} is no longer held: {reason}"
    return error_of({"code": "LeaseLost", "detail": detail, "key": key, "reason": reason, "holder": holder})


def unreachable(detail: str, status: int | None = None) -> HoldfastError:
    """The error of a call that the service did not answer. A write may have landed."""
    return error_of({"code": "Unreachable", "detail": detail, "status": status})


def refusal(status: int | None, detail: str) -> HoldfastError:
    """The error for an answer of a gateway or proxy in front of the service. After a 4xx, nothing has run."""
    if status is None or status >= 500:
        return unreachable(detail, status)
    return error_of({"code": "Throttled" if status == 429 else "Refused", "detail": detail, "status": status})


TRANSIENT = frozenset({"Throttled", "Unavailable", "OutcomeUnknown", "Unreachable", "QueueFull"})
"""The codes after which the same call may succeed."""


def is_transient(error: BaseException, request: Mapping[str, Any] | None = None) -> bool:
    """True if the same call may succeed later. QueueFull ends a task or a callback for good, so there it is not."""
    if not isinstance(error, HoldfastError) or error.code not in TRANSIENT:
        return False
    parks = request is not None and ("taskToken" in request or "callbackId" in request)
    return not (error.code == "QueueFull" and parks)


def is_unknown(error: BaseException) -> bool:
    """True if a write may have landed in spite of the error."""
    return isinstance(error, HoldfastError) and error.code in ("OutcomeUnknown", "Unreachable")


def is_held(error: BaseException) -> bool:
    """True if other holders have the key, or if its rates do not allow a start in time."""
    return isinstance(error, HoldfastError) and error.code in ("LeaseHeld", "RateExceeded")
