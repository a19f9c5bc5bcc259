"""Acquires a lease, a permit, or the run of a slot: one request, tried as often as its wait allows."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any, Literal, TypedDict

from .attempt import assert_seconds, backoff, insist
from .errors import HoldfastError, is_transient, is_unknown, lease_lost, unreachable
from .lease import RELEASE_SECONDS, Keeping, Kept, give_back
from .steps import Core, Send, Sleep, Steps, later
from .surroundings import Moment, moment, since

log = logging.getLogger("holdfast")

MAX_WAIT_SECONDS = 20
"""The longest wait inside one call of the service."""

MAX_SLEEP_SECONDS = 300
"""The longest sleep between two calls."""

ANSWER_SECONDS = 10.0
"""How long the service may take to answer on top of the wait."""

GONE = "the grant ended before the answer"


class Acquisition:
    """What an acquisition remembers from one try to the next."""

    def __init__(self, core: Core, request: Mapping[str, Any], keeping: Keeping, options: Mapping[str, Any]) -> None:
        """`request` has the fields of the call, and `options` has `wait`, `timeout` and `operation`."""
        self.core = core
        self.request = request
        self.keeping = keeping
        self.wait: float = options.get("wait", 0.0)
        self.timeout: float = options.get("timeout", 30.0)
        self.operation: str = options.get("operation", "acquire")
        assert_seconds(wait=self.wait, timeout=self.timeout)
        self.started_at = moment(core.by)
        # One for all tries, so that a retry finds the grant of a try whose answer was lost.
        self.request_id = core.by.uuid()
        self.retry_with: dict[str, str] = {}
        self.in_line = False
        # The last sleep: its length, how long after the answer the place is kept, and when the answer came. At first,
        # None.
        self.place: tuple[float, float, Moment] | None = None
        self.failures = 0
        # The last try whose answer was lost: when it was sent, and how many seconds the service may work on it.
        self.doubt: tuple[Moment, float] | None = None
        # The last try.
        self.last: Send | None = None
        # The grant, until the caller has a lease that it can release.
        self.kept: Kept | None = None

    @property
    def wait_left(self) -> float:
        """How many seconds of the wait are left."""
        return self.wait - since(self.core.by, self.started_at)

    def steps(self) -> Steps[Kept | Mapping[str, Any]]:
        """Sends the request until it is granted or answered, the wait is over, or another try cannot help."""
        by = self.core.by
        # The first request does not wait, so that the caller learns at once who holds the lease. Only a request that
        # waits may replace others.
        least = 1 if self.request.get("replace") and self.wait else 0
        wait_seconds = least
        try:
            while True:
                asked_at = moment(by)
                try:
                    return (yield from self._try(wait_seconds))
                except HoldfastError as error:
                    pause = self._pause_after(error, since(by, asked_at), wait_seconds)
                yield Sleep(pause)
                wait_seconds = max(least, int(min(MAX_WAIT_SECONDS, self.wait_left)))
        except GeneratorExit:
            raise
        except BaseException as error:
            # The place stays in line after this call. A grant to that place would keep all other callers waiting.
            is_stopped = not isinstance(error, HoldfastError)
            yield from self.give_up()
            if self.doubt or (is_stopped and self.in_line) or "ticket" in self.retry_with:
                yield from self._take_back(is_brief=self.doubt is not None)
            raise

    def _try(self, wait_seconds: int) -> Steps[Kept | Mapping[str, Any]]:
        by = self.core.by
        sent_at = moment(by)
        granted = yield from self._send(wait_seconds, sent_at)
        if self.operation == "onceBegin" and "leaseId" not in granted:
            self.doubt = None
            return granted
        kept = self.kept = Kept(self.core, granted, sent_at, self.keeping)
        self.doubt = None
        if kept.check() is None:
            event = {"type": "acquired", "key": kept.key, "fence": granted["fence"], "expiresAt": granted["expiresAt"]}
            self.core.emit({**event, "waitedMs": round(since(by, self.started_at) * 1000)})
            return kept
        yield from self.give_up()
        self._ask_anew(granted.get("slot"))
        lost = kept.lost or lease_lost(kept.key, "deadline")
        if self.request.get("replace") or (lost.fields["reason"] == "maxHold" and self.wait_left <= 0):
            raise lost
        raise unreachable(GONE)

    def _send(self, wait_seconds: int, sent_at: Moment) -> Steps[Mapping[str, Any]]:
        seconds = wait_seconds + ANSWER_SECONDS
        request = {**self.request, "requestId": self.request_id, **self.retry_with, "waitSeconds": wait_seconds}
        if wait_seconds > 0 and self.operation == "acquire" and self.request.get("fair") is not False:
            request["sleepMs"] = math.floor(max(0.0, min(MAX_SLEEP_SECONDS, self.wait_left)) * 1000)
        # Until the answer is read, the service may have granted the lease. An exception such as KeyboardInterrupt may
        # come at any moment.
        before, self.doubt = self.doubt, (sent_at, seconds)
        try:
            self.last = Send(self.operation, request, seconds)
            granted: Mapping[str, Any] = yield self.last
            if "leaseId" in granted or (self.operation == "onceBegin" and "outcome" in granted):
                return granted
            raise unreachable("the answer to acquire was no grant")
        except HoldfastError as error:
            if not is_unknown(error):
                self.doubt = before
            if error.code != "LeaseLost" or error.fields.get("reason") == "cancelled":
                raise
            # An earlier try got a grant, and an operator broke it before its answer was read. If the break waits for
            # the holder, the key stays held until this caller withdraws.
            yield from self._take_back(is_brief=False)
            # With a new id, this request would count as the newest one again.
            if self.request.get("replace"):
                raise
            self._ask_anew(self.retry_with.get("slot"))
            raise unreachable(GONE) from error

    def give_up(self) -> Steps[None]:
        """Releases the grant, if there is one."""
        kept, self.kept = self.kept, None
        if kept:
            yield from kept.release(self.keeping.release_timeout)

    def _ask_anew(self, slot: str | None) -> None:
        """Takes a new request id, because the service remembers the old id as released.

        The slot stays the same, even if its period is over by now.
        """
        self.request_id = self.core.by.uuid()
        self.retry_with = {} if slot is None else {"slot": slot}
        self.in_line = False
        self.place = None
        self.doubt = None

    def _pause_after(self, error: HoldfastError, took: float, wait_seconds: int) -> float:
        """Returns the seconds until the next try. Raises the error if another try cannot help or comes too late."""
        by = self.core.by
        left = self.wait_left
        self.retry_with.update(error.retry_with or {})
        if error.code != "LeaseHeld":
            again = backoff(by, self.failures, error)
            self.failures += 1
            pause = max(again, min(self._longer_sleep(), left)) if error.code == "Throttled" else again
            if not is_transient(error) or pause >= left + self.timeout:
                raise error
            return pause
        if left <= 0:
            raise error
        fields = error.fields
        if not self.in_line:
            log.info("waiting for %s: %s", self.request["key"], error.detail)
        self.in_line = True
        sleep: float = fields.get("comeBackMs", 0) / 1000
        kept: float = fields.get("keptMs", 0) / 1000
        place = fields.get("place")
        told = ("key", "holder", "holders", "expiresAt", "used", "limit", "cap", "place", "waiting")
        event = {name: fields[name] for name in told if name in fields}
        self.core.emit({"type": "waiting", "key": self.request["key"], **event, "since": _iso(self.started_at[0])})
        if sleep > 0 or (self.place and place):
            self.place = (sleep, kept, moment(by))
        if sleep > 0:
            self.failures = 0
            return min(sleep, left)
        # A deployment may cut waits short, or allow none. While the caller is away, the hand-off passes it over.
        is_early = took < (1 if place else wait_seconds) * 0.5
        self.failures = self.failures + 1 if is_early else 0
        # The service waits whole seconds only, so the rest is waited here. Otherwise the next try comes at once,
        # because a turn may pass between two tries.
        if left < 1:
            return left
        return backoff(by, self.failures) if self.failures else 0.0

    def _longer_sleep(self) -> float:
        """How long to sleep if the return was throttled: twice as long as the last sleep, then four and eight times.

        Otherwise sleepers would throttle each other again and again. Half of the time for which the place is kept is
        left for later tries.
        """
        if self.place is None:
            return 0.0
        sleep, kept, answered_at = self.place
        longer: float = sleep * 2.0 ** min(3, self.failures)
        return min(longer, (kept - since(self.core.by, answered_at)) / 2)

    def _take_back(self, is_brief: bool) -> Steps[None]:
        """Withdraws the request: ends its wait in line, or the grant that did not reach the caller."""
        timeout = self.keeping.release_timeout
        in_doubt, self.doubt = self.doubt, None
        left = in_doubt[1] - since(self.core.by, in_doubt[0]) if in_doubt else 0.0
        if self.operation == "onceBegin":
            if in_doubt:
                again = {**self.request, "requestId": self.request_id, **self.retry_with, "waitSeconds": 0}
                yield from take_back_run(self.core, again, timeout)
            return
        own = {"key": self.request["key"], "requestId": self.request_id, "holder": self.request["holder"]}
        # A try whose answer was lost may have a place of its own, which only a search of the whole line finds.
        if "ticket" in self.retry_with and not in_doubt:
            own["ticket"] = self.retry_with["ticket"]
        is_done = yield from withdraw(self.core, own, timeout / 2 if is_brief else timeout)
        if not is_done and in_doubt and self.last and self.last.answer and not self.last.answer.done():
            # The request may be slower than its withdrawal, as after a cold start.
            yield Sleep(min(left, timeout / 2), self.last.answer)
            is_done = yield from withdraw(self.core, own, timeout / 2)
        # The request itself may still arrive, so withdraw it again when that can no longer happen.
        if left > 0 and not is_done:
            later(self.core, left, withdraw(self.core, own, timeout))


def _iso(wall: float) -> str:
    return datetime.fromtimestamp(wall, timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def acquired(acquisition: Acquisition) -> Steps[Kept]:
    """The lease that an acquisition brings."""
    got = yield from acquisition.steps()
    assert isinstance(got, Kept)
    return got


def withdraw(core: Core, own: Mapping[str, Any], timeout: float) -> Steps[bool]:
    """Ends the wait for a lease, or a grant that did not reach the caller. Returns whether there was one to end."""
    try:
        return bool((yield from insist(core, "withdraw", own, timeout, timeout / 2)).get("cancelled"))
    except HoldfastError as error:
        core.emit({"type": "released", "key": own["key"], "confirmed": False, "error": error})
        return False


def take_back_run(core: Core, request: Mapping[str, Any], timeout: float) -> Steps[None]:
    """Ends a run whose grant was lost: repeats the request to receive the grant, and releases it."""
    try:
        answer = yield from insist(core, "onceBegin", request, timeout, timeout / 2)
        if "leaseId" in answer:
            yield from give_back(core, request["key"], answer["leaseId"], timeout)
    except HoldfastError as error:
        # Another caller works, or the grant has ended: there is no grant to end.
        if error.code not in ("LeaseHeld", "LeaseLost"):
            core.emit({"type": "released", "key": request["key"], "confirmed": False, "error": error})


class RateTerms(TypedDict, total=False):
    """A rate of a key: how many units may start in each period, and how many the work takes."""

    name: str
    """Tells the rates of a call apart. The default is `requests`."""
    limit: int
    """How many units may start in each period. Required."""
    per: str
    """The period, such as `1s`, `1m` or `1d`, at most 31 days. Required."""
    units: int
    """How many units the work takes; the default is 1."""
    burst: int
    """How many units may start at once after an idle time. The default is `units`, which spaces the starts evenly."""


class HoldOptions(TypedDict, total=False):
    """The options of a lease, and of a run. Times are in seconds."""

    ttl: int
    """How long the lease lasts without a heartbeat: 2 to 86,400; the default is 60."""
    wait: float
    """How long to wait while others hold the key. The default is 0; `float("inf")` waits without a limit."""
    timeout: float
    """How long to retry after transient failures, beyond `wait`. The default is 30."""
    holder: str
    """The name of the holder, which other callers see."""
    data: Any
    """Any JSON up to 4 KiB, which other callers see."""
    max_hold: float | Callable[[], float]
    """How long after the grant the lease counts as lost, even if heartbeats succeed.

    A function is called after the grant, and returns the seconds.
    """
    release_timeout: float
    """How long a release with its retries may take. The default is 5."""
    on_lost: Callable[[HoldfastError], object]
    """Called once with the LeaseLost error if the lease is lost: in another thread, or with asyncio in the loop.

    With asyncio, it may be an async function.
    """
    execution: str
    """The ARN of the Standard execution that will hold the lease. Its end frees the lease."""


class LeaseOptions(HoldOptions, total=False):
    """The options of a lease or a permit."""

    limit: int
    """Asks for a permit, which is granted if all permits, the new one included, weigh at most `limit`. 1 to 200."""
    weight: int
    """How much the permit weighs, at most `limit`. The default is 1."""
    mode: Literal["shared", "exclusive"]
    """Asks for a permit: `shared` with other holders up to the `limit`, or `exclusive`, which is alone."""
    fair: bool
    """True to wait in line (the default), False to race for the lease."""
    replace: Literal["waiting", "running"]
    """Latest wins: older requests of the key that said `replace`, and still wait, fail with Superseded.

    `running` also asks the holder to stop, if its own request said `running`.
    """
    target: str
    """The ARN of an execution that works under the lease. Needs `execution`."""
    grace_seconds: int
    """How long the lease stays after the execution has ended abnormally, up to 900. Needs `execution`."""
    rates: Sequence[RateTerms]
    """Up to four rates of the key. After the grant, the client waits for a start at these rates, within `wait`."""
    settle: bool
    """Whether you report the units that the work really took, by `lease.settle`. Needs `rates`."""


KEPT_HERE = frozenset({"wait", "timeout", "max_hold", "release_timeout", "on_lost", "rates", "settle", "ttl"})
"""The options that are not fields of the call, or have another name there."""


def acquisition(
    core: Core, key: str, holder: str, options: Mapping[str, Any], operation: str = "acquire"
) -> Acquisition:
    """The acquisition that the options describe. Raises ValueError for a time that is negative or not a number."""
    given = {name: value for name, value in options.items() if value is not None}
    ttl = given.get("ttl", 60)
    release_timeout = given.get("release_timeout", RELEASE_SECONDS)
    assert_seconds(release_timeout=release_timeout)
    if not isinstance(key, str):
        raise TypeError(f"key must be a string, not {type(key).__name__}")
    try:
        json.dumps(given.get("data"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise TypeError(f"data must be JSON: {error}") from None
    if not callable(given.get("on_lost", assert_seconds)):
        raise TypeError("on_lost must be a function")
    if not callable(given.get("max_hold", assert_seconds)):
        assert_seconds(max_hold=given["max_hold"])
    keeping = Keeping(ttl, given.get("max_hold"), release_timeout, given.get("on_lost"))
    fields = {name: value for name, value in given.items() if name not in KEPT_HERE}
    if "grace_seconds" in fields:
        fields["graceSeconds"] = fields.pop("grace_seconds")
    request = {"holder": holder, **fields, "key": key}
    if "ttl" in given:
        request["ttlSeconds"] = ttl
    limits: dict[str, Any] = {name: value for name, value in given.items() if name in ("wait", "timeout")}
    return Acquisition(core, request, keeping, {**limits, "operation": operation})
