"""Holdfast for unit tests: a service in memory, and a clock that the test advances.

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
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

from . import aio, base
from .client import Holdfast
from .errors import error_of
from .memory import DAY, Fields, Key, rows_of
from .surroundings import Surroundings

__all__ = ["ManualClock", "MemoryService", "async_client", "client", "installed"]

POLL_SECONDS = 0.001
"""How often a wait checks whether the test has advanced the time, in real seconds."""

BLOCKED_SECONDS = 0.5
"""How long a thread may work until it counts as blocked elsewhere, in real seconds."""


_Moment = tuple[int, int]
"""An instant in milliseconds, and the number of a wait until then."""


class ManualClock(Surroundings):
    """The clocks of clients in a unit test. Time stands still until the test advances it.

    Example:
        >>> clock.advance(60)
        >>> await clock.advance_async(60)  # in a coroutine
    """

    check_seconds = 3600.0

    def __init__(self) -> None:
        """Starts the wall clock at 2026-01-01T00:00:00Z."""
        # In whole milliseconds, because sums of fractions would miss the moment that a test advances to.
        self._wall, self._monotonic = 1_767_225_600_000, 1_000_000
        self._waits: dict[object, tuple[_Moment, Callable[[], bool]]] = {}
        """For each thread or task that waits: until when, and a function that says whether the wait has ended early."""
        self._numbers = itertools.count()
        self._due: _Moment = (0, 0)
        """The last wait that has ended.

        Waits that end at the same moment end one by one, in the order in which they began.
        """
        # The threads that do not wait for this clock: they are older than the clock, or wait for something else.
        self._others = set(threading.enumerate())

    def wall(self) -> float:
        """As in the base class."""
        return self._wall / 1000

    def monotonic(self) -> float:
        """As in the base class."""
        return self._monotonic / 1000

    def random(self) -> float:
        """Always the same."""
        return 0.5

    def _until(self, seconds: float) -> _Moment:
        if seconds <= 0:
            return self._due
        return self._monotonic + -int(-1000 * min(seconds, 1e12) // 1), next(self._numbers)

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """As in the base class, by the time of this clock."""
        this_thread, until = threading.current_thread(), self._until(seconds)
        self._others.discard(this_thread)
        self._waits[this_thread] = until, event.is_set
        try:
            while not event.is_set() and self._due < until:
                event.wait(POLL_SECONDS)
        finally:
            del self._waits[this_thread]
        return event.is_set()

    async def wait_async(self, future: asyncio.Future[Any], seconds: float) -> bool:
        """As in the base class, by the time of this clock."""
        this_wait, until = object(), self._until(seconds)
        self._waits[this_wait] = until, future.done
        try:
            while not future.done() and self._due < until:
                await asyncio.wait({future}, timeout=POLL_SECONDS)
        finally:
            del self._waits[this_wait]
        return future.done()

    def advance(self, seconds: float) -> None:
        """Advances the time. The waits of threads end in order, and each thread works until it waits again."""
        for _ in self._steps(seconds):
            blocked_at = time.monotonic() + BLOCKED_SECONDS
            while busy := self._busy():
                if time.monotonic() > blocked_at:
                    self._others.update(one for one in busy if isinstance(one, threading.Thread))
                    break
                time.sleep(POLL_SECONDS / 4)

    async def advance_async(self, seconds: float) -> None:
        """Advances the time in a coroutine, so that the tasks of the loop run. See `advance`."""
        for _ in self._steps(seconds):
            turns, blocked_at = 0, time.monotonic() + BLOCKED_SECONDS
            while turns < 10 and time.monotonic() < blocked_at:  # an answer needs several turns to reach its task
                await asyncio.sleep(POLL_SECONDS / 4 if self._busy() else 0)
                turns = 0 if self._busy() else turns + 1

    def _steps(self, seconds: float) -> Iterator[None]:
        until = self._monotonic + round(seconds * 1000)
        yield
        while (due := min([at for at, _ in [*self._waits.values()]], default=(until + 1, 0)))[0] <= until:
            self.pause(max(0, due[0] - self._monotonic) / 1000)
            self._due = max(self._due, due)
            yield
        self.pause((until - self._monotonic) / 1000)
        yield

    def _busy(self) -> list[object]:
        """The threads that work, and the waits that have ended."""
        # The threads are listed before and after the waits, because a thread may end or start in between.
        before, waits = threading.enumerate(), {**self._waits}
        threads = {*before, *threading.enumerate()}
        over = [one for one, (until, is_done) in waits.items() if until <= self._due or is_done()]
        idle = {*waits, *self._others, threading.current_thread()}
        return over + [one for one in threads if one not in idle]

    def pause(self, seconds: float) -> None:
        """Advances both clocks as if the process were stopped: no timer fires."""
        self._monotonic += round(seconds * 1000)
        self.suspend(seconds)

    def suspend(self, seconds: float) -> None:
        """Advances only the wall clock, as if the machine were asleep or the clock was set."""
        self._wall += round(seconds * 1000)


class MemoryService:
    """Holdfast in memory, for unit tests of code that uses the client. It is a transport for the real client.

    The service answers `acquire` (leases and permits, waiting in line, `replace`), `heartbeat`, `release`,
    `breakLease`, `withdraw`, `readLeases`, `onceBegin`, `onceComplete`, `rateReserve` and `rateSettle`, with fewer
    fields than the real one. Every other call is Refused. It does not imitate executions, tasks, `fair=False`, caps,
    permissions, most checks of the input, lost answers, and clocks that differ. To test these, run the service of `npm
    start`.
    """

    def __init__(self, clock: Surroundings | None = None) -> None:
        """`clock` can be a ManualClock, the same one as for the clients. The default is the real time."""
        self.clock = clock or Surroundings()
        self._mutex = threading.Lock()
        self._keys: dict[tuple[str | None, str, str], Key] = {}

    def __call__(self, operation: str, request: Mapping[str, Any], seconds: float, namespace: str | None = None) -> Any:
        """Answers a call as the service does. It blocks while the call waits in line."""
        beyond = next((name for name in ("taskToken", "callbackId", "execution") if name in request), None)
        # Both sides get copies, as over a network, so that they cannot change each other's objects.
        fields = json.loads(json.dumps(request, allow_nan=False))
        with self._mutex:
            answer = None if beyond else self._answer(operation, fields, namespace)
            if answer is None:
                detail = f"{operation}{f' with {beyond}' if beyond else ''} is not a call of the service in memory"
                raise error_of({"code": "Refused", "detail": f"{detail}: use npm start"})
            return json.loads(json.dumps(answer))

    def _answer(self, operation: str, fields: Fields, space: str | None) -> Fields | None:
        if operation == "readLeases" and "key" not in fields:
            keys = [key for (key_space, kind, _), key in self._keys.items() if (key_space, kind) == (space, "lease")]
            return {"leases": rows_of(keys, fields.get("prefix", "")), "nextCursor": None}
        if not fields.get("key"):
            return None
        if operation in ("acquire", "onceBegin", "rateReserve"):
            fields.setdefault("requestId", self.clock.uuid())
        kind = "once" if operation.startswith("once") else "rate" if operation.startswith("rate") else "lease"
        if operation in ("heartbeat", "release") and self._key(space, "once", fields["key"]).knows(fields["leaseId"]):
            kind = "once"
        key = self._key(space, "once" if fields.get("kind") == "once" else kind, fields["key"])
        calls: dict[str, Callable[[Fields], Fields]] = {
            "acquire": key.acquire,
            "heartbeat": key.heartbeat,
            "release": key.release,
            "withdraw": key.withdraw,
            "breakLease": key.break_,
            "readLeases": lambda _: key.view(),
            "onceBegin": key.begin,
            "onceComplete": key.complete,
            "rateReserve": key.reserve,
            "rateSettle": key.settle,
        }
        return calls[operation](fields) if operation in calls else None

    def _key(self, space: str | None, kind: str, name: str) -> Key:
        return self._keys.setdefault((space, kind, name), Key(name, self.clock, self._mutex))

    def hold(self, key: str, holder: str = "another", ttl: int = 365 * DAY, **terms: Any) -> Callable[[], bool]:
        """Grants a key to another holder, so that a test can show what your code does when the key is held.

        Returns: a function that releases the grant.

        Raises:
            LeaseHeld: the key cannot be granted now.
        """
        named = {**terms, "key": key, "holder": holder, "ttlSeconds": ttl}
        grant = self("acquire", named, 0)
        return lambda: bool(self("release", grant, 0)["released"])

    def lose(self, key: str, reason: Literal["taken", "broken", "unknown"] = "taken") -> None:
        """Ends every grant of a key, so that a test can show what your code does when it loses a lease.

        The next heartbeat of each holder fails. `taken` also grants the key to another holder.
        """
        with self._mutex:
            self._key(None, "lease", key).lose(reason)


def client(service: MemoryService | None = None, holder: str = "test") -> Holdfast:
    """Makes a client of a service in memory, with the clock of the service."""
    service = service or MemoryService()
    return Holdfast(transport=service, surroundings=service.clock, holder=holder)


def async_client(service: MemoryService | None = None, holder: str = "test") -> aio.Holdfast:
    """Makes a client of a service in memory, for asyncio."""
    service = service or MemoryService()
    return aio.Holdfast(transport=service, surroundings=service.clock, holder=holder)


@contextmanager
def installed(service: MemoryService, holder: str = "test") -> Iterator[MemoryService]:
    """Makes `holdfast.lease` and the other functions of `holdfast` and `holdfast.aio` use a service in memory."""
    before, process = dict(base._clients), os.getpid()
    base._clients.update(
        {(process, Holdfast): client(service, holder), (process, aio.Holdfast): async_client(service, holder)}
    )
    try:
        yield service
    finally:
        base._clients.clear()
        base._clients.update(before)
