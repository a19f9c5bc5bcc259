"""Acquires a lease, a permit or the run of a slot: repeats one request for as long as its wait allows."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any, Literal, TypedDict

from .attempt import assert_seconds, backoff, call
from .errors import HoldfastError, is_transient, is_unknown, lease_lost, unreachable
from .lease import RELEASE_SECONDS, LeaseState, LocalOptions, try_release
from .steps import Core, Send, Sleep, Steps, later
from .surroundings import Moment, moment, since

log = logging.getLogger("holdfast")

MAX_WAIT_SECONDS = 20
"""The longest wait inside one call of the service."""

MAX_SLEEP_SECONDS = 300
"""The longest sleep between two calls."""

MAX_ANSWER_SECONDS = 10.0
"""How long the service may take to answer, on top of the wait inside the call."""

GRANT_GONE = "the grant ended before the answer"


class Acquisition:
    """What an acquisition remembers from one try to the next."""

    def __init__(self, core: Core, request: Mapping[str, Any], local: LocalOptions, options: Mapping[str, Any]) -> None:
        """`request` has the fields of the call, and `options` has `wait`, `timeout` and `operation`."""
        self.core = core
        self.request = request
        self.local = local
        self.wait: float = options.get("wait", 0.0)
        self.timeout: float = options.get("timeout", 30.0)
        self.operation: str = options.get("operation", "acquire")
        assert_seconds(wait=self.wait, timeout=self.timeout)
        self.started_at = moment(core.surroundings)
        # All tries have the same id, so that a retry finds the grant of a try whose answer was lost.
        self.request_id = core.surroundings.uuid()
        self.retry_with: dict[str, str] = {}
        self.in_line = False
        # The last sleep: its length, how long after the answer the place is kept, and when the answer came. None if
        # this caller has never slept.
        self.place: tuple[float, float, Moment] | None = None
        self.failures = 0
        # The last try whose answer was lost: when it was sent, and how many seconds the service may work on it.
        self.doubt: tuple[Moment, float] | None = None
        # The last try that was sent.
        self.last: Send | None = None
        # The grant, until the caller has a lease that it can release.
        self.kept: LeaseState | None = None

    @property
    def wait_left(self) -> float:
        """How many seconds of the wait are left."""
        return self.wait - since(self.core.surroundings, self.started_at)

    def steps(self) -> Steps[LeaseState | Mapping[str, Any]]:
        """Sends the request until it is granted or answered, the wait is over, or another try cannot help."""
        surroundings = self.core.surroundings
        # The first try does not wait, so that the caller sees at once who holds the lease. But only a request that
        # waits may replace others.
        min_wait_seconds = 1 if self.request.get("replace") and self.wait else 0
        wait_seconds = min_wait_seconds
        try:
            while True:
                tried_at = moment(surroundings)
                try:
                    return (yield from self._try(wait_seconds))
                except HoldfastError as error:
                    pause = self._pause_after(error, since(surroundings, tried_at), wait_seconds)
                yield Sleep(pause)
                wait_seconds = max(min_wait_seconds, int(min(MAX_WAIT_SECONDS, self.wait_left)))
        except GeneratorExit:
            raise
        except BaseException as error:
            # The place in line outlives this call. If it were granted now, no caller would use the grant.
            is_stopped = not isinstance(error, HoldfastError)
            yield from self.give_up()
            if self.doubt or (is_stopped and self.in_line) or "ticket" in self.retry_with:
                yield from self._withdraw(is_brief=self.doubt is not None)
            raise

    def _try(self, wait_seconds: int) -> Steps[LeaseState | Mapping[str, Any]]:
        surroundings = self.core.surroundings
        sent_at = moment(surroundings)
        granted = yield from self._send(wait_seconds, sent_at)
        if self.operation == "onceBegin" and "leaseId" not in granted:
            self.doubt = None
            return granted
        kept = self.kept = LeaseState(self.core, granted, sent_at, self.local)
        self.doubt = None
        if kept.check() is None:
            event = {"type": "acquired", "key": kept.key, "fence": granted["fence"], "expiresAt": granted["expiresAt"]}
            self.core.emit({**event, "waitedMs": round(since(surroundings, self.started_at) * 1000)})
            return kept
        yield from self.give_up()
        self._use_new_request(granted.get("slot"))
        lost = kept.lost or lease_lost(kept.key, "deadline")
        if self.request.get("replace") or (lost.fields["reason"] == "maxHold" and self.wait_left <= 0):
            raise lost
        raise unreachable(GRANT_GONE)

    def _send(self, wait_seconds: int, sent_at: Moment) -> Steps[Mapping[str, Any]]:
        seconds = wait_seconds + MAX_ANSWER_SECONDS
        request = {**self.request, "requestId": self.request_id, **self.retry_with, "waitSeconds": wait_seconds}
        if wait_seconds > 0 and self.operation == "acquire" and self.request.get("fair") is not False:
            request["sleepMs"] = math.floor(max(0.0, min(MAX_SLEEP_SECONDS, self.wait_left)) * 1000)
        # Until the answer is read, the service may have granted the lease, and an exception such as KeyboardInterrupt
        # may come at any moment.
        before, self.doubt = self.doubt, (sent_at, seconds)
        try:
            self.last = Send(self.operation, request, seconds)
            granted: Mapping[str, Any] = yield self.last
            if "leaseId" in granted or (self.operation == "onceBegin" and "outcome" in granted):
                return granted
            raise unreachable("the answer to acquire was not a grant")
        except HoldfastError as error:
            if not is_unknown(error):
                self.doubt = before
            if error.code != "LeaseLost" or error.fields.get("reason") == "cancelled":
                raise
            # An earlier try was granted, and an operator broke the grant before this client read the answer. If the
            # break waits for the holder, the key stays held until this caller withdraws.
            yield from self._withdraw(is_brief=False)
            # With a new id, this request would count as the newest, and replace the one that superseded it.
            if self.request.get("replace"):
                raise
            self._use_new_request(self.retry_with.get("slot"))
            raise unreachable(GRANT_GONE) from error

    def give_up(self) -> Steps[None]:
        """Releases the grant, if there is one."""
        kept, self.kept = self.kept, None
        if kept:
            yield from kept.release(self.local.release_timeout)

    def _use_new_request(self, slot: str | None) -> None:
        """Takes a new request id, because the service remembers the old id as released.

        The slot stays the same, even if its period has ended by now.
        """
        self.request_id = self.core.surroundings.uuid()
        self.retry_with = {} if slot is None else {"slot": slot}
        self.in_line = False
        self.place = None
        self.doubt = None

    def _pause_after(self, error: HoldfastError, took: float, wait_seconds: int) -> float:
        """Returns the seconds until the next try. Raises the error if another try cannot help or comes too late."""
        surroundings = self.core.surroundings
        left = self.wait_left
        self.retry_with.update(error.retry_with or {})
        if error.code != "LeaseHeld":
            usual_pause = backoff(surroundings, self.failures, error)
            self.failures += 1
            pause = max(usual_pause, min(self._longer_sleep(), left)) if error.code == "Throttled" else usual_pause
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
        shown = ("key", "holder", "holders", "expiresAt", "used", "limit", "cap", "place", "waiting")
        event = {name: fields[name] for name in shown if name in fields}
        self.core.emit({"type": "waiting", "key": self.request["key"], **event, "since": _iso(self.started_at[0])})
        if sleep > 0 or (self.place and place):
            self.place = (sleep, kept, moment(surroundings))
        if sleep > 0:
            self.failures = 0
            return min(sleep, left)
        # A deployment may allow shorter waits, or none. While the caller is away, the hand-off passes it over.
        is_early = took < (1 if place else wait_seconds) * 0.5
        self.failures = self.failures + 1 if is_early else 0
        # The service waits whole seconds only, so the rest is waited here. Otherwise the next try comes at once,
        # because a turn may pass between two tries.
        if left < 1:
            return left
        return backoff(surroundings, self.failures) if self.failures else 0.0

    def _longer_sleep(self) -> float:
        """How long to sleep if the return was throttled: twice as long as the last sleep, then four and eight times.

        Otherwise sleepers would throttle each other again and again. Half of the time for which the place is kept is
        left for later tries.
        """
        if self.place is None:
            return 0.0
        sleep, kept, answered_at = self.place
        longer: float = sleep * 2.0 ** min(3, self.failures)
        return min(longer, (kept - since(self.core.surroundings, answered_at)) / 2)

    def _withdraw(self, is_brief: bool) -> Steps[None]:
        """Withdraws the request: takes it out of the line, or ends a grant that did not reach the caller."""
        timeout = self.local.release_timeout
        in_doubt, self.doubt = self.doubt, None
        left = in_doubt[1] - since(self.core.surroundings, in_doubt[0]) if in_doubt else 0.0
        if self.operation == "onceBegin":
            if in_doubt:
                request = {**self.request, "requestId": self.request_id, **self.retry_with, "waitSeconds": 0}
                yield from withdraw_run(self.core, request, timeout)
            return
        withdrawal = {"key": self.request["key"], "requestId": self.request_id, "holder": self.request["holder"]}
        # A try whose answer was lost may have a place of its own, which only a search of the whole line finds.
        if "ticket" in self.retry_with and not in_doubt:
            withdrawal["ticket"] = self.retry_with["ticket"]
        is_done = yield from withdraw(self.core, withdrawal, timeout / 2 if is_brief else timeout)
        if not is_done and in_doubt and self.last and self.last.answer and not self.last.answer.done():
            # The request may arrive after its withdrawal, for example because of a cold start.
            yield Sleep(min(left, timeout / 2), self.last.answer)
            is_done = yield from withdraw(self.core, withdrawal, timeout / 2)
        # The request may arrive even later, so withdraw it again when it cannot arrive any more.
        if left > 0 and not is_done:
            later(self.core, left, withdraw(self.core, withdrawal, timeout))


def _iso(wall: float) -> str:
    return datetime.fromtimestamp(wall, timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def acquire(acquisition: Acquisition) -> Steps[LeaseState]:
    """Acquires a lease."""
    got = yield from acquisition.steps()
    assert isinstance(got, LeaseState)
    return got


def withdraw(core: Core, request: Mapping[str, Any], timeout: float) -> Steps[bool]:
    """Takes a request out of the line, or ends a grant that did not reach the caller.

    Returns whether there was either.
    """
    try:
        return bool((yield from call(core, "withdraw", request, timeout, timeout / 2)).get("cancelled"))
    except HoldfastError as error:
        core.emit({"type": "released", "key": request["key"], "confirmed": False, "error": error})
        return False


def withdraw_run(core: Core, request: Mapping[str, Any], timeout: float) -> Steps[None]:
    """Ends a run whose grant was lost on the way: repeats the request to receive the grant, and releases the grant."""
    try:
        answer = yield from call(core, "onceBegin", request, timeout, timeout / 2)
        if "leaseId" in answer:
            yield from try_release(core, request["key"], answer["leaseId"], timeout)
    except HoldfastError as error:
        # Another caller works, or the grant has ended already.
        if error.code not in ("LeaseHeld", "LeaseLost"):
            core.emit({"type": "released", "key": request["key"], "confirmed": False, "error": error})


class RateTerms(TypedDict, total=False):
    """How many units may start in each period, and how many of them this work takes."""

    name: str
    """The name of the unit, such as `tokens`. The rates of a key have different names. The default is `requests`."""
    limit: int
    """How many units may start in each period. Required."""
    per: str
    """The period, such as `1s`, `1m` or `1d`, at most 31 days. Required."""
    units: int
    """How many units the work takes, or an estimate that `settle` corrects. The default is 1."""
    burst: int
    """How many units may start together when the key has been idle. The default, `units`, spaces the starts evenly."""


class HoldOptions(TypedDict, total=False):
    """The options of a lease, and of a run. Times are in seconds."""

    ttl: int
    """How long the lease lasts without a heartbeat, from 2 to 86,400. The default is 60.

    After a crash, others wait this long. With a shorter ttl, a shorter network failure loses the lease.
    """
    wait: float
    """How long to wait while others hold the key. The default is 0: the call raises LeaseHeld at once.

    `float("inf")` waits without a limit.
    """
    timeout: float
    """How long to retry after transient failures, on top of `wait`. The default is 30."""
    holder: str
    """The name that other callers see while they wait, such as the id of the job.

    The default is the client's holder.
    """
    data: Any
    """Any JSON up to 4 KiB that other callers may read, such as a link to the log of the job."""
    max_hold: float | Callable[[], float]
    """The longest time that the work may take: after that, the lease counts as lost, even if heartbeats succeed.

    You want it if work that hangs must not keep the key. A function is called after the grant, and returns the seconds.
    """
    release_timeout: float
    """How long a release with its retries may take. The default is 5."""
    on_lost: Callable[[HoldfastError], object]
    """Called with the LeaseLost error if the lease is lost, so that you can stop work that never calls `check`.

    It is called in another thread. With asyncio it is called in the event loop, and may be an async function.
    """
    execution: str
    """The ARN of the Standard execution that will hold the lease. When that execution ends, the lease is freed."""


class LeaseOptions(HoldOptions, total=False):
    """The options of a lease or a permit."""

    limit: int
    """Asks for a permit, which is granted if all permits, the new one included, weigh at most `limit`. 1 to 200."""
    weight: int
    """How much of the limit the permit takes, for work that costs more than other work. The default is 1."""
    mode: Literal["shared", "exclusive"]
    """Asks for a permit: `shared` with other holders up to the `limit`, or `exclusive`, which has the key alone."""
    fair: bool
    """True to be served in the order of arrival (the default). With False the caller races for the lease."""
    replace: Literal["waiting", "running"]
    """Latest wins, for work that only the newest request needs, such as a rebuild of a page.

    Older requests of the key that also said `replace` and still wait fail with Superseded. `running` also asks the
    holder to stop, if its own request said `running`.
    """
    target: str
    """The ARN of an execution that works under the lease. The lease stays while it runs. Needs `execution`."""
    grace_seconds: int
    """How long the lease stays after the execution has ended abnormally, up to 900. Needs `execution`.

    Set it to the timeout of the functions that the execution calls, because they may still be at work.
    """
    rates: Sequence[RateTerms]
    """Up to four rates of the key. After the grant, the client waits for a start at these rates, within `wait`."""
    settle: bool
    """True if the `units` are estimates, which you correct with `lease.settle` after the work. Needs `rates`."""


CLIENT_OPTIONS = frozenset({"wait", "timeout", "max_hold", "release_timeout", "on_lost", "rates", "settle", "ttl"})
"""The options that the client uses itself, or sends under another name."""


def acquisition(
    core: Core, key: str, holder: str, options: Mapping[str, Any], operation: str = "acquire"
) -> Acquisition:
    """Makes an acquisition.

    Raises ValueError for a time that is negative or not a number, and TypeError for a wrong type.
    """
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
    local = LocalOptions(ttl, given.get("max_hold"), release_timeout, given.get("on_lost"))
    fields = {name: value for name, value in given.items() if name not in CLIENT_OPTIONS}
    if "grace_seconds" in fields:
        fields["graceSeconds"] = fields.pop("grace_seconds")
    request = {"holder": holder, **fields, "key": key}
    if "ttl" in given:
        request["ttlSeconds"] = ttl
    limits: dict[str, Any] = {name: value for name, value in given.items() if name in ("wait", "timeout")}
    return Acquisition(core, request, local, {**limits, "operation": operation})
