"""Lets a command run while its lease is certainly held, and not longer."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

from ..view import LeaseView
from .arguments import EXIT_LOST, Failure
from .command import Command

_LOOK_SECONDS = 0.1  # the longest time between two looks at the clocks: timers do not run while the machine sleeps
_COUNT_SECONDS = 0.02  # how often remaining processes of a command are counted


def supervise(command: Command, lease: LeaseView, grace: float, is_once: bool, note: Callable[[str], object]) -> int:
    """Wait for a command, and end its process group before the lease ends: by SIGTERM, and after the grace by SIGKILL.

    The same ends the processes that the command left behind. With `is_once`, the service decides about a command that
    succeeded before the loss was seen here. Returns the exit code of the command, or EXIT_LOST.
    """
    watch = _Watch(command, lease, grace, is_once, note)
    try:
        while command.exit_code is None:
            command.pause(watch.look())
        if command.failure:
            raise Failure(command.failure, command.exit_code)
        watch.may_be_done = is_once and command.exit_code == 0
        if command.is_alive():
            # Processes that got a signal together with the command are ending. Another signal would interrupt that.
            watch.terminate(asks=command.exit_code < 128 and not command.was_signalled)
            while command.is_alive():
                command.pause(min(_COUNT_SECONDS, watch.look()))
        if not lease.held:
            watch.look()
        return EXIT_LOST if watch.is_lost else command.exit_code
    finally:
        command.kill()


class _Watch:
    def __init__(
        self, command: Command, lease: LeaseView, grace: float, is_once: bool, note: Callable[[str], object]
    ) -> None:
        self.command, self.lease, self.grace, self.may_be_done, self.note = command, lease, grace, is_once, note
        self.is_lost = False
        self.told = ""
        self.kill_at = float("inf")

    def look(self) -> float:
        """Read the clocks, and end the command if it is time. Returns in how many seconds to look again."""
        # In this order: a heartbeat may extend the lease in between.
        expires_at, remaining, lost = self.lease.expires_at, self.lease.remaining, self.lease.lost
        if expires_at != self.told:
            self.told = expires_at
            self.command.extend(remaining)
        if not self.is_lost and (lost or remaining <= self.grace):
            if self.may_be_done and self.command.has_ended():
                return _LOOK_SECONDS
            self.is_lost = True
            reason = lost.fields["reason"] if lost else "deadline"
            self.note(f"the lease of {self.lease.key} is lost ({reason}): the command is ended")
            self.terminate()
        left = min(remaining, self.kill_at - time.monotonic())
        if left <= 0:
            self.command.kill()
        return max(0.001, min(_LOOK_SECONDS, left if self.is_lost else left - self.grace))

    def terminate(self, asks: bool = True) -> None:
        """End the group within the grace."""
        self.kill_at = min(self.kill_at, time.monotonic() + self.grace)
        if asks:
            self.command.signal(signal.SIGTERM)
            self.command.signal(signal.SIGCONT)  # a stopped process acts on SIGTERM only once it is woken
