"""The client for threads. `aio.py` is its twin for asyncio."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from .acquire import LeaseOptions, acquire, acquisition
from .attempt import assert_seconds, call
from .base import Base, Key, OnHeld, assert_has_run, assert_known, is_skipped, key_of, takes_lease
from .contract import Calls
from .errors import HoldfastError
from .lease import Heartbeats, LeaseState
from .once import OnceAnswer, OnceOptions, acquisition_of_run, answer_of, complete
from .rate import RateOptions, Reservation, no_rates
from .sigterm import ended_by_sigterm
from .steps import play
from .surroundings import moment, since
from .view import LeaseView, Run, StartView

if TYPE_CHECKING:
    from typing_extensions import Unpack

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


def _start_heartbeats(kept: LeaseState) -> None:
    """Starts a thread that sends the heartbeats of a lease. It ends with the lease, or with the process."""
    heartbeats, changed, surroundings = Heartbeats(kept), threading.Event(), kept.core.surroundings
    kept.on_change = changed.set

    def keep() -> None:
        while (seconds := heartbeats.beat_if_due()) is not None:
            surroundings.wait(changed, seconds)
            changed.clear()
        if kept.lost and kept.local.on_lost:
            kept.local.on_lost(kept.lost)

    threading.Thread(target=keep, name=f"holdfast keeps {kept.key}", daemon=True).start()


class Lease(LeaseView):
    """A lease or a permit that a thread extends until it is released or lost. A loss is final."""

    def __init__(self, kept: LeaseState) -> None:
        """The client calls this. Use `acquire`, `lease` or `rate` instead."""
        super().__init__(kept)
        _start_heartbeats(kept)
        self._releasing = threading.RLock()  # a signal handler may release while this thread does
        self._released: bool | None = None
        self._reservation: Reservation | None = None

    def release(self, timeout: float | None = None) -> bool:
        """Releases the lease, so that the next waiter has it at once. Never raises an error of the service.

        Call it when the work has stopped, even after a loss, because a lease that was broken or superseded may stay
        until its release. A lease that cannot be released expires.

        Args:
            timeout: how long the release with its retries may take, in seconds. The default is `release_timeout`.

        Returns: True if the service confirmed the release. Otherwise the lease was lost, or it expires.
        """
        with self._releasing:
            if self._released is None:
                timeout = self._kept.local.release_timeout if timeout is None else timeout
                assert_seconds(timeout=timeout)
                self._released = play(self._kept.core, self._kept.release(timeout))
            return self._released

    def settle(self, units: Mapping[str, float]) -> bool:
        """Corrects the estimates: reports the units that the work really took, by the name of the rate.

        Needs the options `rates` and `settle`.

        Returns: False if the service did not confirm the report, so that the estimates may stand.

        Example:
            >>> lease.settle({"tokens": 900})
        """
        if self._reservation is None:
            raise no_rates()
        return play(self._kept.core, self._reservation.settle(units))

    def __enter__(self) -> Lease:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            lost = self.lost
            self.release()
        except BaseException:  # such as a second Ctrl-C
            self.release()
            raise
        if lost and kind is None:
            raise lost


class LeaseBlock:
    """Acquires a lease at the beginning of a `with` block, and releases it at the end."""

    def __init__(self, acquire: Callable[[], Lease]) -> None:
        """The client calls this. Use `lease` instead."""
        self._acquire = acquire
        self._leases: list[Lease] = []
        self._sigterm = ended_by_sigterm()

    def __enter__(self) -> Lease:
        self._sigterm.__enter__()
        try:
            self._leases.append(self._acquire())
        except BaseException:
            self._sigterm.__exit__(None, None, None)
            raise
        return self._leases[0]

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._leases[0].__exit__(kind, error, trace)
        finally:
            self._sigterm.__exit__(None, None, None)


class RateStart(StartView):
    """A reserved start. Its moment has come, so the work may begin."""

    def settle(self, units: Mapping[str, float]) -> bool:
        """Corrects the estimates: reports the units that the work really took, by the name of the rate.

        Needs the option `settle`.

        Returns: False if the estimates stand: the service did not answer, or the reservation was settled before, or is
            older than 15 minutes.

        Example:
            >>> start.settle({"tokens": 900})
        """
        return play(self._reservation.core, self._reservation.settle(units))


class Holdfast(Base, Calls):
    """A client of one deployment, for threads.

    Example:
        >>> client = holdfast.Holdfast("http://127.0.0.1:3000", holder="worker-1")
        >>> with client.lease("nightly", wait=600) as lease:
        ...     build_report(fence=lease.fence)
    """

    @classmethod
    def from_env(cls, **given: Any) -> Holdfast:
        """Makes a client from HOLDFAST_ENDPOINT, HOLDFAST_NAMESPACE, HOLDFAST_TOKEN and HOLDFAST_HOLDER.

        Options of the constructor that you pass take precedence over the environment.

        Raises:
            ValueError: HOLDFAST_ENDPOINT is not set, or the constructor refuses an option.
        """
        return cls(**cls.options_from_env(given))

    def call(self, operation: str, request: Mapping[str, Any], *, timeout: float = 30.0) -> Any:
        """Sends any call of the API by its name, and repeats it after transient failures.

        Each call is also a method of its own.

        Args:
            timeout: how long to retry after transient failures, in seconds.

        Example:
            >>> client.call("whoami", {})["version"]
        """
        return play(self.core, call(self.core, operation, request, timeout))

    def acquire(self, key: str, **options: Unpack[LeaseOptions]) -> Lease:
        """Acquires a lease or a permit that you release yourself, for example in another function.

        If one block of code does the work, `lease` also releases it for you. The options are those of `LeaseOptions`.
        Times are in seconds.

        Raises:
            LeaseHeld: others still hold the key at the end of the wait.
            RateExceeded: the rates allow no start in time.
            Superseded: a newer request has replaced this one.
            HoldfastError: the errors of every call.

        Example:
            >>> lease = client.acquire("nightly", wait=600)
            >>> lease.release()
        """
        assert_known("lease", options)
        started_at = moment(self.core.surroundings)
        asking = acquisition(self.core, key, self.holder, options)
        try:
            lease = Lease(play(self.core, acquire(asking)))
            if options.get("rates"):
                took = since(self.core.surroundings, started_at)
                reservation = Reservation.under(lease._kept, lease.holder, options, took)
                play(self.core, reservation.steps(lease._kept))
                lease.check()
                lease._reservation = reservation
            return lease
        except BaseException:  # any exception, such as Ctrl-C, because only this call can release the grant
            play(self.core, asking.give_up())
            raise

    def lease(self, key: str, **options: Unpack[LeaseOptions]) -> LeaseBlock:
        """Holds a lease or a permit while a `with` block runs, and then releases it.

        The options are those of `LeaseOptions`. Times are in seconds.

        In the main thread, SIGTERM ends the block by SystemExit, unless the program has a handler of its own. Raises
        the errors of `acquire`, and LeaseLost if the lease was lost and the block ends without an error.

        Example:
            >>> with client.lease("nightly", wait=600) as lease:
            ...     for step in steps:
            ...         lease.check()
            ...         step(fence=lease.fence)
        """
        assert_known("lease", options)
        return LeaseBlock(lambda: self.acquire(key, **options))

    def exclusive(self, key: Key, *, on_held: OnHeld = "throw", **options: Unpack[LeaseOptions]) -> Callable[[F], F]:
        """Decorates a function so that each call runs under a lease.

        A parameter `lease` of the function receives the lease.

        Args:
            key: the key, or a function of the arguments that returns it.
            on_held: if others hold the key after the wait, `throw` raises LeaseHeld, and `skip` returns None.
            options: those of `LeaseOptions`. Times are in seconds.

        Example:
            >>> @client.exclusive(lambda tenant: f"tenant/{tenant}", wait=60)
            ... def bill(tenant, *, lease=None): ...
        """
        return exclusive_by(lambda: self, key, on_held, options)

    def rate(self, key: str, **options: Unpack[RateOptions]) -> RateStart:
        """Waits until the work may start.

        All callers together start no more units in a period than the rate allows.

        The options are those of `RateOptions`. Times are in seconds.

        Raises:
            RateExceeded: at once, if the start would be later than `wait`.

        Example:
            >>> client.rate("vendor", limit=50, per="1m", wait=600)
        """
        assert_known("rate", options)
        reservation = Reservation(self.core, key, self.holder, options)
        with ended_by_sigterm():
            return RateStart(reservation, play(self.core, reservation.steps()))

    def once(self, key: str, work: Callable[[Run], T], **options: Unpack[OnceOptions]) -> OnceAnswer[T]:
        """Runs work once for a slot, such as a backup for each day.

        One caller at a time works, and when the work has returned, all others receive its result. If the work raises,
        or the process ends, the next caller works. The options are those of `OnceOptions`, with times in seconds.

        Raises:
            LeaseHeld: another caller still works when the wait is over.
            LeaseLost: the run was lost before the result was stored.
            OutcomeUnknown: the work has run, and no answer says whether the slot is done.
            Conflict: the slot is done with another `input_hash`.

        Example:
            >>> client.once("backup", lambda run: back_up(run.slot), per="1d", zone="Europe/Berlin", ttl=600).outcome
            'ran'
        """
        assert_known("once", options)
        if not callable(work) or inspect.iscoroutinefunction(work):
            raise TypeError("work must be a function; an async function needs `once` of holdfast.aio")
        with ended_by_sigterm():
            asking = acquisition_of_run(self.core, key, self.holder, options)
            try:
                begun = play(self.core, asking.steps())
                if not isinstance(begun, LeaseState):
                    return answer_of(begun)
                _start_heartbeats(begun)
                run = Run(begun)
                result = work(run)
                assert_has_run(result)
                run.raise_if_lost()
            except BaseException:
                play(self.core, asking.give_up())
                raise
            timeout = max(options.get("timeout", 30.0), begun.local.release_timeout)
            return play(self.core, complete(begun, result, timeout))


def exclusive_by(client: Callable[[], Holdfast], key: Key, on_held: OnHeld, options: LeaseOptions) -> Callable[[F], F]:
    """The decorator for functions. It gets the client at each call, because the environment may be set later."""
    assert_known("lease", options, on_held)

    def decorate(function: F) -> F:
        if inspect.iscoroutinefunction(function):
            raise TypeError("an async function needs `exclusive` of holdfast.aio")
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError("a generator would run after the lease has ended: hold the lease in its body")
        injects = takes_lease(function)

        @functools.wraps(function)
        def under_lease(*args: Any, **kwargs: Any) -> Any:
            with ExitStack() as stack:
                try:
                    lease = stack.enter_context(client().lease(key_of(key, args, kwargs), **options))
                except HoldfastError as error:
                    if is_skipped(on_held, error):
                        return None
                    raise
                result = function(*args, **kwargs, **({"lease": lease} if injects else {}))
                assert_has_run(result)
                return result

        return under_lease  # type: ignore[return-value]

    return decorate
