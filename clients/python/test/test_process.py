"""Leases in a process that forks, is stopped or interrupted, or whose interpreter is blocked."""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from types import FrameType

import pytest
from service import Service, problem

import holdfast
from holdfast import Holdfast, aio

SOURCE = Path(__file__).parents[1] / "src"


def is_ready(started: subprocess.Popen[str]) -> bool:
    """Reads the first line and not a byte more, because `communicate` would miss what a buffer already holds."""
    said = b""
    while started.stdout and not said.endswith(b"\n") and (byte := os.read(started.stdout.fileno(), 1)):
        said += byte
    return said == b"ready\n"


def program(service: Service, text: str) -> subprocess.Popen[str]:
    """Starts a program that prints `ready` first."""
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "HOLDFAST_ENDPOINT": service.url, "HOLDFAST_HOLDER": "p"}
    words = [sys.executable, "-u", "-c", "import holdfast, sys, time\n" + textwrap.dedent(text)]
    started = subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert is_ready(started), started.communicate()
    return started


def held(_: object) -> tuple[int, dict[str, object]]:
    return 409, problem("LeaseHeld", key="k", holder="x", retryWith={"ticket": "t-1"}, place=1, comeBackMs=60_000)


def until(holds: object, seconds: float = 5) -> None:
    end = time.monotonic() + seconds
    while not holds() and time.monotonic() < end:  # type: ignore[operator]
        time.sleep(0.02)
    assert holds()  # type: ignore[operator]


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, -signal.SIGINT)])
def test_a_signal_ends_the_block_and_the_lease_is_released(number: int, status: int, service: Service) -> None:
    text = """
        with holdfast.lease("k"):
            print("ready")
            time.sleep(30)
    """
    running = program(service, text)
    running.send_signal(number)
    running.communicate(timeout=10)
    assert running.returncode == status
    assert len(service.calls("release")) == 1


def test_a_signal_takes_a_waiting_caller_out_of_the_line(service: Service) -> None:
    service.answers["acquire"] = held
    running = program(service, "print('ready')\nwith holdfast.lease('k', wait=600): pass")
    until(lambda: service.calls("acquire"))
    time.sleep(0.2)
    running.send_signal(signal.SIGTERM)
    running.communicate(timeout=10)
    assert running.returncode == 143
    (acquired, *_), (withdrawn, *_) = service.calls("acquire"), service.calls("withdraw")
    assert withdrawn == {"key": "k", "holder": "p", "requestId": acquired["requestId"], "ticket": "t-1"}


def test_a_signal_ends_a_wait_even_if_another_thread_receives_it(service: Service) -> None:
    service.answers["acquire"] = held
    text = """
        import signal, threading
        def receive():
            time.sleep(0.5)
            signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
        threading.Thread(target=receive, daemon=True).start()
        print("ready")
        with holdfast.lease("k", wait=600): pass
    """
    running = program(service, text)
    running.communicate(timeout=10)
    assert running.returncode == 143
    assert service.calls("withdraw")


def test_a_signal_handler_of_the_program_stays_and_the_work_continues(service: Service) -> None:
    text = """
        import signal
        signal.signal(signal.SIGTERM, lambda *_: print("mine"))
        with holdfast.lease("k"):
            print("ready")
            time.sleep(0.6)
        print("whole")
    """
    running = program(service, text)
    running.send_signal(signal.SIGTERM)
    printed, _ = running.communicate(timeout=10)
    assert (printed, running.returncode) == ("mine\nwhole\n", 0)


def test_a_forked_child_neither_holds_nor_releases_the_lease(service: Service) -> None:
    text = """
        import os
        with holdfast.lease("k") as lease:
            child = os.fork()
            if child == 0:
                print("ready")
                print(lease.held, lease)
                try:
                    lease.check()
                except holdfast.LeaseLost as error:
                    print(error.reason, lease.release())
                os._exit(0)
            os.waitpid(child, 0)
            print(lease.held)
    """
    running = program(service, text)
    printed, _ = running.communicate(timeout=10)
    assert printed == "False <Lease of 'k', fence 7, forked>\nforked False\nTrue\n"
    assert len(service.calls("release")) == 1


def test_a_forked_child_that_leaves_the_block_does_not_release(service: Service) -> None:
    text = """
        import os
        with holdfast.lease("k"):
            if os.fork() == 0:
                raise SystemExit(0)
            os.wait()
            print("ready")
            time.sleep(0.1)
    """
    running = program(service, text)
    running.communicate(timeout=10)
    assert len(service.calls("release")) == 1


def test_a_child_of_fork_ends_by_sigterm_as_without_a_lease(service: Service) -> None:
    text = """
        import os, signal
        with holdfast.lease("k"):
            child = os.fork()
            if child == 0:
                time.sleep(30)
            time.sleep(0.3)  # CPython drops a signal that comes while it sets up the child
            os.kill(child, signal.SIGTERM)
            print("ready", flush=True)
            print(os.waitstatus_to_exitcode(os.wait()[1]))
    """
    assert program(service, text).communicate(timeout=10)[0] == "-15\n"


def test_a_process_that_was_stopped_past_the_end_has_lost_its_lease_at_once(service: Service) -> None:
    text = """
        say = lambda what, error: os.write(1, f"{what} {error.reason}\\n".encode())  # `print` would write in parts
        with holdfast.lease("k", ttl=2, on_lost=lambda error: say("notified", error)) as lease:
            print("ready")
            sys.stdin.readline()
            try:
                lease.check()
            except holdfast.LeaseLost as error:
                say("checked", error)
            time.sleep(0.3)
            sys.exit(0)
    """
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "HOLDFAST_ENDPOINT": service.url}
    words = [sys.executable, "-u", "-c", "import holdfast, os, sys, time\n" + textwrap.dedent(text)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    running = subprocess.Popen(words, env=environment, text=True, **pipes)  # type: ignore[call-overload]
    assert is_ready(running)
    running.send_signal(signal.SIGSTOP)
    time.sleep(2.2)
    running.stdin.write("go\n")
    running.stdin.flush()
    running.send_signal(signal.SIGCONT)
    printed, _ = running.communicate(timeout=10)
    assert sorted(printed.splitlines()) == ["checked deadline", "notified deadline"]


def test_an_interpreter_that_was_blocked_past_the_end_has_lost_its_lease(service: Service) -> None:
    text = """
        import ctypes
        with holdfast.lease("k", ttl=2) as lease:
            print("ready")
            ctypes.PyDLL(None).usleep(2_200_000)  # holds the lock of the interpreter
            print(lease.held)
            sys.exit(0)
    """
    running = program(service, text)
    printed, _ = running.communicate(timeout=10)
    assert (printed, len(service.calls("heartbeat"))) == ("False\n", 0)


def test_on_lost_is_called_in_another_thread_while_the_caller_is_blocked(service: Service) -> None:
    service.answers["heartbeat"] = lambda _: (409, problem("LeaseLost", key="k", reason="broken", holder="x"))
    calls: list[tuple[holdfast.HoldfastError, str]] = []
    client = Holdfast(service.url, holder="me")
    with (
        pytest.raises(holdfast.LeaseLost) as lost,
        client.lease("k", ttl=3, on_lost=lambda error: calls.append((error, threading.current_thread().name))),
    ):
        time.sleep(1.4)
    assert lost.value.reason == "broken"
    assert [(error.reason, name) for error, name in calls] == [("broken", "holdfast keeps k")]  # type: ignore[attr-defined]
    assert len(service.calls("release")) == 1


def test_asyncio_a_blocked_loop_loses_the_lease_and_says_so(service: Service) -> None:
    async def work() -> list[object]:
        codes: list[object] = []

        async def on_lost(error: holdfast.HoldfastError) -> None:
            codes.append(error.code)

        client = aio.Holdfast(service.url, holder="me")
        with pytest.raises(holdfast.LeaseLost):
            async with client.lease("k", ttl=2, on_lost=on_lost) as lease:
                time.sleep(2.2)
                assert not lease.held
        await asyncio.sleep(0.05)
        return codes

    assert asyncio.run(work()) == ["LeaseLost"]


def test_asyncio_a_cancelled_wait_is_withdrawn_and_a_cancelled_block_released(service: Service) -> None:
    async def work() -> None:
        client = aio.Holdfast(service.url, holder="me")

        async def use(key: str) -> None:
            async with client.lease(key, wait=600):
                await asyncio.sleep(600)

        task = asyncio.create_task(use("held"))
        await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        service.answers["acquire"] = held
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(use("waits"), 0.3)

    asyncio.run(work())
    assert [request["key"] for request in service.calls("release")] == ["held"]
    assert [request["key"] for request in service.calls("withdraw")] == ["waits"]


def test_a_decorator_refuses_a_function_of_the_other_kind() -> None:
    async def coroutine() -> None:
        """Does nothing."""

    with pytest.raises(TypeError, match=r"needs `exclusive` of holdfast\.aio"):
        holdfast.exclusive("k")(coroutine)
    with pytest.raises(TypeError, match=r"needs `exclusive` of holdfast$"):
        aio.exclusive("k")(lambda: None)


def test_work_that_has_only_been_prepared_is_refused(service: Service) -> None:
    client = Holdfast(service.url, holder="me")

    def rows() -> object:
        yield 1

    with pytest.raises(TypeError, match="a generator would run after the lease"):
        client.exclusive("k")(rows)
    with pytest.raises(TypeError, match="the work returned a generator"):
        client.exclusive("k")(lambda: rows())()
    with pytest.raises(TypeError, match="not callable"):
        client.lease("k")(rows)  # type: ignore[operator]
    service.answers["begin"] = lambda request: (200, run_of(request))
    with pytest.raises(TypeError, match="the work returned a generator"):
        client.once("o", lambda run: rows())
    assert len(service.calls("release")) == 2
    assert not service.calls("complete")


def run_of(request: dict[str, object]) -> dict[str, object]:
    grant = {"key": request["key"], "holder": "me", "leaseId": "id", "fence": 1, "waitedMs": 0, "slot": "-"}
    return {"outcome": "run", **grant, "remainingMs": 60_000, "expiresAt": "2026-01-01T00:00:00.000Z"}


@pytest.mark.parametrize("max_hold", [lambda: None, lambda: 1 / 0])
def test_a_max_hold_that_fails_leaves_no_grant_behind(max_hold: object, service: Service) -> None:
    with pytest.raises((TypeError, ZeroDivisionError)):
        Holdfast(service.url, holder="me").acquire("k", max_hold=max_hold)  # type: ignore[arg-type]
    (acquired,), (withdrawn,) = service.calls("acquire"), service.calls("withdraw")
    assert withdrawn["requestId"] == acquired["requestId"]


def test_a_hook_that_exits_at_the_grant_leaves_no_grant_behind(service: Service) -> None:
    def hook(event: object) -> None:
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        Holdfast(service.url, holder="me", on_event=hook).acquire("k")
    assert len(service.calls("release")) == 1


def test_an_interrupt_at_any_line_of_a_block_leaves_no_grant_behind(service: Service) -> None:
    """Raises KeyboardInterrupt at every seventh line that the main thread runs in the client."""
    client = Holdfast(service.url, holder="me")
    source, left = str(SOURCE / "holdfast"), 0

    def trace(frame: FrameType, event: str, _: object) -> object:
        nonlocal left
        if not frame.f_code.co_filename.startswith(source):
            return trace
        if event == "line":
            left -= 1
            if left == 0:
                sys.settrace(None)
                raise KeyboardInterrupt
        return trace

    open_at = []
    for at in range(1, 1000, 7):
        service.received.clear()
        left = at
        sys.settrace(trace)
        try:
            with client.lease("k", release_timeout=0.5):
                pass
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(None)
        if left > 0:
            break
        if service.calls("acquire") and not (service.calls("release") or service.calls("withdraw")):
            open_at.append(at)
    assert left > 0, "the block has more lines than this test"
    # Python itself leaves one point open: the call of __exit__, before its first statement.
    assert len(open_at) <= 1, open_at


def test_a_client_cannot_be_pickled_and_an_event_has_no_frames(service: Service) -> None:
    events: list[dict[str, object]] = []
    client = Holdfast(service.url, holder="me", token="secret", on_event=lambda event: events.append({**event}))
    with pytest.raises(TypeError, match="make one in each process"):
        pickle.dumps(client)
    service.answers["release"] = lambda _: (503, b"{}")
    client.acquire("k").release(timeout=0.2)
    error = events[-1]["error"]
    assert isinstance(error, holdfast.HoldfastError)
    assert (error.__traceback__, error.__cause__) == (None, None)


def test_odd_times_of_a_release_are_refused_or_kept(service: Service) -> None:
    lease = Holdfast(service.url, holder="me").acquire("k")
    for wrong in (-1, "x", float("nan")):
        with pytest.raises(ValueError, match="timeout must be a number of seconds"):
            lease.release(timeout=wrong)  # type: ignore[arg-type]
    assert lease.held
    assert lease.release(timeout=float("inf"))


def test_many_threads_share_a_client(service: Service) -> None:
    client = Holdfast(service.url, holder="me")

    def use(at: int) -> None:
        with client.lease(f"k/{at}") as lease:
            assert lease.held

    threads = [threading.Thread(target=use, args=(at,)) for at in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(service.calls("release")) == 40
    until(lambda: not [one for one in threading.enumerate() if one.name.startswith("holdfast keeps k/")])


def test_a_text_never_contains_the_lease_id(service: Service, caplog: pytest.LogCaptureFixture) -> None:
    ids: list[str] = []
    service.answers["release"] = lambda request: (ids.append(request["leaseId"]), (503, b"{}"))[1]  # type: ignore[func-returns-value]
    caplog.set_level("DEBUG")
    client = Holdfast(service.url, holder="me")
    with client.lease("k", release_timeout=0.2) as lease:
        texts = [repr(lease), str(lease), repr(client)]
    assert ids and "did not confirm" in caplog.text
    assert not [text for text in [*texts, caplog.text] if ids[0] in text]
