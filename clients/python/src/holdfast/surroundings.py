"""The clocks, the random numbers and the waiting of the client.

Tests pass a `ManualClock`, so that they need not wait.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
import uuid
from typing import Any

LONGEST_WAIT = 86_400.0
"""The longest single wait, in seconds, because some platforms refuse longer ones. Callers wait in a loop."""


class Surroundings:
    """The clocks, the random numbers and the waiting of a process. All times are in seconds."""

    check_seconds = 1.0
    """How often the clocks are checked. A clock that jumps, as when a machine wakes up, does not end a wait."""

    def wall(self) -> float:
        """Seconds since 1970. This clock can be set, and goes on while the machine sleeps."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds since some start. This clock cannot be set, and on Linux it stands still while the machine sleeps."""
        return time.monotonic()

    def random(self) -> float:
        """A number in [0, 1)."""
        return random.random()

    def uuid(self) -> str:
        """A version 4 UUID that cannot be guessed."""
        return str(uuid.uuid4())

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Waits until the event is set, for at most `seconds`. Returns whether it is set."""
        # The wait is cut into pieces, because the system may deliver a signal to another thread, for example when the
        # process was stopped. The main thread then acts on the signal between two pieces.
        end = time.monotonic() + seconds
        while not event.wait(min(self.check_seconds, max(end - time.monotonic(), 0))):
            if time.monotonic() >= end:
                return False
        return True

    async def wait_async(self, future: asyncio.Future[Any], seconds: float) -> bool:
        """Waits until the future is done, for at most `seconds`. Returns whether it is done. Does not cancel it."""
        await asyncio.wait({future}, timeout=min(max(seconds, 0), LONGEST_WAIT))
        return future.done()


Moment = tuple[float, float]
"""One moment on both clocks: wall and monotonic."""


def moment(surroundings: Surroundings) -> Moment:
    """The current moment."""
    return surroundings.wall(), surroundings.monotonic()


def since(surroundings: Surroundings, then: Moment) -> float:
    """Seconds since a moment, by the clock that advanced further.

    The wall clock may have been set back, and the monotonic clock may have stood still.
    """
    return max(surroundings.wall() - then[0], surroundings.monotonic() - then[1])
