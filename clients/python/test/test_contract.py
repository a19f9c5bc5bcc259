"""The generated part of the client: calls and their requests, lists page by page, and classes of errors."""

from __future__ import annotations

import asyncio
import inspect
import json
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from holdfast.contract import ERRORS, ROUTES, AsyncCalls, Calls, LeaseHeld
from holdfast.errors import HoldfastError, error_of

CONTRACT = json.loads((Path(__file__).parents[3] / "contract" / "openapi.json").read_text())
Sent = list[tuple[str, dict[str, Any]]]


class Recorder(Calls):
    """A client that gives prepared answers, and records the calls."""

    def __init__(self, *answers: Any) -> None:
        self.sent: Sent = []
        self.answers = list(answers)

    def call(self, operation: str, request: Mapping[str, Any], *, timeout: float = 30.0) -> Any:
        self.sent.append((operation, dict(request)))
        return self.answers.pop(0) if self.answers else {}


class AsyncRecorder(AsyncCalls):
    """A recorder for asyncio."""

    def __init__(self, *answers: Any) -> None:
        self.recorder = Recorder(*answers)

    async def call(self, operation: str, request: Mapping[str, Any], *, timeout: float = 30.0) -> Any:
        return self.recorder.call(operation, request, timeout=timeout)


def test_each_operation_of_the_contract_has_a_route() -> None:
    stated = {
        operation["operationId"]: (method.upper(), path)
        for path, methods in CONTRACT["paths"].items()
        if not path.startswith("/v1/ns/")
        for method, operation in methods.items()
    }
    assert {name: (method, f"/v1/{path}".replace("/v1/..", "")) for name, (method, path) in ROUTES.items()} == stated


def test_each_operation_but_acquire_is_a_method_of_both_clients() -> None:
    for kind in (Recorder, AsyncRecorder):
        sent: Sent = []
        for name, method in inspect.getmembers(kind, inspect.isfunction):
            if name in ("call", "__init__", "leases", "names", "commits_in_flight", "expired"):
                continue
            client = kind()
            required = [p.name for p in inspect.signature(method).parameters.values() if p.default is p.empty][1:]
            answer = getattr(client, name)(**{argument: "x" for argument in required})
            if inspect.iscoroutine(answer):
                asyncio.run(answer)
            sent += client.sent if isinstance(client, Recorder) else client.recorder.sent
        assert sorted(operation for operation, _ in sent) == sorted(set(ROUTES) - {"acquire"})


def test_a_request_has_only_the_arguments_that_were_given() -> None:
    client = Recorder()
    client.read_leases(key="nightly", waiters=True)
    client.break_lease(key="nightly", fence=12, wait=False)
    client.whoami()
    assert client.sent == [
        ("readLeases", {"key": "nightly", "waiters": True}),
        ("breakLease", {"key": "nightly", "fence": 12, "wait": False}),
        ("whoami", {}),
    ]


def test_none_lifts_a_cap_and_a_missing_argument_keeps_it() -> None:
    client = Recorder()
    client.cap(key="nightly", limit=None, reason="done")
    client.cap(key="nightly", limit=0)
    client.reset_fence(path="a", if_match='"e"', expected_fence={"key": "k", "token": 1}, fence=None)
    assert [request for _, request in client.sent] == [
        {"key": "nightly", "limit": None, "reason": "done"},
        {"key": "nightly", "limit": 0},
        {"path": "a", "ifMatch": '"e"', "expectedFence": {"key": "k", "token": 1}, "fence": None},
    ]


def test_a_call_with_several_kinds_of_requests_sends_the_fields_of_one() -> None:
    client = Recorder()
    client.publish(op="publishCommit", alias="books", address="s3://books/2", t=2)
    client.publish(op="compareAndSetRef", alias="books", ref="commit", expected=None, next={"address": "a", "t": 1})
    assert [request for _, request in client.sent] == [
        {"op": "publishCommit", "alias": "books", "address": "s3://books/2", "t": 2},
        {
            "op": "compareAndSetRef",
            "alias": "books",
            "ref": "commit",
            "expected": None,
            "next": {"address": "a", "t": 1},
        },
    ]


PAGES = (
    {"leases": [{"key": "a"}], "nextCursor": "1"},
    {"leases": [], "nextCursor": "2"},
    {"leases": [{"key": "b"}, {"key": "c"}], "nextCursor": None},
)


def test_a_list_yields_the_rows_of_all_pages_even_after_an_empty_page() -> None:
    client = Recorder(*PAGES)
    assert [row["key"] for row in client.leases(prefix="jobs/")] == ["a", "b", "c"]
    assert [request for _, request in client.sent] == [
        {"prefix": "jobs/"},
        {"prefix": "jobs/", "cursor": "1"},
        {"prefix": "jobs/", "cursor": "2"},
    ]


def test_a_list_with_asyncio_yields_the_same_rows() -> None:
    client = AsyncRecorder(*PAGES)

    async def keys() -> list[str]:
        return [row["key"] async for row in client.leases(prefix="jobs/")]

    assert asyncio.run(keys()) == ["a", "b", "c"]
    assert [request.get("cursor") for _, request in client.recorder.sent] == [None, "1", "2"]


def test_each_code_of_the_contract_has_a_class_with_the_name_of_the_code() -> None:
    codes = CONTRACT["components"]["schemas"]["Problem"]["properties"]["code"]["enum"]
    assert set(ERRORS) == {*codes, "Refused", "Unreachable"}
    assert all(kind.__name__ == code and issubclass(kind, HoldfastError) for code, kind in ERRORS.items())


def test_an_error_has_the_fields_of_its_problem_and_none_for_the_others() -> None:
    problem = {"code": "LeaseHeld", "detail": "held by b", "status": 409, "key": "nightly", "holder": "b"}
    with pytest.raises(LeaseHeld) as caught:
        raise error_of({**problem, "expiresAt": "2026-01-01T00:00:00.000Z", "traceId": "t"})
    error = caught.value
    assert (error.holder, error.expires_at, error.status, error.trace_id) == ("b", "2026-01-01T00:00:00.000Z", 409, "t")
    assert (error.place, error.cap, error.retry_after_ms, error.retry_with) == (None, None, None, None)
    assert str(error) == "held by b"


def test_an_error_is_the_same_in_another_process() -> None:
    error = error_of({"code": "LeaseLost", "detail": "gone", "key": "nightly", "reason": "taken", "holder": None})
    copied = pickle.loads(pickle.dumps(error))
    assert (type(copied), copied.fields) == (type(error), error.fields)
