"""The client for asyncio: the names and options of `holdfast`, with functions to await.

Example:
    >>> from holdfast import aio
    >>> async with aio.lease("nightly", wait=600) as lease:
    ...     await build_report(fence=lease.fence)
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from .acquire import LeaseOptions, acquire, acquisition
from .attempt import assert_seconds, call
from .base import Base, Key, OnHeld, assert_has_run, assert_known, default_client, is_skipped, key_of, takes_lease
from .contract import AsyncCalls
from .errors import HoldfastError
from .lease import Heartbeats, LeaseState
from .once import OnceAnswer, OnceOptions, acquisition_of_run, answer_of, complete
from .rate import RateOptions, Reservation, no_rates
from .sigterm import ended_by_sigterm
from .steps import play_async
from .surroundings import moment, since
from .view import LeaseView, Run, StartView

if TYPE_CHECKING:
    from typing_extensions import Unpack

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

_tasks: set[asyncio.Task[Any]] = set()
"""The tasks that run: heartbeats and releases.

The loop has only weak references to tasks, so without this set one could vanish.
"""


def _task(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    task = asyncio.create_task(work)
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)
    return task


def _setter(loop: asyncio.AbstractEventLoop, event: asyncio.Event) -> Callable[[], None]:
    """Returns a function that sets an event of a loop, and that any thread may call."""

    def set_event() -> None:
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(event.set)

    return set_event


def _start_heartbeats(kept: LeaseState) -> None:
    """Starts a task that sends the heartbeats of a lease, and ends with the lease."""
    heartbeats, changed, surroundings = Heartbeats(kept), asyncio.Event(), kept.core.surroundings
    kept.on_change = _setter(asyncio.get_running_loop(), changed)

    async def keep() -> None:
        while (seconds := heartbeats.beat_if_due()) is not None:
            waiting = asyncio.ensure_future(changed.wait())
            try:
                await surroundings.wait_async(waiting, seconds)
            finally:
                waiting.cancel()
            changed.clear()
        if kept.lost and kept.local.on_lost:
            done = kept.local.on_lost(kept.lost)
            if inspect.isawaitable(done):
                await done

    _task(keep())


class Lease(LeaseView):
    """A lease or a permit that a task extends until it is released or lost. A loss is final.

    While your code blocks the event loop, heartbeats cannot be sent. If the lease is lost because of that, `check`
    raises afterwards.
    """

    def __init__(self, kept: LeaseState) -> None:
        """The client calls this. Use `acquire` or `lease` instead."""
        super().__init__(kept)
        _start_heartbeats(kept)
        self._released: asyncio.Task[bool] | None = None
        self._reservation: Reservation | None = None

    async def release(self, timeout: float | None = None) -> bool:
        """Releases the lease, even if your task is cancelled during the call. See `holdfast.Lease.release`."""
        if self._released is None:
            seconds = self._kept.local.release_timeout if timeout is None else timeout
            assert_seconds(timeout=seconds)
            self._released = _task(play_async(self._kept.core, self._kept.release(seconds)))
        return await asyncio.shield(self._released)

    async def settle(self, units: Mapping[str, float]) -> bool:
        """Corrects the estimates by the units that the work really took. See `holdfast.Lease.settle`."""
        if self._reservation is None:
            raise no_rates()
        return await play_async(self._kept.core, self._reservation.settle(units))

    async def __aenter__(self) -> Lease:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        lost = self.lost
        await self.release()
        if lost and kind is None:
            raise lost


class RateStart(StartView):
    """A reserved start. Its moment has come, so the work may begin."""

    async def settle(self, units: Mapping[str, float]) -> bool:
        """Corrects the estimates by the units that the work really took. See `holdfast.RateStart.settle`."""
        return await play_async(self._reservation.core, self._reservation.settle(units))


class Holdfast(Base, AsyncCalls):
    """A client of one deployment, for asyncio. It has the methods of `holdfast.Holdfast`, which you await.

    Example:
        >>> client = aio.Holdfast("http://127.0.0.1:3000", holder="worker-1")
        >>> async with client.lease("nightly", wait=600) as lease:
        ...     await build_report(fence=lease.fence)
    """

    @classmethod
    def from_env(cls, **given: Any) -> Holdfast:
        """Makes a client from the environment. See `holdfast.Holdfast.from_env`."""
        return cls(**cls.options_from_env(given))

    async def call(self, operation: str, request: Mapping[str, Any], *, timeout: float = 30.0) -> Any:
        """Sends a call of the API, and repeats it after transient failures. See `holdfast.Holdfast.call`."""
        return await play_async(self.core, call(self.core, operation, request, timeout))

    async def acquire(self, key: str, **options: Unpack[LeaseOptions]) -> Lease:
        """Acquires a lease or a permit, which you must release. See `holdfast.Holdfast.acquire`."""
        assert_known("lease", options)
        started_at = moment(self.core.surroundings)
        asking = acquisition(self.core, key, self.holder, options)
        try:
            lease = Lease(await play_async(self.core, acquire(asking)))
            if options.get("rates"):
                took = since(self.core.surroundings, started_at)
                reservation = Reservation.under(lease._kept, lease.holder, options, took)
                await play_async(self.core, reservation.steps(lease._kept))
                lease.check()
                lease._reservation = reservation
            return lease
        except BaseException:
            await play_async(self.core, asking.give_up())
            raise

    @asynccontextmanager
    async def lease(self, key: str, **options: Unpack[LeaseOptions]) -> AsyncIterator[Lease]:
        """Holds a lease or a permit while an `async with` block runs. See `holdfast.Holdfast.lease`."""
        with ended_by_sigterm():
            async with await self.acquire(key, **options) as lease:
                yield lease

    def exclusive(self, key: Key, *, on_held: OnHeld = "throw", **options: Unpack[LeaseOptions]) -> Callable[[F], F]:
        """Runs each call of an async function under a lease. See `holdfast.Holdfast.exclusive`."""
        return exclusive_by(lambda: self, key, on_held, options)

    async def rate(self, key: str, **options: Unpack[RateOptions]) -> RateStart:
        """Waits until the rates of a key allow the work to start. See `holdfast.Holdfast.rate`."""
        assert_known("rate", options)
        reservation = Reservation(self.core, key, self.holder, options)
        with ended_by_sigterm():
            return RateStart(reservation, await play_async(self.core, reservation.steps()))

    async def once(
        self, key: str, work: Callable[[Run], Awaitable[T]], **options: Unpack[OnceOptions]
    ) -> OnceAnswer[T]:
        """Runs work once for a slot, and returns its result to other callers. See `holdfast.Holdfast.once`."""
        assert_known("once", options)
        if not callable(work):
            raise TypeError("work must be a function")
        with ended_by_sigterm():
            asking = acquisition_of_run(self.core, key, self.holder, options)
            try:
                begun = await play_async(self.core, asking.steps())
                if not isinstance(begun, LeaseState):
                    return answer_of(begun)
                _start_heartbeats(begun)
                run = Run(begun)
                result = await work(run)
                assert_has_run(result)
                run.raise_if_lost()
            except BaseException:
                await play_async(self.core, asking.give_up())
                raise
            timeout = max(options.get("timeout", 30.0), begun.local.release_timeout)
            return await play_async(self.core, complete(begun, result, timeout))


def exclusive_by(client: Callable[[], Holdfast], key: Key, on_held: OnHeld, options: LeaseOptions) -> Callable[[F], F]:
    """The decorator for async functions. It gets the client at each call, because the environment may be set later."""
    assert_known("lease", options, on_held)

    def decorate(function: F) -> F:
        if not inspect.iscoroutinefunction(function):
            raise TypeError("a function that is not async needs `exclusive` of holdfast")
        injects = takes_lease(function)

        @functools.wraps(function)
        async def under_lease(*args: Any, **kwargs: Any) -> Any:
            async with AsyncExitStack() as stack:
                try:
                    lease = await stack.enter_async_context(client().lease(key_of(key, args, kwargs), **options))
                except HoldfastError as error:
                    if is_skipped(on_held, error):
                        return None
                    raise
                return await function(*args, **kwargs, **({"lease": lease} if injects else {}))

        return under_lease  # type: ignore[return-value]

    return decorate


def client() -> Holdfast:
    """Returns the client that the functions of this module use. See `holdfast.client`."""
    return default_client(Holdfast)


def lease(key: str, **options: Unpack[LeaseOptions]) -> Any:
    """Holds a lease or a permit while an `async with` block runs. See `holdfast.lease`."""
    return client().lease(key, **options)


def exclusive(key: Key, *, on_held: OnHeld = "throw", **options: Unpack[LeaseOptions]) -> Callable[[F], F]:
    """Runs each call of an async function under a lease. See `holdfast.exclusive`."""
    return exclusive_by(client, key, on_held, options)


async def rate(key: str, **options: Unpack[RateOptions]) -> RateStart:
    """Waits until the rates of a key allow the work to start. See `holdfast.rate`."""
    return await client().rate(key, **options)


async def once(key: str, work: Callable[[Run], Awaitable[T]], **options: Unpack[OnceOptions]) -> OnceAnswer[T]:
    """Runs work once for a slot, and returns its result to other callers. See `holdfast.once`."""
    return await client().once(key, work, **options)
