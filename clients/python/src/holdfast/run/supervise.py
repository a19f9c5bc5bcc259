"""Lets a command run for as long as its lease is certainly held."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

from ..view import LeaseView
from .arguments import EXIT_LOST, Failure
from .command import Command

_CHECK_SECONDS = 0.1  # how often the clocks are checked, because timers do not run while the machine sleeps
_COUNT_SECONDS = 0.02  # how often remaining processes of a command are counted


class Supervisor:
    """Ends the process group of a command before its lease ends: by SIGTERM, and after the grace by SIGKILL."""

    def __init__(
        self, command: Command, lease: LeaseView, grace: float, is_once: bool, note: Callable[[str], object]
    ) -> None:
        """With `is_once`, a command that succeeded before the loss was noticed counts, and the service decides."""
        self.command, self.lease, self.grace, self.note = command, lease, grace, note
        self._may_be_done = is_once
        self._is_lost = False
        self._extended_until = ""
        self._kill_at = float("inf")

    def run(self) -> int:
        """Waits for the command and its whole group. Returns the exit code of the command, or EXIT_LOST."""
        command = self.command
        try:
            while command.exit_code is None:
                command.pause(self._check())
            if command.failure:
                raise Failure(command.failure, command.exit_code)
            self._may_be_done = self._may_be_done and command.exit_code == 0
            if command.is_alive():
                # Processes that got a signal together with the command are ending already. A second signal could
                # interrupt their clean-up.
                self._terminate(asks=command.exit_code < 128 and not command.was_signalled)
                while command.is_alive():
                    command.pause(min(_COUNT_SECONDS, self._check()))
            if not self.lease.held:
                self._check()
            return EXIT_LOST if self._is_lost else command.exit_code
        finally:
            command.kill()

    def _check(self) -> float:
        """Checks the clocks, and ends the command if it is time. Returns after how many seconds to check again."""
        # The order matters, because a heartbeat may extend the lease between two reads.
        expires_at, remaining, lost = self.lease.expires_at, self.lease.remaining, self.lease.lost
        if expires_at != self._extended_until:
            self._extended_until = expires_at
            self.command.extend(remaining)
        if not self._is_lost and (lost or remaining <= self.grace):
            if self._may_be_done and self.command.has_ended():
                return _CHECK_SECONDS
            self._is_lost = True
            reason = lost.fields["reason"] if lost else "deadline"
            self.note(f"the lease of {self.lease.key} is lost ({reason}): the command is ended")
            self._terminate()
        left = min(remaining, self._kill_at - time.monotonic())
        if left <= 0:
            self.command.kill()
        return max(0.001, min(_CHECK_SECONDS, left if self._is_lost else left - self.grace))

    def _terminate(self, asks: bool = True) -> None:
        self._kill_at = min(self._kill_at, time.monotonic() + self.grace)
        if asks:
            self.command.signal(signal.SIGTERM)
            self.command.signal(signal.SIGCONT)  # a stopped process acts on SIGTERM only when it continues
