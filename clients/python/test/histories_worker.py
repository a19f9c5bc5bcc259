"""The Python client as a caller of verification/histories: a line of JSON for each command and each answer.

The protocols of the client run here, and the simulation has the time, the network and the service. So this process
answers what a protocol wants to send, and how long it wants to sleep.
"""

from __future__ import annotations

import itertools
import json
import random
import sys
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

import holdfast.acquire
import holdfast.lease
from holdfast.acquire import acquisition
from holdfast.errors import error_of, problem_of
from holdfast.lease import Heartbeats, LeaseState
from holdfast.steps import Core, Send, Steps, late
from holdfast.surroundings import Surroundings

Json = dict[str, Any]


class Clock(Surroundings):
    """The clocks and the random numbers of one process of the simulation."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self.now = (0.0, 0.0)

    def wall(self) -> float:
        return self.now[0]

    def monotonic(self) -> float:
        return self.now[1]

    def random(self) -> float:
        return self._chance.random()

    def uuid(self) -> str:
        return str(uuid.UUID(int=self._chance.getrandbits(128), version=4))


class Session:
    """A sequence of protocols: an acquisition, heartbeats, and a release or a later withdrawal."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.core = Core(lambda *_: None, None, clock)
        self.steps: Steps[Any] | None = None
        self.sent: Send | None = None
        self.heartbeats: Heartbeats | None = None
        self.kept: LeaseState | None = None
        self.beat: tuple[Send, Future[Any]] | None = None

    def proceed(self, go: Callable[[], Any]) -> Json:
        try:
            effect = go()
        except StopIteration as end:
            if not isinstance(end.value, LeaseState):
                return {"done": end.value}
            self.kept, self.heartbeats = end.value, Heartbeats(end.value)
            granted = end.value.granted
            return {"held": {"leaseId": granted["leaseId"], "fence": granted["fence"]}}
        except BaseException as error:
            return {"raised": getattr(error, "code", type(error).__name__)}
        if isinstance(effect, Send):
            self.sent = effect
            return {"send": {"operation": effect.operation, "request": effect.request, "seconds": effect.seconds}}
        return {"sleep": 0 if effect.until and effect.until.done() else effect.seconds}

    def play(self, steps: Steps[Any]) -> Json:
        self.steps = steps
        return self.proceed(lambda: next(steps))

    def answered(self, answer: Json | None) -> Json:
        steps, sent = self.steps, self.sent
        assert steps is not None
        assert sent is not None
        got = result_of(sent, answer)
        return self.proceed(lambda: steps.throw(got) if isinstance(got, BaseException) else steps.send(got))

    def interrupted(self) -> Json:
        steps = self.steps
        assert steps is not None
        return self.proceed(lambda: steps.throw(KeyboardInterrupt()))

    def turn(self) -> Json:
        """Takes a turn of the heartbeat thread, and reports what the work sees."""
        assert self.heartbeats is not None
        assert self.kept is not None
        before = self.beat
        wait = self.heartbeats.beat_if_due()
        report: Json = {"wait": wait, "isHeld": self.kept.check() is None, "reason": reason_of(self.kept)}
        if self.beat is not None and self.beat is not before:
            send = self.beat[0]
            report["send"] = {"operation": send.operation, "request": send.request, "seconds": send.seconds}
        return report

    def beaten(self, answer: Json | None) -> None:
        assert self.beat is not None
        send, future = self.beat
        got = result_of(send, answer)
        if isinstance(got, BaseException):
            future.set_exception(got)
        else:
            future.set_result(got)


def reason_of(kept: LeaseState) -> str | None:
    return kept.over.fields["reason"] if kept.over else None


def result_of(sent: Send, answer: Json | None) -> Any:
    if answer is None:
        return late(sent)
    body = answer["body"]
    if answer["outcome"] == "ok":
        return body
    return problem_of(body) or error_of({"detail": "", **body, "code": answer["outcome"]})


sessions: dict[int, Session] = {}
numbers = itertools.count(-1, -1)
present: list[Session] = []
"""A list with the session that runs the current command."""
coming: list[tuple[int, float]] = []
"""The sessions that the current command has made, with the seconds until they begin."""


def start(_: Core, send: Send) -> Future[Any]:
    future: Future[Any] = Future()
    present[0].beat = send, future
    return future


def later(_: Core, seconds: float, steps: Steps[object]) -> None:
    one = Session(present[0].clock)
    one.steps = steps
    number = next(numbers)
    sessions[number] = one
    coming.append((number, seconds))


holdfast.lease.start = start
holdfast.acquire.later = later


def obey(command: Mapping[str, Any]) -> Json:
    number = command["session"]
    if begin := command.get("begin"):
        sessions[number] = Session(Clock(begin["seed"]))
    session = sessions[number]
    session.clock.now = tuple(command["now"])
    present[:] = [session]
    if begin:
        acquiring = acquisition(session.core, begin["key"], begin["holder"], begin["options"])
        return session.play(acquiring.steps())
    if "answer" in command:
        return session.answered(command["answer"])
    if "beaten" in command:
        session.beaten(command["beaten"])
        return session.turn()
    what = command["do"]
    if what == "forget":
        del sessions[number]
        return {"done": None}
    if what == "sleepIsOver":
        steps = session.steps
        assert steps is not None
        return session.proceed(lambda: next(steps))
    if what == "interrupt":
        return session.interrupted()
    if what == "turn":
        return session.turn()
    assert what == "release"
    assert session.kept is not None
    session.kept.check()
    session.kept.end()
    return session.play(session.kept.release(session.kept.local.release_timeout))


for line in sys.stdin:
    coming.clear()
    answer = obey(json.loads(line))
    print(json.dumps({**answer, "later": coming}), flush=True)
