"""Lets a command run for as long as its lease is certainly held."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

from ..view import LeaseView
from .arguments import EXIT_LOST, Failure
from .command import Command

_LOOK_SECONDS = 0.1  # the longest time between two looks at the clocks: timers do not run while the machine sleeps
_COUNT_SECONDS = 0.02  # how often remaining processes of a command are counted


class Supervisor:
    """Ends the process group of a command before its lease ends: by SIGTERM, and after the grace by SIGKILL."""

    def __init__(
        self, command: Command, lease: LeaseView, grace: float, is_once: bool, note: Callable[[str], object]
    ) -> None:
        """With `is_once`, the service decides about a command that succeeded before the loss was seen here."""
        self.command, self.lease, self.grace, self.note = command, lease, grace, note
        self._may_be_done = is_once
        self._is_lost = False
        self._told = ""
        self._kill_at = float("inf")

    def run(self) -> int:
        """Wait for the command and what it leaves behind in its group. Returns its exit code, or EXIT_LOST."""
        command = self.command
        try:
            while command.exit_code is None:
                command.pause(self._look())
            if command.failure:
                raise Failure(command.failure, command.exit_code)
            self._may_be_done = self._may_be_done and command.exit_code == 0
            if command.is_alive():
                # Processes that got a signal together with the command are ending. Another signal would interrupt that.
                self._terminate(asks=command.exit_code < 128 and not command.was_signalled)
                while command.is_alive():
                    command.pause(min(_COUNT_SECONDS, self._look()))
            if not self.lease.held:
                self._look()
            return EXIT_LOST if self._is_lost else command.exit_code
        finally:
            command.kill()

    def _look(self) -> float:
        """Read the clocks, and end the command if it is time. Returns in how many seconds to look again."""
        # In this order: a heartbeat may extend the lease in between.
        expires_at, remaining, lost = self.lease.expires_at, self.lease.remaining, self.lease.lost
        if expires_at != self._told:
            self._told = expires_at
            self.command.extend(remaining)
        if not self._is_lost and (lost or remaining <= self.grace):
            if self._may_be_done and self.command.has_ended():
                return _LOOK_SECONDS
            self._is_lost = True
            reason = lost.fields["reason"] if lost else "deadline"
            self.note(f"the lease of {self.lease.key} is lost ({reason}): the command is ended")
            self._terminate()
        left = min(remaining, self._kill_at - time.monotonic())
        if left <= 0:
            self.command.kill()
        return max(0.001, min(_LOOK_SECONDS, left if self._is_lost else left - self.grace))

    def _terminate(self, asks: bool = True) -> None:
        self._kill_at = min(self._kill_at, time.monotonic() + self.grace)
        if asks:
            self.command.signal(signal.SIGTERM)
            self.command.signal(signal.SIGCONT)  # a stopped process acts on SIGTERM only once it is woken
