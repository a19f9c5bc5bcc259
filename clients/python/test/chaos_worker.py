"""A process of `npm run verify -- chaos`, which works under leases of this client until SIGTERM.

It writes the same lines as verification/client/worker.ts. Half of the processes use threads, the others asyncio.
"""

from __future__ import annotations

import asyncio
import ctypes
import faulthandler
import json
import logging
import os
import random
import signal
import sys
import threading
import time
from typing import Any

import holdfast
from holdfast import aio
from holdfast.surroundings import Surroundings

_, endpoint, holder, log, keys, at_once, seed, kind = sys.argv
chance = random.Random(int(seed))
file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
stopping = threading.Event()
C = ctypes.PyDLL(None)
"""A library whose calls keep the lock of the interpreter."""


class Chance(Surroundings):
    def random(self) -> float:
        return chance.random()


def write(**line: Any) -> None:
    os.write(file, (json.dumps(line) + "\n").encode())


def now() -> float:
    """The clock that all processes of this machine share, in milliseconds."""
    return time.monotonic_ns() / 1e6


def below(limit: int) -> int:
    return chance.randrange(limit)


def options() -> dict[str, Any]:
    # Longer than the grant window, so that the judge can recognise a grant that was not claimed.
    given = {"ttl": 3 + below(2), "wait": below(6000) / 1000, "timeout": 15.0}
    return given | ({"max_hold": 1.5} if below(10) == 0 else {})


def lease_options(key: str) -> dict[str, Any]:
    # The clients of the Rust crate do not get a lease while a caller is in line.
    return options() | ({"fair": False} if key.startswith("chaos/shared/") else {})


def any_key() -> str:
    return chance.choice(json.loads(keys))


def step(lease: holdfast.Lease | aio.Lease) -> bool:
    at = now()  # taken before `held`: a lease that is held then was held at this time
    if not lease.held:
        return False
    write(type="step", key=lease.key, fence=lease.fence, holder=holder, at=at)
    return True


def block() -> None:
    """Blocks the whole interpreter, or only this thread."""
    ms = 300 + below(2500)
    if below(2):
        C.usleep(ms * 1000)
    else:
        time.sleep(ms / 1000)


def failed(error: BaseException) -> None:
    code = error.code if isinstance(error, holdfast.HoldfastError) else type(error).__name__
    reason = {"reason": error.reason} if isinstance(error, holdfast.LeaseLost) else {}
    write(type="failure", holder=holder, code=code, **reason, detail=f"{error!r}")


def loop(client: holdfast.Holdfast) -> None:
    while not stopping.is_set():
        try:
            key = any_key()
            with client.lease(key, **lease_options(key)) as lease:
                ends_at = now() + below(4000)
                while step(lease):
                    block() if below(40) == 0 else time.sleep((20 + below(60)) / 1000)
                    if now() >= ends_at or stopping.is_set():
                        break
            write(type="success", holder=holder)
        except Exception as error:
            failed(error)
            if isinstance(error, holdfast.LeaseHeld):
                time.sleep(below(500) / 1000)


async def piece(client: aio.Holdfast) -> None:
    key = any_key()
    async with client.lease(key, **lease_options(key)) as lease:
        ends_at = now() + below(4000)
        while step(lease):
            if below(40) == 0:
                block()
            else:
                await asyncio.sleep((20 + below(60)) / 1000)
            if now() >= ends_at or stopping.is_set():
                break


async def loop_async(client: aio.Holdfast) -> None:
    while not stopping.is_set():
        try:
            if below(10) == 0:  # the caller ends its wait, or its work
                await asyncio.wait_for(piece(client), below(4000) / 1000)
            else:
                await piece(client)
            write(type="success", holder=holder)
        except (Exception, asyncio.TimeoutError) as error:
            failed(error)
            if isinstance(error, holdfast.LeaseHeld):
                await asyncio.sleep(below(500) / 1000)


def by_threads() -> None:
    client = holdfast.Holdfast(endpoint, holder=holder, surroundings=Chance())
    threads = [threading.Thread(target=loop, args=[client]) for _ in range(int(at_once))]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():
            thread.join(1)  # a join without a limit may sleep through a SIGTERM that follows a SIGCONT


async def by_tasks() -> None:
    client = aio.Holdfast(endpoint, holder=holder, surroundings=Chance())
    await asyncio.gather(*(loop_async(client) for _ in range(int(at_once))))


logging.getLogger("holdfast").setLevel(logging.CRITICAL)
signal.signal(signal.SIGTERM, lambda *_: stopping.set())
faulthandler.register(signal.SIGUSR1)  # prints the stacks of a process that does not end
print("ready", flush=True)  # before this line, SIGTERM would end the process half way
asyncio.run(by_tasks()) if kind == "asyncio" else by_threads()
write(type="done", holder=holder, at=now())
