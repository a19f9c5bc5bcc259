"""Runs work once for a slot: acquires its run, and stores the result when the work is done."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from .acquire import Acquisition, HoldOptions, acquisition
from .attempt import attempt, retry
from .errors import HoldfastError, error_of, is_transient, lease_lost
from .lease import LeaseState
from .steps import Core, Steps

T = TypeVar("T")

MAX_BYTES = 4096
"""The most bytes of JSON that a slot keeps."""


class OnceOptions(HoldOptions, total=False):
    """The options of `once`."""

    per: str
    """Runs the work once in each period, such as `15m`, `1h`, `1d` or `1w`, by the clock of the service."""
    zone: str
    """The time zone in which days and weeks begin, as an IANA name such as `Europe/Berlin`. The default is UTC."""
    slot: str
    """A name of your own for the run, in place of `per`, such as the day of a job that catches up.

    Slots compare as text: when a later slot is done, an earlier slot is `superseded`.
    """
    keep: int
    """How long others receive the result, in seconds.

    The default is a day, or two periods of `per` if those are longer.
    """
    input_hash: str
    """A hash of the input of the work. You want it if one key must not be used for two inputs.

    If the slot is done with another hash, the call fails with Conflict instead of returning the wrong result.
    """


@dataclass(frozen=True)
class OnceAnswer(Generic[T]):
    """What became of a slot."""

    outcome: Literal["ran", "done", "superseded"]
    """`ran` by this call, `done` by an earlier run, or `superseded`, because a later slot is done."""
    slot: str
    result: T | None
    """What the work returned. After `done`, its JSON read back, or None if it was not stored."""
    by: str | None
    fence: int | None
    at: str | None = None
    """When an earlier run was done. ISO 8601."""
    stored: bool | None = None
    """False if the slot is done without a result, because the result is not JSON, or more than 4 KiB of it."""
    done_slot: str | None = None
    """The later slot, if the outcome is `superseded`."""


def acquisition_of_run(core: Core, key: str, holder: str, options: Mapping[str, Any]) -> Acquisition:
    """Makes the acquisition of a run."""
    named = {"keep": "keepSeconds", "input_hash": "inputHash"}
    fields = {named.get(name, name): value for name, value in options.items()}
    return acquisition(core, key, holder, fields, "onceBegin")


def answer_of(answer: Mapping[str, Any]) -> OnceAnswer[Any]:
    """The answer for a slot that is done or superseded."""
    return OnceAnswer(
        outcome=answer["outcome"],
        slot=answer["slot"],
        result=answer.get("result"),
        by=answer["doneBy"],
        fence=answer["fence"],
        at=answer["doneAt"],
        done_slot=answer.get("doneSlot"),
    )


def complete(kept: LeaseState, result: T, timeout: float) -> Steps[OnceAnswer[T]]:
    """Stores the result, and ends the run.

    The call is sent even if the run has expired by the clocks of this process, because the service accepts a result
    until another caller takes the slot. Raises LeaseLost if the run was lost and the result is not stored, and
    OutcomeUnknown if the slot may or may not be done.
    """
    granted = kept.granted
    kept.end()
    yield from kept.await_heartbeat(kept.local.release_timeout / 2)
    if kept.gone or not kept.is_of_this_process:
        raise kept.lost or lease_lost(kept.key, "forked")
    failure: HoldfastError | None = None
    answer: Mapping[str, Any] = {}
    try:
        answer = yield from _store(kept, {"key": kept.key, "leaseId": granted["leaseId"], **_storable(result)}, timeout)
        if answer.get("reason") == "unknown":
            failure = _undecided(kept)
    except HoldfastError as error:
        failure = _undecided(kept, error) if is_transient(error) else error
    confirmed = answer.get("completed") is True
    kept.core.emit({"type": "released", "key": kept.key, "confirmed": confirmed, "error": failure})
    if failure:
        raise failure
    if not confirmed:
        raise lease_lost(kept.key, answer.get("reason", "released"))
    return OnceAnswer("ran", granted["slot"], result, granted["holder"], granted["fence"], stored=answer["hasResult"])


def _storable(result: object) -> dict[str, object]:
    """The result as a field of the call. Empty if the result cannot be stored: the slot is then done without one."""
    try:
        text = json.dumps(result, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError):
        return {}  # not JSON, but the work is done all the same
    return {"result": result} if len(text.encode(errors="replace")) <= MAX_BYTES else {}


def _undecided(kept: LeaseState, cause: HoldfastError | None = None) -> HoldfastError:
    slot = kept.granted["slot"]
    detail = f"the work has run, and slot {slot} of {kept.key} may or may not be done{f': {cause}' if cause else ''}"
    error = error_of({"code": "OutcomeUnknown", "detail": detail, "key": kept.key})
    error.__cause__ = cause
    return error


def _store(kept: LeaseState, sent: Mapping[str, Any], timeout: float) -> Steps[Mapping[str, Any]]:
    """Completes the slot, without the result if the service refuses the result."""
    tries = 0

    def act(_: Mapping[str, str]) -> Steps[Mapping[str, Any]]:
        nonlocal tries
        tries += 1
        return attempt("onceComplete", sent, timeout / 2)

    try:
        answer = yield from retry(kept.core.surroundings, timeout, act)
    except HoldfastError as error:
        if "result" not in sent or error.code != "InvalidRequest":
            raise
        bare = {name: value for name, value in sent.items() if name != "result"}
        return (yield from _store(kept, bare, timeout))
    # An earlier try may have stored the result before another caller began the next slot.
    is_in_doubt = tries > 1 and not answer["completed"] and answer.get("reason") == "taken"
    return {**answer, "hasResult": "result" in sent, **({"reason": "unknown"} if is_in_doubt else {})}
