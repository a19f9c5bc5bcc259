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
    """The id of the request, by which operators find it in the logs of the service."""
    retry_after_ms: int | None = None
    """After how many milliseconds a retry may succeed."""
    retry_with: Mapping[str, str] | None = None
    """Fields to add when you repeat the call yourself, so that it finds out what became of the first try.

    The client adds them to its own retries.
    """
    fields: Mapping[str, Any]
    """The problem as the service sent it."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        """Args: fields: the problem details of the service, or fields of the same names."""
        super().__init__(fields["detail"])
        self.fields = dict(fields)
        for name, value in self.fields.items():
            setattr(self, snake(name), value)

    def __reduce__(self) -> tuple[type[HoldfastError], tuple[Mapping[str, Any]]]:
        """Lets frameworks such as Spark and Airflow pickle an error, to send it to another process."""
        return type(self), (self.fields,)


def snake(name: str) -> str:
    """Turns a name of the API into a Python name: `retryAfterMs` becomes `retry_after_ms`."""
    return re.sub(r"(?<=[a-z0-9])[A-Z]", lambda found: "_" + found[0], name).lower()


def error_of(fields: Mapping[str, Any]) -> HoldfastError:
    """Makes the error for a problem, of the class for its code."""
    from .contract import ERRORS  # here, because that module imports this one

    return ERRORS.get(fields["code"], HoldfastError)(fields)


def problem_of(body: object) -> HoldfastError | None:
    """The error for a problem that the service answered. None if the body is something else."""
    if not isinstance(body, dict) or not str(body.get("type")).startswith(_PREFIX):
        return None
    return error_of({"detail": "", **body}) if isinstance(body.get("code"), str) else None


def lease_lost(key: str, reason: str, holder: str | None = None) -> HoldfastError:
    """The error for a lease that was lost or released."""
    detail = f"the lease of {key} is no longer held: {reason}"
    return error_of({"code": "LeaseLost", "detail": detail, "key": key, "reason": reason, "holder": holder})


def unreachable(detail: str, status: int | None = None) -> HoldfastError:
    """The error for a call that the service did not answer. The call may have taken effect."""
    return error_of({"code": "Unreachable", "detail": detail, "status": status})


def refusal(status: int | None, detail: str) -> HoldfastError:
    """The error for an answer of a gateway or proxy in front of the service. After a 4xx, nothing has run."""
    if status is None or status >= 500:
        return unreachable(detail, status)
    return error_of({"code": "Throttled" if status == 429 else "Refused", "detail": detail, "status": status})


TRANSIENT = frozenset({"Throttled", "Unavailable", "OutcomeUnknown", "Unreachable", "QueueFull"})
"""The codes after which the same call may succeed."""


def is_transient(error: BaseException, request: Mapping[str, Any] | None = None) -> bool:
    """True if the same call may succeed later.

    QueueFull is final for a task or a callback, because it has ended them.
    """
    if not isinstance(error, HoldfastError) or error.code not in TRANSIENT:
        return False
    parks = request is not None and ("taskToken" in request or "callbackId" in request)
    return not (error.code == "QueueFull" and parks)


def is_unknown(error: BaseException) -> bool:
    """True if the call may have taken effect in spite of the error."""
    return isinstance(error, HoldfastError) and error.code in ("OutcomeUnknown", "Unreachable")


def is_held(error: BaseException) -> bool:
    """True if others hold the key, or if its rates do not allow a start in time."""
    return isinstance(error, HoldfastError) and error.code in ("LeaseHeld", "RateExceeded")
