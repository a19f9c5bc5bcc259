from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import aio
from holdfast.testing import ManualClock, MemoryService, async_client, client


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def service(clock: ManualClock) -> MemoryService:
    return MemoryService(clock)


def started(act: Any, *args: Any) -> threading.Thread:
    thread = threading.Thread(target=act, args=args)
    thread.start()
    return thread


def test_a_held_key_is_refused_until_the_test_releases_it(service: MemoryService) -> None:
    release = service.hold("nightly", holder="other", ttl=30)
    with pytest.raises(holdfast.LeaseHeld) as raised:
        client(service).acquire("nightly")
    error = raised.value
    assert (error.holder, error.key, error.retry_after_ms, error.status) == ("other", "nightly", 30_000, 409)
    assert release()
    with client(service).lease("nightly") as lease:
        assert lease.fence == 2


def test_heartbeats_that_are_due_are_sent_while_the_test_advances_the_time(
    service: MemoryService, clock: ManualClock
) -> None:
    events: list[str] = []
    own = holdfast.Holdfast(
        transport=service, surroundings=clock, holder="own", on_event=lambda one: events.append(one["type"])
    )
    with own.lease("nightly", ttl=60) as lease:
        clock.advance(180)
        assert lease.held
        assert events == ["acquired", *["beat"] * 10]
        with pytest.raises(holdfast.LeaseHeld):
            client(service, "other").acquire("nightly")


def test_callers_in_line_run_in_the_order_of_their_arrival(service: MemoryService, clock: ManualClock) -> None:
    ran: list[tuple[str, float]] = []
    began = clock.monotonic()

    def work(name: str, seconds: float) -> None:
        with client(service, name).lease("nightly", wait=3600):
            ran.append((name, clock.monotonic() - began))
            clock.wait(threading.Event(), seconds)

    threads = []
    for name, seconds in (("a", 100.0), ("b", 50.0), ("c", 7.0)):
        threads.append(started(work, name, seconds))
        clock.advance(0)
    clock.advance(400)
    for thread in threads:
        thread.join(5)
    assert ran == [("a", 0.0), ("b", 100.0), ("c", 150.0)]


def test_tasks_in_line_run_in_the_order_of_their_arrival(service: MemoryService, clock: ManualClock) -> None:
    ran: list[tuple[str, float]] = []
    began = clock.monotonic()

    async def work(name: str) -> None:
        async with async_client(service, name).lease("nightly", wait=3600):
            ran.append((name, clock.monotonic() - began))
            await clock.wait_async(asyncio.get_running_loop().create_future(), 30)

    async def main() -> None:
        tasks = []
        for name in "abc":
            tasks.append(asyncio.create_task(work(name)))
            await clock.advance_async(1)
        await clock.advance_async(100)
        await asyncio.gather(*tasks)

    asyncio.run(main())
    assert ran == [("a", 0.0), ("b", 30.0), ("c", 60.0)]


@pytest.mark.parametrize("reason", ["taken", "broken", "unknown"])
def test_a_holder_learns_of_a_loss_by_its_next_heartbeat(
    service: MemoryService, clock: ManualClock, reason: Any
) -> None:
    losses: list[Any] = []
    with pytest.raises(holdfast.LeaseLost), client(service).lease("nightly", on_lost=losses.append) as lease:
        service.lose("nightly", reason)
        assert lease.held
        clock.advance(20)
        assert not lease.held
    assert [error.reason for error in losses] == [reason]


def test_a_pause_over_the_deadline_loses_the_lease(service: MemoryService, clock: ManualClock) -> None:
    with pytest.raises(holdfast.LeaseLost, match="deadline"), client(service).lease("nightly") as lease:
        clock.pause(59)
        lease.check()


def test_a_machine_that_sleeps_loses_the_lease_by_the_wall_clock(service: MemoryService, clock: ManualClock) -> None:
    with pytest.raises(holdfast.LeaseLost, match="deadline"), client(service).lease("nightly") as lease:
        clock.suspend(59)
        lease.check()


def test_a_test_can_advance_an_hour_of_a_held_lease(service: MemoryService, clock: ManualClock) -> None:
    with client(service).lease("nightly") as lease:
        clock.advance(3600)
        assert lease.held


def test_once_runs_again_in_the_next_period_only(service: MemoryService, clock: ManualClock) -> None:
    ran: list[str] = []

    def work(run: holdfast.Run) -> int:
        ran.append(run.slot)
        return len(ran)

    own = client(service)
    answers = [own.once("backup", work, per="1d") for _ in range(2)]
    clock.advance(86_400)
    answers.append(own.once("backup", work, per="1d"))
    assert [(one.outcome, one.result) for one in answers] == [("ran", 1), ("done", 1), ("ran", 2)]
    assert ran == ["2026-01-01", "2026-01-02"]


def test_a_start_waits_for_its_rate(service: MemoryService, clock: ManualClock) -> None:
    own, waited = client(service), []
    own.rate("vendor", limit=2, per="1m")
    with pytest.raises(holdfast.RateExceeded) as raised:
        own.rate("vendor", limit=2, per="1m")
    assert raised.value.retry_after_ms == 30_000
    thread = started(lambda: waited.append(own.rate("vendor", limit=2, per="1m", wait=60).waited))
    clock.advance(30)
    thread.join(5)
    assert waited == [30.0]


def test_namespaces_have_keys_of_their_own(service: MemoryService) -> None:
    service.hold("nightly")
    other = holdfast.Holdfast(transport=service, namespace="team-b", holder="b")
    with other.lease("nightly") as lease:
        assert lease.fence == 1


def test_the_fixture_serves_code_that_uses_the_default_client(
    holdfast_service: MemoryService, holdfast_clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOLDFAST_ENDPOINT", raising=False)

    async def asynchronous() -> int:
        async with aio.lease("nightly") as lease:
            return int(lease.fence)

    with holdfast.lease("nightly") as lease:
        holdfast_clock.advance(100)
        assert (lease.fence, lease.held) == (1, True)
    assert asyncio.run(asynchronous()) == 2
    assert holdfast.client().read_leases(key="nightly")["fence"] == 2


def test_the_default_client_is_back_after_the_test_with_the_fixture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOLDFAST_ENDPOINT", raising=False)
    with pytest.raises(ValueError, match="HOLDFAST_ENDPOINT"):
        holdfast.client()


def test_the_plugin_does_not_import_the_client_before_a_test_uses_it() -> None:
    program = "import sys, holdfast_pytest; print([one for one in sys.modules if one.split('.')[0] == 'holdfast'])"
    source = str(Path(holdfast.__file__).parents[1])
    words = [sys.executable, "-c", program]
    said = subprocess.run(words, cwd=source, capture_output=True, text=True, check=True)
    assert said.stdout == "[]\n"
