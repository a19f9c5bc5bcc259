"""The rules of `holdfast.durable` after faults. test/durable/python.test.ts plays it over AWS's SDK and the service."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

exceptions = pytest.importorskip("aws_durable_execution_sdk_python.exceptions", reason="AWS's SDK is not installed")

from holdfast import Holdfast, HoldfastError  # noqa: E402
from holdfast.durable import rate, with_lease  # noqa: E402
from holdfast.errors import error_of  # noqa: E402

GRANT = {"leaseId": "e.1", "fence": 7}
FAULT = {"code": "Unavailable", "detail": "a dependency is unavailable", "status": 503, "retryAfterMs": 60_000}


class Execution:
    """An execution that is suspended at each wait, and then replayed, as AWS's SDK does."""

    def __init__(self, callback: Any = None) -> None:
        self.callback = callback
        self.history: list[Any] = []
        self.waits: list[int] = []
        self.timeouts: list[int] = []
        self.replays = 0
        self.execution_context = SimpleNamespace(durable_execution_arn="arn:aws:lambda:r:1:function:f:1/d/order-42/id")
        self.logger = logging.getLogger("test")
        self._next = 0

    def run(self, work: Callable[[Any], Any]) -> Any:
        while self.replays < 50:
            self._next = 0
            self.replays += 1
            try:
                return work(self)
            except exceptions.SuspendExecution:
                continue
        raise AssertionError("the execution does not end")

    def _recorded(self, name: str, act: Callable[[], Any]) -> Any:
        nth, self._next = self._next, self._next + 1
        assert all(" " <= one <= "~" for one in name) and len(name) <= 256
        if nth == len(self.history):
            self.history.append((name, json.loads(json.dumps(act()))))
        assert self.history[nth][0] == name
        return self.history[nth][1]

    def step(self, act: Callable[[Any], Any], name: str) -> Any:
        return self._recorded(name, lambda: act(None))

    def wait(self, duration: Any, name: str) -> None:
        known = self._next < len(self.history)
        self._recorded(name, lambda: self.waits.append(duration.to_seconds()))
        if not known:
            raise exceptions.SuspendExecution("wait")

    def create_callback(self, name: str, config: Any) -> Any:
        self._recorded(name, lambda: self.timeouts.append(config.timeout.to_seconds()))

        def result() -> str:
            if self._recorded("result", lambda: None) is None and self.replays == 1:
                raise exceptions.SuspendExecution("callback")
            if isinstance(self.callback, Exception):
                raise self.callback
            return json.dumps(self.callback)

        return SimpleNamespace(callback_id="cb-1", result=result)


class Service:
    """Answers each call with the next answer of its script."""

    def __init__(self, **scripts: list[Any]) -> None:
        self._scripts = scripts
        self.calls: list[tuple[str, dict[str, Any]]] = []

    def __call__(self, operation: str, request: Any, seconds: float, namespace: str | None) -> Any:
        self.calls.append((operation, dict(request)))
        script = self._scripts.get(operation, [])
        answer = script.pop(0) if script else {"released": True, "parked": True}
        if "code" in answer:
            raise error_of(answer)
        return answer


def client_of(service: Service) -> Holdfast:
    return Holdfast(transport=service, holder="billing")


def operations(service: Service) -> list[str]:
    return [name for name, _ in service.calls]


def test_the_request_names_the_execution_and_the_callback_lasts_longer_than_the_wait() -> None:
    service, execution = Service(), Execution(GRANT)
    got = execution.run(lambda ctx: with_lease(ctx, client_of(service), "größe", lambda lease: lease.fence, limit=5))
    assert (got, execution.timeouts) == (7, [3840])
    assert service.calls[0] == (
        "acquire",
        {
            "key": "größe",
            "holder": "billing/order-42",
            "parkSeconds": 3600,
            "execution": execution.execution_context.durable_execution_arn,
            "graceSeconds": 900,
            "bound": True,
            "limit": 5,
            "callbackId": "cb-1",
        },
    )
    assert service.calls[1:] == [("release", {"key": "größe", "leaseId": "e.1"})]


def test_a_suspension_of_the_body_does_not_release_the_lease() -> None:
    service, execution, released = Service(), Execution(GRANT), []

    def work(ctx: Any) -> None:
        released.append("release" in operations(service))
        ctx.wait(SimpleNamespace(to_seconds=lambda: 60), name="work")

    execution.run(lambda ctx: with_lease(ctx, client_of(service), "k", lambda _: work(ctx)))
    assert released == [False, False]
    assert operations(service) == ["acquire", "release"]


def test_an_error_of_the_body_releases_the_lease() -> None:
    service = Service()

    def work(_: Any) -> None:
        raise KeyError("order")

    with pytest.raises(KeyError):
        Execution(GRANT).run(lambda ctx: with_lease(ctx, client_of(service), "k", work))
    assert operations(service) == ["acquire", "release"]


def test_an_error_after_which_the_invocation_runs_again_keeps_the_lease() -> None:
    service = Service()

    def work(_: Any) -> None:
        raise exceptions.InvocationError("try again")

    with pytest.raises(exceptions.InvocationError):
        Execution(GRANT).run(lambda ctx: with_lease(ctx, client_of(service), "k", work))
    assert operations(service) == ["acquire"]


def test_transient_errors_suspend_the_execution_before_each_retry() -> None:
    service, execution = Service(acquire=[FAULT] * 4), Execution(GRANT)
    assert execution.run(lambda ctx: with_lease(ctx, client_of(service), "k", lambda lease: lease.fence)) == 7
    assert execution.waits == [5, 10, 20, 40]
    assert operations(service) == ["acquire"] * 5 + ["release"]


def test_after_the_last_retry_the_callback_is_awaited_in_case_a_try_joined() -> None:
    service, execution = Service(acquire=[FAULT] * 5), Execution(GRANT)
    assert execution.run(lambda ctx: with_lease(ctx, client_of(service), "k", lambda lease: lease.fence)) == 7
    assert operations(service)[-1] == "release"
    service, execution = Service(acquire=[FAULT] * 5), Execution(exceptions.CallbackTimeoutError("no answer"))
    with pytest.raises(HoldfastError, match="has not answered the callback for k: a dependency") as raised:
        execution.run(lambda ctx: with_lease(ctx, client_of(service), "k", lambda lease: lease.fence))
    assert raised.value.code == "Unreachable"


@pytest.mark.parametrize("code", ["QueueFull", "InvalidRequest", "Forbidden"])
def test_a_permanent_error_reaches_the_handler_with_its_fields_in_each_replay(code: str) -> None:
    service, execution, seen = Service(acquire=[{"code": code, "detail": "no", "limit": 9}]), Execution(GRANT), []

    def handler(ctx: Any) -> None:
        try:
            with_lease(ctx, client_of(service), "k", lambda _: None)
        except HoldfastError as error:
            seen.append((type(error).__name__, error.fields["limit"]))
        ctx.wait(SimpleNamespace(to_seconds=lambda: 60), name="more")

    execution.run(handler)
    assert seen == [(code, 9)] * 2
    assert operations(service) == ["acquire"]


def test_the_problem_of_a_callback_that_failed_is_the_error() -> None:
    problem = {"code": "LeaseHeld", "detail": "k is held by other", "holder": "other", "status": 409}
    failed = exceptions.CallbackExternalError("failed", data=json.dumps(problem))
    with pytest.raises(HoldfastError, match="held by other") as raised:
        Execution(failed).run(lambda ctx: with_lease(ctx, client_of(Service()), "k", lambda _: None))
    assert type(raised.value).__name__ == "LeaseHeld"
    assert raised.value.fields["holder"] == "other"


def test_a_failed_callback_that_is_not_of_holdfast_is_passed_on() -> None:
    failed = exceptions.CallbackExternalError("failed", data="42")
    with pytest.raises(exceptions.CallbackExternalError):
        Execution(failed).run(lambda ctx: with_lease(ctx, client_of(Service()), "k", lambda _: None))


def test_a_retry_of_a_rate_repeats_its_id_and_replays_do_not_pay_again() -> None:
    answer = {"reservation": "r.1", "startAt": "2026-01-01T00:00:30.000Z", "sleepSeconds": 30}
    service, execution = Service(rateReserve=[FAULT, answer], rateSettle=[{"settled": True}]), Execution()

    def handler(ctx: Any) -> bool:
        return rate(ctx, client_of(service), "k", limit=9, per="1m", settle=True).settle({"requests": 2})

    assert execution.run(handler) is True
    assert execution.waits == [5, 30]
    assert operations(service) == ["rateReserve", "rateReserve", "rateSettle"]
    first, second = (request for name, request in service.calls if name == "rateReserve")
    assert first == second
    assert first["waitSeconds"] == 60
