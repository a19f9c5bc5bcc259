"""Keeps a lease by heartbeats, and finds out when it is lost: by two clocks, and by the answers of the service."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from .attempt import backoff, call
from .errors import HoldfastError, lease_lost, unreachable
from .steps import Core, Send, Sleep, Steps, late, start
from .surroundings import Moment, moment, since

RELEASE_SECONDS = 5.0
"""How long a release with its retries may take."""

MAX_HEARTBEAT_SECONDS = 5.0
"""How long a heartbeat may take."""

MAX_INTERVAL_SECONDS = 20.0
"""The longest time between two heartbeats.

With each heartbeat, a holder finds out whether its lease was broken or superseded.
"""

RESERVE_SECONDS = 1.0
"""The reserve: how long before its end a lease counts as lost, because timers are not exact.

At most a tenth of the ttl.
"""


@dataclass
class Term:
    """A grant, and how long it lasts by the clocks of this process. Both durations count from `sent_at`, in seconds."""

    grant: Mapping[str, Any] = field(repr=False)  # it has the lease id
    sent_at: Moment
    lasts: float
    beat_at: float


@dataclass
class LocalOptions:
    """The options of a lease that only the client uses."""

    ttl: float = 60.0
    max_hold: float | Callable[[], float] | None = None
    release_timeout: float = RELEASE_SECONDS
    on_lost: Callable[[HoldfastError], object] | None = None


class LeaseState:
    """A lease that this process keeps. Several threads use it, so a method that ends it takes a lock."""

    def __init__(self, core: Core, granted: Mapping[str, Any], acquired_at: Moment, local: LocalOptions) -> None:
        """`acquired_at` is when the acquisition was sent."""
        self.core = core
        self.granted = granted
        self.key: str = granted["key"]
        self.acquired_at = acquired_at
        self.local = local
        waited = granted.get("waitedMs", 0) / 1000
        limit = local.max_hold
        self.hold = since(core.surroundings, acquired_at) + limit() if callable(limit) else waited + _or_inf(limit)
        self.term = self._term(granted, acquired_at, waited)
        self.over: HoldfastError | None = None
        """Set when the lease is over: it was lost, or released."""
        self.lost: HoldfastError | None = None
        self.gone = False
        """True if the service has answered that this caller does not hold the lease, so there is nothing to release."""
        self.on_change: Callable[[], object] = lambda: None
        """Called so that the heartbeats are checked at once. The thread or task that sends the heartbeats sets it."""
        self.under_way: tuple[Send, Moment, Future[Any]] | None = None
        """The heartbeat that is under way."""
        self._failures = 0
        self._lock = threading.RLock()  # reentrant, because a signal handler may run while the thread has the lock
        self._process = os.getpid()

    def _term(self, grant: Mapping[str, Any], sent_at: Moment, waited: float = 0.0) -> Term:
        ttl = self.local.ttl
        end = waited + grant["remainingMs"] / 1000
        # When the lease was last extended. The answer to a retry may repeat a grant from before the request.
        extended = end - ttl
        interval = min(ttl / 3, MAX_INTERVAL_SECONDS) * (0.8 + 0.2 * self.core.surroundings.random())
        return Term(grant, sent_at, end - min(RESERVE_SECONDS, ttl / 10), extended + interval)

    @property
    def is_of_this_process(self) -> bool:
        """False in a process that was forked from the holder, which must neither extend nor release the lease."""
        return self._process == os.getpid()

    @property
    def left(self) -> float:
        """How many seconds are left by the clocks of this process. May be negative."""
        term = self.term  # a heartbeat may replace the term between two reads
        return term.lasts - since(self.core.surroundings, term.sent_at)

    @property
    def hold_left(self) -> float:
        """How many seconds are left of `max_hold`."""
        return self.hold - since(self.core.surroundings, self.acquired_at)

    def check(self) -> HoldfastError | None:
        """Ends the lease if it has expired, by the clocks of this process. Returns why the lease is over, if it is."""
        if not self.is_of_this_process:
            return lease_lost(self.key, "forked")
        if self.over is None and not self.left > 0:
            self.lose("deadline")
        elif self.over is None and not self.hold_left > 0:
            self.lose("maxHold")
        return self.over

    def lose(self, reason: str, holder: str | None = None) -> None:
        """Ends the lease for a reason. The first reason stands."""
        error = lease_lost(self.key, reason, holder)
        with self._lock:
            if self.over is not None:
                return
            self.lost = error  # set before `over`, because `beat_if_due` reads it when `over` is set
            self.over = error
        self.on_change()
        self.core.emit(
            {"type": "lost", "key": self.key, "fence": self.granted["fence"], "reason": reason, "error": error}
        )

    def end(self) -> None:
        """Marks the lease as released, unless it is over."""
        with self._lock:
            if self.over is None:
                self.over = lease_lost(self.key, "released")
        self.on_change()

    @property
    def is_due(self) -> bool:
        """True if it is time for a heartbeat."""
        return since(self.core.surroundings, self.term.sent_at) >= self.term.beat_at

    def pause(self, until_beat: float | None = None) -> float:
        """How long to sleep before the next check, in seconds."""
        if until_beat is None:
            until_beat = self.term.beat_at - since(self.core.surroundings, self.term.sent_at)
        return max(0.001, min(self.core.surroundings.check_seconds, until_beat, self.hold_left, self.left))

    def apply_answer(self, sent_at: Moment, answer: Any, error: HoldfastError | None) -> None:
        """Applies the answer or the error of a heartbeat, unless the lease is over."""
        if self.check() is not None:
            return
        if error is None:
            self.term = self._term(answer, sent_at)
            self._failures = 0
        elif error.code == "LeaseLost":
            reason: str = error.fields["reason"]
            # The service may keep a broken or superseded lease until the work has stopped, so this one must still be
            # released.
            self.gone = reason not in ("broken", "superseded")
            self.lose(reason, error.fields.get("holder"))
            return
        else:
            pause = min(backoff(self.core.surroundings, self._failures, error), self.left / 2)
            self._failures += 1
            self.term.beat_at = since(self.core.surroundings, self.term.sent_at) + pause
        event = {"type": "beat", "key": self.key, "fence": self.granted["fence"], "error": error}
        self.core.emit({**event, "expiresAt": self.term.grant["expiresAt"]})

    def await_heartbeat(self, seconds: float) -> Steps[None]:
        """Waits for a heartbeat under way, so that it does not reach the service after the release."""
        if self.under_way:
            send, sent_at, answer = self.under_way
            yield Sleep(max(0.0, min(seconds, send.seconds - since(self.core.surroundings, sent_at))), answer)

    def release(self, timeout: float) -> Steps[bool]:
        """Releases the lease. Never raises an error of the service. Returns whether the service confirmed it."""
        if self.check() is None:
            self.end()
        yield from self.await_heartbeat(timeout / 2)
        # If only the clocks of this process say that the lease is lost, the service may still have the grant.
        if self.gone or not self.is_of_this_process:
            return False
        return (yield from try_release(self.core, self.key, self.granted["leaseId"], timeout))


class Heartbeats:
    """Sends the heartbeats of a lease, and checks the clocks. A thread or a task calls `beat_if_due` until the end."""

    def __init__(self, kept: LeaseState) -> None:
        """Sends nothing yet."""
        self._kept = kept

    def beat_if_due(self) -> float | None:
        """Checks the clocks, applies the answer to the last heartbeat, and sends the next one if it is due.

        Returns how long to wait until the next check, or None if the lease is over.
        """
        kept, surroundings = self._kept, self._kept.core.surroundings
        if kept.under_way:
            send, sent_at, answer = kept.under_way
            if answer.done() or since(surroundings, sent_at) >= send.seconds:
                kept.under_way = None
                self._apply_answer(send, sent_at, answer)
        if kept.check() is not None:
            return None
        if kept.under_way is None and kept.is_due:
            # A try gets half of the time that is left, so that another try can follow if no answer comes.
            seconds = max(0.05, min(MAX_HEARTBEAT_SECONDS, kept.left / 2))
            send = Send("heartbeat", {"key": kept.key, "leaseId": kept.granted["leaseId"]}, seconds)
            sent_at = moment(surroundings)
            kept.under_way = send, sent_at, start(kept.core, send)
            kept.under_way[2].add_done_callback(lambda _: kept.on_change())
        return kept.pause(
            kept.under_way[0].seconds - since(surroundings, kept.under_way[1]) if kept.under_way else None
        )

    def _apply_answer(self, send: Send, sent_at: Moment, answer: Future[Any]) -> None:
        error: BaseException | None = late(send)
        grant: Any = None
        if answer.done():
            error = answer.exception()
            grant = None if error else answer.result()
        # An answer that is not a grant does not extend the lease.
        if error is None and not isinstance((grant or {}).get("remainingMs"), (int, float)):
            error = unreachable("the answer to a heartbeat was not a grant")
        if error is not None and not isinstance(error, HoldfastError):
            error = unreachable(f"a heartbeat could not be sent: {error}")
        self._kept.apply_answer(sent_at, grant, error)


def _or_inf(seconds: float | None) -> float:
    return float("inf") if seconds is None else seconds


def try_release(core: Core, key: str, lease_id: str, timeout: float) -> Steps[bool]:
    """Tries to release a grant for up to `timeout` seconds. Returns whether the service confirmed the release."""
    failure: HoldfastError | None = None
    confirmed = False
    try:
        answer = yield from call(core, "release", {"key": key, "leaseId": lease_id}, timeout, timeout / 2)
        confirmed = bool(answer.get("released"))
    except HoldfastError as error:
        failure = error
    core.emit({"type": "released", "key": key, "confirmed": confirmed, "error": failure})
    return confirmed
