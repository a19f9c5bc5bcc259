"""Leases, permits and rates of durable functions, over `aws-durable-execution-sdk-python`.

The SDK suspends a function by raising a BaseException, so a `with` block or a `finally` would release the lease at each
suspension. `with_lease` releases it only when the body has ended.

Example:
    >>> def work(lease):
    ...     ctx.step(lambda _: charge(event, fence=lease.fence), name="charge")
    ...     ctx.wait(Duration.from_hours(2))
    ...     return ctx.step(lambda _: report(event), name="report")
    >>> with_lease(ctx, client, f"tenant/{event['tenant']}", work, limit=5)
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar

from aws_durable_execution_sdk_python.config import CallbackConfig, Duration
from aws_durable_execution_sdk_python.exceptions import InvocationError

from .acquire import RateTerms
from .client import Holdfast
from .errors import HoldfastError, error_of, is_transient, unreachable
from .rate import max_wait_seconds

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["DurableLease", "DurableLeaseOptions", "DurableStart", "rate", "with_lease"]

T = TypeVar("T")
Act = Callable[[Mapping[str, Any]], Any]
"""Makes one try. It receives the problem of the try before, or an empty mapping."""
Outcome = tuple[Any, "HoldfastError | None", int]
"""The answer, or the error of the last try, and the number of tries."""

MARGIN_SECONDS = 240
"""How long after the wait the callback times out: two minutes for the service to end the wait, and two for retries."""

RETRIES = 4
"""How many times a request is sent again after a transient error. The execution is suspended before each retry."""

STEP_SECONDS = 5.0
"""How long one step repeats its request, in seconds."""


class DurableLeaseOptions(TypedDict, total=False):
    """How a durable function waits for a lease or a permit, and how long it holds it. Times are in seconds."""

    park_seconds: int
    """How long to wait in line, up to a week. The default is 3600. The execution is suspended, and costs nothing."""
    limit: int
    weight: int
    mode: Literal["shared", "exclusive"]
    replace: Literal["waiting", "running"]
    """Latest wins, as for `Holdfast.lease`.

    With `running`, `lease.check()` raises if the execution is asked to stop.
    """
    holder: str
    """The name that other callers see. The default is the holder of the client with the name of the execution."""
    data: Any
    """Any JSON up to 4 KiB that other callers may read."""
    grace_seconds: int
    """How long the lease stays after the execution was stopped or timed out, because its code may still run.

    Up to 900, which is the default. If your function has a shorter timeout, set it to that timeout, and never to less.
    """
    ttl: int
    """How long the lease lasts, if it should not last until the execution ends. Only `lease.check()` extends it."""


class DurableLease:
    """A lease or a permit of a durable execution."""

    def __init__(self, ctx: Any, client: Holdfast, key: str, grant: Mapping[str, Any]) -> None:
        """`with_lease` makes this."""
        self._ctx, self._client, self._lease_id = ctx, client, grant["leaseId"]
        self.key = key
        self.fence: int = grant["fence"]
        """The fencing token, the same in every replay."""

    def check(self) -> None:
        """Asks the service in a step whether the lease is still held, and extends a lease with a `ttl`.

        Call it between the steps of long work, so that the work can stop when it is asked to. The role of the function
        needs the permission for the call `heartbeat`.

        Raises:
            LeaseLost: with the reason `superseded` or `broken` if the body should stop.
            HoldfastError: the service does not answer after four retries.
        """

        def beat(_: object) -> None:
            self._client.heartbeat(key=self.key, lease_id=self._lease_id, timeout=STEP_SECONDS)

        _, failure, _ = _in_steps(self._ctx, "check", self.key, beat)
        if failure:
            raise failure

    def _release(self) -> None:
        """Releases the lease in a step, which the SDK repeats after an error.

        If the last try fails too, only a warning is logged, because the body has done its work.
        """
        call = self._client.release

        def release(_: object) -> bool:
            return bool(call(key=self.key, lease_id=self._lease_id, timeout=STEP_SECONDS)["released"])

        try:
            self._ctx.step(release, name=_name("release", self.key))
        except InvocationError:
            raise
        except Exception as error:
            text = "the release of %s failed: the lease may stay until this execution ends: %s"
            self._ctx.logger.warning(text, self.key, error)


class DurableStart:
    """A reserved start. Its moment has come, so the work may begin."""

    def __init__(self, ctx: Any, client: Holdfast, key: str, answer: Mapping[str, Any]) -> None:
        """`rate` makes this."""
        self._ctx, self._client, self._key, self._reservation = ctx, client, key, answer["reservation"]
        self.start_at: str = answer["startAt"]
        """The earliest start, by the clock of the service, the same in every replay. ISO 8601."""

    def settle(self, units: Mapping[str, float]) -> bool:
        """Corrects the estimates in a step: reports the units that the work really took, by the name of the rate.

        Needs the option `settle`.

        Returns: False if the service did not confirm the report, so that the estimates may stand.
        """
        request = {"key": self._key, "reservation": self._reservation, "units": dict(units)}

        def send(_: object) -> Any:
            return self._client.call("rateSettle", request, timeout=STEP_SECONDS)

        answer, failure, _ = _in_steps(self._ctx, "settle", self._key, send)
        if failure and not is_transient(failure):
            raise failure
        if failure:
            self._ctx.logger.warning("the units for %s were not reported: the estimates stand: %s", self._key, failure)
        return not failure and bool(answer.get("settled"))


def with_lease(
    ctx: Any, client: Holdfast, key: str, body: Callable[[DurableLease], T], **options: Unpack[DurableLeaseOptions]
) -> T:
    """Runs the body of a durable function under a lease or a permit.

    The execution is suspended while it waits in line, and keeps the lease while the body is suspended. The lease is
    released after the body, and at the latest `grace_seconds` after the end of the execution. The body runs again in
    each replay, like all code outside of steps, so put effects into steps.

    Args:
        ctx: the context of the handler, or of a branch of `ctx.parallel`.
        client: a client whose `holder` is the same in each invocation.
        options: see `DurableLeaseOptions`.

    Raises:
        LeaseHeld: others still hold the key after `park_seconds`.
        QueueFull: the line is full. Call `ctx.wait`, and then `with_lease` again.
        Unreachable: the callback has no answer four minutes after `park_seconds`.
        HoldfastError: the other errors of `Holdfast.lease`.
    """
    lease = DurableLease(ctx, client, key, _wait_in_line(ctx, client, key, options))
    try:
        result = body(lease)
    except InvocationError:
        raise  # the SDK runs the execution again, and the body goes on under this lease
    except Exception:  # not BaseException: a suspension passes through here
        lease._release()
        raise
    lease._release()
    return result


def rate(
    ctx: Any,
    client: Holdfast,
    key: str,
    *,
    rates: Sequence[RateTerms] | None = None,
    wait_seconds: int = 3600,
    settle: bool = False,
    holder: str | None = None,
    **terms: Unpack[RateTerms],
) -> DurableStart:
    """Suspends the execution until the work may start. The arguments are those of `Holdfast.rate`.

    If the work also needs a permit, call it in the body of `with_lease`.

    Args:
        wait_seconds: how late the start may be: at most a week, or with `settle` the longest period.

    Raises:
        RateExceeded: the start would be later.

    Example:
        >>> start = rate(ctx, client, "openai", name="tokens", limit=100_000, per="1m", units=2000, settle=True)
        >>> start.settle({"tokens": ctx.step(lambda _: ask(prompt), name="ask")})
    """
    all_rates: list[Any] = [dict(one) for one in rates or [terms]]
    wait_seconds = min(wait_seconds, max_wait_seconds(all_rates, settle))
    request = {"key": key, "holder": holder or _holder(ctx, client), "rates": all_rates, "waitSeconds": wait_seconds}

    def reserve(before: Mapping[str, Any]) -> Any:
        # Later steps repeat the id, so that a retry does not pay again.
        named = {"requestId": before.get("requestId") or client.core.surroundings.uuid()}
        try:
            more = {"settle": True} if settle else {}
            return client.call("rateReserve", {**request, **named, **more}, timeout=STEP_SECONDS)
        except HoldfastError as error:
            raise error_of({**error.fields, **named}) from error

    answer, failure, _ = _in_steps(ctx, "reserve", key, reserve)
    if failure:
        raise failure
    if answer["sleepSeconds"] > 0:
        ctx.wait(Duration.from_seconds(answer["sleepSeconds"]), name=_name("start", key))
    return DurableStart(ctx, client, key, answer)


def _in_steps(ctx: Any, verb: str, key: str, act: Act, request: Mapping[str, Any] | None = None) -> Outcome:
    """Runs a call in a step. After a transient error, suspends the execution and runs the call again.

    The error is returned as a result of the step, because a replay keeps only the message of an error that a step
    raises.
    """
    before: Mapping[str, Any] = {}
    for tries in itertools.count(1):

        def step(_: object, last: Mapping[str, Any] = before) -> dict[str, Any]:
            try:
                return {"value": act(last)}
            except HoldfastError as error:
                return {"problem": dict(error.fields)}

        outcome = ctx.step(step, name=_name(verb, key))
        if "value" in outcome:
            return outcome["value"], None, tries
        before = outcome["problem"]
        failure = error_of(outcome["problem"])
        if not is_transient(failure, request) or tries > RETRIES:
            return None, failure, tries
        ctx.wait(Duration.from_seconds(5 * 2 ** (tries - 1)), name=_name("try again for", key))
    raise AssertionError  # never: the count has no end


def _name(verb: str, key: str) -> str:
    """The name of an operation, which must be the same in every replay. AWS allows 256 printable ASCII characters."""
    return re.sub("[^ -~]", lambda found: f"\\u{ord(found[0]):x}", f"{verb} {key}")[:256]


def _holder(ctx: Any, client: Holdfast) -> str:
    """The default holder: the name of the execution distinguishes executions of one function in line."""
    return f"{client.holder}/{ctx.execution_context.durable_execution_arn.split('/')[-2]}"


def _wait_in_line(ctx: Any, client: Holdfast, key: str, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Waits in line while the execution is suspended, and returns the grant. Raises the errors of `with_lease`."""
    unknown = set(options) - set(DurableLeaseOptions.__annotations__)
    if unknown:
        raise TypeError(f"there is no option {min(unknown)!r}")
    given = {name: value for name, value in options.items() if value is not None}
    park_seconds = given.pop("park_seconds", 3600)
    ends = {"ttlSeconds": given.pop("ttl")} if "ttl" in given else {"bound": True}
    ends["graceSeconds"] = given.pop("grace_seconds", 900)
    named = {"key": key, "holder": given.pop("holder", None) or _holder(ctx, client), "parkSeconds": park_seconds}
    request = {**named, "execution": ctx.execution_context.durable_execution_arn, **ends, **given}
    if "ttlSeconds" in request:
        ctx.logger.warning("the lease of %s expires after its ttl, unless check() extends it", key)
    timeout = Duration.from_seconds(park_seconds + MARGIN_SECONDS)
    callback = ctx.create_callback(name=_name("lease", key), config=CallbackConfig(timeout=timeout))
    request["callbackId"] = callback.callback_id

    def park(_: object) -> None:
        client.call("acquire", request, timeout=STEP_SECONDS)

    _, failure, tries = _in_steps(ctx, "park", key, park, request)
    if failure and tries == 1:
        raise failure
    if failure:
        # A try without an answer may be in line, and would be granted later. If this call stopped now, no call would
        # release that grant.
        ctx.logger.warning("the request for %s may be in line: waiting for its callback: %s", key, failure)
    try:
        text = callback.result()
    except InvocationError:
        raise
    except Exception as error:
        refused = _refused(key, error, failure)
        if refused is None:
            raise
        raise refused from error
    grant: Mapping[str, Any] = json.loads(text)
    return grant


def _refused(key: str, error: Exception, failure: HoldfastError | None) -> HoldfastError | None:
    """The problem with which the service failed the callback, as an error. None if the error is not from Holdfast."""
    if type(error).__name__ == "CallbackTimeoutError":
        why = f": {failure}" if failure else ""
        return unreachable(f"Holdfast has not answered the callback for {key}{why}")
    try:
        problem = json.loads(str(getattr(error, "data", "")))
    except ValueError:
        return None
    is_problem = isinstance(problem, dict) and all(isinstance(problem.get(one), str) for one in ("code", "detail"))
    return error_of(problem) if is_problem else None
