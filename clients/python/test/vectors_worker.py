"""Plays the rows of contract/vectors.json with this client, for test/client/vectors: a line of JSON for each command.

The clock moves only when a command moves it. Start it with `sync` or `asyncio`.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import math
import os
import queue
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from typing import Any

import holdfast
from holdfast import aio
from holdfast.surroundings import LONGEST_WAIT, Surroundings

Report = dict[str, Any]
_writing = threading.Lock()


def report(content: Report) -> None:
    with _writing:
        sys.stdout.write(json.dumps(content, default=repr) + "\n")
        sys.stdout.flush()


class Clock(Surroundings):
    """Both clocks, in whole milliseconds, and the waits that end when the clocks move."""

    def __init__(self, chance: float) -> None:
        self.wall_ms = 1_767_225_600_000  # 2026-01-01
        self.monotonic_ms = 1_000_000
        self.chance = chance
        self._lock = threading.RLock()
        self._timers: dict[object, tuple[int, Callable[[], object]]] = {}

    def wall(self) -> float:
        return self.wall_ms / 1000

    def monotonic(self) -> float:
        return self.monotonic_ms / 1000

    def random(self) -> float:
        return self.chance

    def _after(self, seconds: float, fire: Callable[[], object]) -> Callable[[], object]:
        timer = object()
        ms = math.ceil(min(max(seconds, 0.0), LONGEST_WAIT) * 1000 - 1e-6)
        with self._lock:
            self._timers[timer] = (self.monotonic_ms + ms, fire)
        return lambda: self._timers.pop(timer, None)

    def wait(self, event: threading.Event, seconds: float) -> bool:
        condition: threading.Condition = event._cond  # type: ignore[attr-defined]
        over: list[bool] = []

        def fire() -> None:
            with condition:
                over.append(True)
                condition.notify_all()

        cancel = self._after(seconds, fire)
        try:
            with condition:
                condition.wait_for(lambda: event.is_set() or bool(over))
        finally:
            cancel()
        return event.is_set()

    async def wait_async(self, future: asyncio.Future[Any], seconds: float) -> bool:
        loop = asyncio.get_running_loop()
        over = loop.create_future()
        cancel = self._after(seconds, lambda: loop.call_soon_threadsafe(lambda: over.done() or over.set_result(None)))
        try:
            await asyncio.wait({future, over}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            cancel()
            over.cancel()
        return future.done()

    def move(self, ms: float, how: str) -> None:
        """Moves the clocks of a process: `runs`, `paused` (no wait ends), or `wall` for only the wall clock."""
        with self._lock:
            self.wall_ms += round(ms)
            if how != "wall":
                self.monotonic_ms += round(ms)
            if how != "runs":
                return
            due = [timer for timer, (at, _) in self._timers.items() if at <= self.monotonic_ms]
            fires = [self._timers.pop(timer)[1] for timer in due]
        for fire in fires:
            fire()

    def next_ms(self) -> int | None:
        with self._lock:
            return min((max(0, at - self.monotonic_ms) for at, _ in self._timers.values()), default=None)


NAMES = {"ttlSeconds": "ttl", "keepSeconds": "keep", "inputHash": "input_hash", "graceSeconds": "grace_seconds"}
SECONDS = {"waitMs": "wait", "timeoutMs": "timeout", "maxHoldMs": "max_hold", "releaseTimeoutMs": "release_timeout"}
SHOWN = ("key", "holder", "fence", "mode", "limit", "weight", "used", "previous", "held", "slot")


def options_of(given: Mapping[str, Any]) -> dict[str, Any]:
    own = {NAMES.get(name, name): value for name, value in given.items() if name not in SECONDS}
    times = {SECONDS[name]: value for name, value in given.items() if name in SECONDS}
    return own | {name: math.inf if ms == "forever" else ms / 1000 for name, ms in times.items()}


class WorkFailedError(Exception):
    def __init__(self) -> None:
        super().__init__("the work failed")


def view_of(held: Any) -> Report:
    shown = {name: getattr(held, name) for name in SHOWN if hasattr(held, name)}
    lost = held.lost
    more = {"limitChanged": held.limit_changed, "remainingMs": held.remaining * 1000}
    return shown | more | {"lost": lost.reason if lost else None, "text": f"{held!r} {lost}"}


def result_of(value: Any) -> Any:
    if isinstance(value, holdfast.OnceAnswer):
        fields = dataclasses.asdict(value)
        return fields | {"doneSlot": fields.pop("done_slot")}
    if isinstance(value, (holdfast.RateStart, aio.RateStart)):
        return {"startAt": value.start_at, "waitedMs": round(value.waited * 1000)}
    return value


def failure_of(error: BaseException) -> Report:
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    fields = dict(error.fields) if isinstance(error, holdfast.HoldfastError) else {}
    return {"error": fields | {"message": str(error), "text": text + repr(error)}}


def report_event(event: Mapping[str, Any]) -> None:
    report({"event": dict(event)})


def client_of(kind: Callable[..., Any], call: Mapping[str, Any], clock: Clock) -> Any:
    client = kind(call["endpoint"], holder="tester", surroundings=clock, on_event=report_event, **call["client"])
    http = client.core.transport

    def patient(operation: str, request: Mapping[str, Any], seconds: float, namespace: str | None) -> Any:
        # The socket uses real time, which goes on while the clock of the row stands still.
        return http(operation, request, seconds + 600, namespace)

    client.core = dataclasses.replace(client.core, transport=patient)
    return client


class Sync:
    """The client for threads. The call is played in the main thread."""

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[tuple[Mapping[str, Any], Clock]] = queue.SimpleQueue()
        self._steps: queue.SimpleQueue[Mapping[str, Any]] = queue.SimpleQueue()

    def run(self) -> None:
        while True:
            call, clock = self._calls.get()
            try:
                outcome: Report = {"returns": result_of(self._play(call, clock))}
            except KeyboardInterrupt:
                outcome = {"cancelled": True}
            except BaseException as error:
                outcome = failure_of(error)
            report({"outcome": outcome})

    def _play(self, call: Mapping[str, Any], clock: Clock) -> Any:
        client = client_of(holdfast.Holdfast, call, clock)
        key, options = call["key"], options_of(call["options"])

        def work(held: Any) -> Any:
            return self._work(held) if call["waits"] else "done"

        if call["call"] == "once":
            return client.once(key, work, **options)
        if call["call"] == "rate":
            start = client.rate(key, **options)
            return self._work(start) if call["waits"] else start
        with client.lease(key, **options) as lease:
            return work(lease)

    def _work(self, held: Any) -> Any:
        while True:
            step = self._steps.get()
            if step["do"] == "return":
                return step.get("value", "done")
            if step["do"] == "fail":
                raise WorkFailedError
            if step["do"] == "check":
                held.check()
            elif step["do"] == "show":
                report({"step": step["index"], "gave": view_of(held)})
            else:
                gave = held.release() if step["do"] == "release" else held.settle(step["units"])
                report({"step": step["index"], "gave": gave})

    def begin(self, call: Mapping[str, Any], clock: Clock) -> None:
        self._steps = queue.SimpleQueue()
        self._calls.put((call, clock))

    def act(self, step: Mapping[str, Any]) -> None:
        if step["do"] != "cancel":
            self._steps.put(step)
            return
        main = threading.main_thread().ident
        assert main is not None
        signal.pthread_kill(main, signal.SIGINT)


class Asyncio:
    """The client for asyncio. Each call is a task of one loop."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._steps: asyncio.Queue[Mapping[str, Any]] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    def run(self) -> None:
        self._loop.run_forever()

    async def _call(self, call: Mapping[str, Any], clock: Clock) -> None:
        try:
            outcome: Report = {"returns": result_of(await self._play(call, clock))}
        except asyncio.CancelledError:
            outcome = {"cancelled": True}
        except BaseException as error:
            outcome = failure_of(error)
        report({"outcome": outcome})

    async def _play(self, call: Mapping[str, Any], clock: Clock) -> Any:
        client = client_of(aio.Holdfast, call, clock)
        key, options = call["key"], options_of(call["options"])

        async def work(held: Any) -> Any:
            return await self._work(held) if call["waits"] else "done"

        if call["call"] == "once":
            return await client.once(key, work, **options)
        if call["call"] == "rate":
            start = await client.rate(key, **options)
            return await self._work(start) if call["waits"] else start
        async with client.lease(key, **options) as lease:
            return await work(lease)

    async def _work(self, held: Any) -> Any:
        while True:
            step = await self._steps.get()
            if step["do"] == "return":
                return step.get("value", "done")
            if step["do"] == "fail":
                raise WorkFailedError
            if step["do"] == "check":
                held.check()
            elif step["do"] == "show":
                report({"step": step["index"], "gave": view_of(held)})
            else:
                gave = await (held.release() if step["do"] == "release" else held.settle(step["units"]))
                report({"step": step["index"], "gave": gave})

    def begin(self, call: Mapping[str, Any], clock: Clock) -> None:
        def start() -> None:
            self._steps = asyncio.Queue()
            self._task = self._loop.create_task(self._call(call, clock))

        self._loop.call_soon_threadsafe(start)

    def act(self, step: Mapping[str, Any]) -> None:
        def do() -> None:
            if step["do"] == "cancel":
                assert self._task is not None
                self._task.cancel()
            else:
                self._steps.put_nowait(step)

        self._loop.call_soon_threadsafe(do)


def obey(player: Sync | Asyncio) -> None:
    """Takes the commands, in a thread for nothing else."""
    clock = Clock(0.5)
    for line in sys.stdin:
        command = json.loads(line)
        if "begin" in command:
            clock = Clock(command["begin"].get("random", 0.5))
            player.begin(command["begin"], clock)
        elif "act" in command:
            player.act(command["act"])
        elif "move" in command:
            clock.move(command["move"], command["how"])
        report({"next": clock.next_ms()})
    os._exit(0)  # the conductor has ended, and the call of a row may still wait for its clock


if __name__ == "__main__":
    chosen = Asyncio() if sys.argv[1] == "asyncio" else Sync()
    threading.Thread(target=obey, args=[chosen], daemon=True).start()
    chosen.run()
