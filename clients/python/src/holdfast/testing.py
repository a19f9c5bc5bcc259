"""Holdfast for unit tests: a service in memory, and a clock that the test moves.

Example:
    >>> clock = ManualClock()
    >>> service = MemoryService(clock)
    >>> release = service.hold("nightly", holder="other")
    >>> with pytest.raises(holdfast.LeaseHeld):
    ...     run_nightly(client(service))

With pytest, the fixture `holdfast_service` needs no change of the code under test.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

from . import aio, base
from ._memory import ONCE_IDS, YEAR, Fields, Lock, Rates, Slots, invalid
from .client import Holdfast
from .errors import error_of
from .surroundings import Surroundings

__all__ = ["ManualClock", "MemoryService", "async_client", "client", "installed"]

QUIET_SECONDS = 0.02
"""How long a thread that does not wait for the clock must stand still before it counts as blocked elsewhere."""


OWN_QUIET_SECONDS = 2.0
"""The same for a thread of the client, which certainly goes on, unless it calls an `on_lost` that blocks."""


class _Timer:
    """A wait that ends at a moment of the clock."""

    def __init__(self, at: int, wake: Callable[[], object], event: threading.Event | None = None) -> None:
        self.at, self.event, self._wake = at, event, wake
        self.fired = False
        self.is_keeper = event is None or threading.current_thread().name.startswith("holdfast keeps")
        """Whether what wakes is the keeper of a lease, which looks each second and seldom wakes others."""

    def fire(self) -> None:
        self.fired = True
        self._wake()


class ManualClock(Surroundings):
    """The clocks of clients in a unit test. Time stands still until the test advances it.

    Example:
        >>> clock.advance(60)
        >>> await clock.advance_async(60)  # in a coroutine
    """

    def __init__(self) -> None:
        """The wall clock begins at 2026-01-01T00:00:00Z."""
        # Whole milliseconds: sums of fractions would be just before or after the moment that is meant.
        self._wall, self._monotonic = 1_767_225_600_000, 1_000_000
        self.chance: Callable[[], float] = lambda: 0.5
        """The next random number."""
        self._ids = itertools.count(1)
        self._timers: list[_Timer] = []
        self._threads: dict[int, _Timer] = {}
        self._older = weakref.WeakSet(threading.enumerate())
        self._known: set[int] = set()
        self._still: dict[int, tuple[tuple[int, int], float, int]] = {}
        self._moves = 0

    def wall(self) -> float:
        """As of the base class."""
        return self._wall / 1000

    def monotonic(self) -> float:
        """As of the base class."""
        return self._monotonic / 1000

    def random(self) -> float:
        """As of the base class."""
        return self.chance()

    def uuid(self) -> str:
        """Names that a test can predict."""
        return f"id-{next(self._ids)}"

    def _timer(self, seconds: float, wake: Callable[[], object], event: threading.Event | None = None) -> _Timer:
        ms = -int(-max(0.0, seconds) * 1000 // 1) if seconds < 1e12 else 10**15
        timer = _Timer(self._monotonic + ms, wake, event)
        self._timers.append(timer)
        self._moves += 1
        return timer

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """As of the base class, by the time of this clock."""

        def wake() -> None:
            # Ends the wait without setting the event, which has a meaning for others.
            condition = getattr(event, "_cond", None)
            if condition:
                with condition:
                    condition.notify_all()

        timer, own = self._timer(seconds, wake, event), threading.get_ident()
        self._threads[own] = timer
        try:
            while not event.is_set() and not timer.fired:
                event.wait(0.05)
        finally:
            self._threads.pop(own, None)
            self._drop(timer)
        return event.is_set()

    async def wait_async(self, future: asyncio.Future[Any], seconds: float) -> bool:
        """As of the base class, by the time of this clock."""
        loop = asyncio.get_running_loop()
        over: asyncio.Future[None] = loop.create_future()
        timer = self._timer(seconds, lambda: loop.call_soon_threadsafe(over.cancel))
        try:
            await asyncio.wait({future, over}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._drop(timer)
            over.cancel()
        return future.done()

    def _drop(self, timer: _Timer) -> None:
        self._moves += 1
        if timer in self._timers:
            self._timers.remove(timer)

    def advance(self, seconds: float) -> None:
        """Advances the time. What sleeps wakes in order, and its work runs until it needs more time."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            for _ in self._steps(seconds):
                while not self._is_quiet():
                    time.sleep(0.0001)
            return
        raise RuntimeError("in a coroutine, await clock.advance_async(seconds): the tasks of the loop must run")

    async def advance_async(self, seconds: float) -> None:
        """Advances the time in a coroutine, as `advance`."""
        for _ in self._steps(seconds):
            turns = 0
            while turns < 20:  # as many turns of the loop as a result may need to reach its task
                moves = self._moves
                await asyncio.sleep(0)
                turns = turns + 1 if self._is_quiet() and moves == self._moves else 0

    def _steps(self, seconds: float) -> Iterator[None]:
        """Moves the time from one timer to the next. After each step, the work must come to rest."""
        self._known = set()
        yield
        until = self._monotonic + round(seconds * 1000)
        while True:
            due = [timer for timer in list(self._timers) if timer.at <= until and not timer.fired]
            if not due:
                break
            timer = min(due, key=lambda one: one.at)
            self.block(max(0, timer.at - self._monotonic) / 1000)
            timer.fire()
            if not timer.is_keeper:
                self._known = set()
            yield
        self.block(max(0, until - self._monotonic) / 1000)
        yield

    def block(self, seconds: float) -> None:
        """Advances the time while the process is paused: nothing wakes."""
        self._monotonic += round(seconds * 1000)
        self.suspend(seconds)

    def suspend(self, seconds: float) -> None:
        """Advances the wall clock while the machine sleeps, or sets it. The monotonic clock stops."""
        self._wall += round(seconds * 1000)

    def _is_quiet(self) -> bool:
        """Whether each other thread waits for this clock, or has stood still for a while."""
        frames, now, still, quiet = sys._current_frames(), time.monotonic(), {}, True
        if self._known != frames.keys():  # a thread that began or ended may have woken others, which still stand
            self._known, self._still = set(frames), {}
        for one, frame in frames.items():
            timer = self._threads.get(one)
            waits = timer and not timer.fired and not (timer.event and timer.event.is_set())
            if waits or one == threading.get_ident():
                continue
            place = (id(frame), frame.f_lasti)
            before = self._still.get(one)
            since, looks = before[1:] if before and before[0] == place else (now, 0)
            still[one] = (place, since, looks + 1)
            # Looks too, because on a busy machine this thread may be as late as the other.
            quiet = (
                quiet
                and looks >= 20
                and now - since >= (OWN_QUIET_SECONDS if timer or self._is_own(one) else QUIET_SECONDS)
            )
        self._still = still
        return quiet

    def _is_own(self, ident: int) -> bool:
        """Whether a thread is one of a client, which comes back to the clock or ends. Threads that are older than the
        clock belong to clients with other clocks.
        """
        found = [one for one in threading.enumerate() if one.ident == ident and one not in self._older]
        return any(one.name.startswith("holdfast ") for one in found)


class MemoryService:
    """Holdfast in memory: a transport, over which the client's own code runs.

    It has `acquire` (leases and permits, with waiting in line, and `replace`), `heartbeat`, `release`, `breakLease`,
    `withdraw`, `readLeases`, `onceBegin`, `onceComplete`, `onceForget`, `readOnce` (of one key), `rateReserve` and
    `rateSettle`. Each other call is Refused. Not imitated are executions, tasks, `fair=False`, caps, quotas,
    permissions, most checks of the input, lost answers and clocks that differ: use `npm start` for these.
    """

    def __init__(self, clock: Surroundings | None = None) -> None:
        """Args: clock: such as a ManualClock, which the clients must have too. The default are the real clocks."""
        self.clock = clock or Surroundings()
        self._mutex = threading.Lock()
        self._made: dict[tuple[Any, ...], Any] = {}
        calls: dict[str, Callable[[str | None, Fields], Any]] = {
            "acquire": self._acquire,
            "heartbeat": lambda space, asked: self._holding(space, asked).heartbeat(asked),
            "release": lambda space, asked: self._holding(space, asked).release(asked["leaseId"]),
            "withdraw": lambda space, asked: self._lock(space, asked["key"]).withdraw(asked),
            "breakLease": self._break,
            "readLeases": self._read,
            "onceBegin": lambda space, asked: self._slots(space, asked["key"]).begin(self._named(asked)),
            "onceComplete": lambda space, asked: self._slots(space, asked["key"]).complete(asked),
            "onceForget": lambda space, asked: self._slots(space, asked["key"]).forget(asked["fence"]),
            "readOnce": lambda space, asked: self._slots(space, asked["key"]).view(),
            "rateReserve": lambda space, asked: self._rates(space, asked["key"]).reserve(self._named(asked)),
            "rateSettle": lambda space, asked: self._rates(space, asked["key"]).settle(asked),
        }
        self._calls = calls

    def __call__(self, operation: str, request: Mapping[str, Any], seconds: float, namespace: str | None = None) -> Any:
        """Answers a call, as the service. It blocks while the call waits in line."""
        call = self._calls.get(operation)
        beyond = [name for name in ("taskToken", "callbackId", "execution") if name in request]
        if not call or beyond or (operation == "readOnce" and "key" not in request):
            with_ = f" with {beyond[0]}" if beyond else ""
            detail = f"{operation}{with_} is not a call of the service in memory: use npm start"
            raise error_of({"code": "Refused", "detail": detail})
        # Copies, as over the wire, so that the caller and the service cannot change each other's objects.
        with self._mutex:
            return json.loads(json.dumps(call(namespace, json.loads(json.dumps(request, allow_nan=False)))))

    def hold(self, key: str, holder: str = "another", ttl: int = YEAR, **asked: Any) -> Callable[[], bool]:
        """Grants a key to another holder. Returns a function that releases the grant.

        Raises:
            LeaseHeld: the key cannot be granted now.
        """
        named = {**asked, "key": key, "holder": holder, "ttlSeconds": ttl, "requestId": self.clock.uuid()}
        grant = self("acquire", named, 0)
        return lambda: bool(self("release", grant, 0)["released"])

    def lose(self, key: str, reason: Literal["taken", "broken", "unknown"] = "taken") -> None:
        """Ends every grant of a key, so that the next heartbeat of each holder fails. `taken` gives the key to another
        holder.
        """
        with self._mutex:
            self._lock(None, key).lose(reason)

    def _one(self, kind: type[Any], space: str | None, key: str, *more: Any) -> Any:
        if not key:
            raise invalid(self.clock, "key", "must not be empty")
        named = (kind, space, key)
        if named not in self._made:
            self._made[named] = kind(key, self.clock, *more)
        return self._made[named]

    def _lock(self, space: str | None, key: str) -> Lock:
        found: Lock = self._one(Lock, space, key, self._mutex)
        return found

    def _slots(self, space: str | None, key: str) -> Slots:
        found: Slots = self._one(Slots, space, key, self._mutex)
        return found

    def _rates(self, space: str | None, key: str) -> Rates:
        found: Rates = self._one(Rates, space, key)
        return found

    def _named(self, request: Fields) -> Fields:
        return {**request, "requestId": request.get("requestId") or self.clock.uuid()}

    def _holding(self, space: str | None, request: Fields) -> Lock:
        is_run = request["leaseId"].startswith(ONCE_IDS)
        return self._slots(space, request["key"]).lock if is_run else self._lock(space, request["key"])

    def _acquire(self, space: str | None, request: Fields) -> Fields:
        lock = self._lock(space, request["key"])
        limit, weight, ttl = request.get("limit"), request.get("weight"), request.get("ttlSeconds", 60)
        waits = request.get("waitSeconds", 0) > 0
        for path, is_wrong, message in (
            ("ttlSeconds", ttl < 2, "must be at least 2"),
            ("ttlSeconds", ttl > 86_400 and ttl != YEAR, "must be at most 86,400"),
            ("weight", weight and not limit and "mode" not in request, "needs a limit or a mode"),
            ("weight", weight and limit and weight > limit, "must be at most the limit"),
            ("limit", limit and "replace" in request, "cannot be combined with replace"),
            ("replace", "replace" in request and not waits, "needs waitSeconds above 0, a taskToken or a callbackId"),
        ):
            if is_wrong:
                raise invalid(self.clock, path, message)
        return lock.wait(self._named(request)) if waits else lock.acquire(self._named(request))

    def _break(self, space: str | None, request: Fields) -> Fields:
        is_run, key = request.get("kind") == "once", request["key"]
        lock = self._slots(space, key).lock if is_run else self._lock(space, key)
        return lock.break_(request["fence"], request.get("wait", False))

    def _read(self, space: str | None, request: Fields) -> Fields:
        if "key" in request:
            return self._lock(space, request["key"]).view(request.get("waiters", False))
        made = sorted(key for kind, own, key in self._made if kind is Lock and own == space)
        rows = [
            self._lock(space, key).row(request.get("holder"))
            for key in made
            if key.startswith(request.get("prefix", ""))
        ]
        return {"leases": [row for row in rows if row["fence"] or row["used"]], "nextCursor": None}


def client(service: MemoryService | None = None, holder: str = "test") -> Holdfast:
    """A client of a service in memory, on the clock of the service."""
    service = service or MemoryService()
    return Holdfast(transport=service, surroundings=service.clock, holder=holder)


def async_client(service: MemoryService | None = None, holder: str = "test") -> aio.Holdfast:
    """The same, for asyncio."""
    service = service or MemoryService()
    return aio.Holdfast(transport=service, surroundings=service.clock, holder=holder)


@contextmanager
def installed(service: MemoryService, holder: str = "test") -> Iterator[MemoryService]:
    """Lets the functions of `holdfast` and `holdfast.aio`, such as `holdfast.lease`, use a service in memory."""
    before, own = dict(base._clients), os.getpid()
    base._clients.update({(own, Holdfast): client(service, holder), (own, aio.Holdfast): async_client(service, holder)})
    try:
        yield service
    finally:
        base._clients.clear()
        base._clients.update(before)
