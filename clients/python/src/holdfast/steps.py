"""Plays the steps of a call, in a thread or in an asyncio task.

The steps are written once for both: as a generator that yields what it needs (`Send`, `Sleep`) and receives the answer
or the error. `play` plays it in the calling thread, and `play_async` in a task. An exception that arrives while the
steps wait, such as KeyboardInterrupt or CancelledError, is thrown into the generator, so that it can withdraw its
request.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from .errors import HoldfastError, unreachable
from .surroundings import Surroundings

T = TypeVar("T")
Transport = Callable[[str, Mapping[str, Any], float, "str | None"], Any]
"""Sends one try of a call. Its arguments are the operation, the request, the time limit in seconds, and the namespace.

It may block. It returns the answer, or raises HoldfastError.
"""


@dataclass
class Send:
    """One try of a call. The answer is the JSON of the service."""

    operation: str
    request: Mapping[str, Any] = field(repr=False)  # it may contain a lease id
    seconds: float
    answer: Future[Any] | None = field(default=None, repr=False)
    """Set when the try is sent. The try goes on even if the caller is interrupted."""


@dataclass(frozen=True)
class Sleep:
    """A pause, which ends early when the future `until` is done."""

    seconds: float
    until: Future[Any] | None = None


Steps = Generator["Send | Sleep", Any, T]
"""The steps of a call, which return T."""


@dataclass(frozen=True)
class Core:
    """What the steps of every call need."""

    transport: Transport
    namespace: str | None
    surroundings: Surroundings
    emit: Callable[[dict[str, Any]], None] = field(default=lambda event: None)


def start(core: Core, send: Send) -> Future[Any]:
    """Sends a try in a thread of its own.

    A resolver that hangs, or a server that answers byte by byte, then blocks only that thread.
    """
    future: Future[Any] = Future()
    future.set_running_or_notify_cancel()

    def run() -> None:
        try:
            future.set_result(core.transport(send.operation, send.request, send.seconds, core.namespace))
        except BaseException as error:
            future.set_exception(error)

    try:
        threading.Thread(target=run, name=f"holdfast {send.operation}", daemon=True).start()
    except RuntimeError:  # the interpreter is shutting down, and does not start threads
        run()
    return future


def late(send: Send) -> HoldfastError:
    """The error for a try that was not answered in time."""
    return unreachable(f"no answer to {send.operation} in {send.seconds:g} s")


def perform(core: Core, effect: Send | Sleep) -> Any:
    """Does one step in the calling thread."""
    event = threading.Event()
    future = _awaited(core, effect)
    if future:
        future.add_done_callback(lambda _: event.set())
    return _outcome(effect, core.surroundings.wait(event, effect.seconds))


def _awaited(core: Core, effect: Send | Sleep) -> Future[Any] | None:
    if isinstance(effect, Sleep):
        return effect.until
    effect.answer = start(core, effect)
    return effect.answer


def _outcome(effect: Send | Sleep, is_answered: bool) -> Any:
    if isinstance(effect, Sleep) or effect.answer is None:
        return None
    if not is_answered:
        raise late(effect)
    return effect.answer.result()


async def perform_async(core: Core, effect: Send | Sleep) -> Any:
    """Does one step in an asyncio task."""
    loop = asyncio.get_running_loop()
    answered: asyncio.Future[None] = loop.create_future()

    def set_answered() -> None:
        if not answered.done():
            answered.set_result(None)

    def on_answer(_: object) -> None:
        with suppress(RuntimeError):  # the loop is closed, so no task waits
            loop.call_soon_threadsafe(set_answered)

    future = _awaited(core, effect)
    if future:
        future.add_done_callback(on_answer)
    return _outcome(effect, await core.surroundings.wait_async(answered, effect.seconds))


def play(core: Core, steps: Steps[T]) -> T:
    """Plays the steps of a call in the calling thread. Raises what the steps raise."""
    proceed: Callable[[], Send | Sleep] = partial(next, steps)
    while True:
        try:
            effect = proceed()
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        try:
            proceed = partial(steps.send, perform(core, effect))
        except BaseException as error:
            proceed = partial(steps.throw, error)


async def play_async(core: Core, steps: Steps[T]) -> T:
    """Plays the steps of a call in an asyncio task. Raises what the steps raise."""
    proceed: Callable[[], Send | Sleep] = partial(next, steps)
    while True:
        try:
            effect = proceed()
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        try:
            proceed = partial(steps.send, await perform_async(core, effect))
        except BaseException as error:
            proceed = partial(steps.throw, error)


def later(core: Core, seconds: float, steps: Steps[object]) -> None:
    """Plays the steps of a call after some seconds, unless the process has ended by then. They must not raise."""

    def run() -> None:
        perform(core, Sleep(seconds))
        play(core, steps)

    threading.Thread(target=run, name="holdfast later", daemon=True).start()
