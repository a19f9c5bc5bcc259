"""Runs a command in a process group of its own, with a guard that ends the group if this process cannot."""

from __future__ import annotations

import ast
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from . import guard as guard_program
from .arguments import EXIT_NOT_EXECUTABLE, EXIT_NOT_FOUND, Failure


def executable(command: str, path: str) -> str:
    """Finds the file of a command as a shell does, so that a mistake shows before the lease is acquired."""
    files = [command] if "/" in command else [os.path.join(folder or ".", command) for folder in path.split(":")]
    there = [file for file in files if command and os.path.exists(file)]
    for file in there:
        if os.path.isfile(file) and os.access(file, os.X_OK):
            return file
    if there:
        raise Failure(f"{command}: it cannot be executed", EXIT_NOT_EXECUTABLE)
    raise Failure(f"{command}: there is no such command", EXIT_NOT_FOUND)


class Command:
    """A guard, and the command that it starts.

    The guard is a program of its own, and not a fork of this process, for three reasons. The interpreter may have
    loaded something with threads, such as a tracer, and a fork can block on their locks. A fork would have the memory
    of this process, with its token. And a fork would have the same command line, so that a user who kills the
    command by its name would kill the guard too.
    """

    def __init__(self, may_continue: Callable[[], bool]) -> None:
        """Starts the guard. `may_continue` returns whether a command that was stopped may continue."""
        self.exit_code: int | None = None
        self.failure: str | None = None
        self.was_signalled = False
        self._may_continue = may_continue
        self._is_running = self._is_over = False
        self._early: list[int] = []
        self._name = ""
        self._rest = b""
        self.terminal: int | None = None
        with suppress(OSError):
            self.terminal = os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC)
        self._messages, theirs = socket.socketpair()
        shared = [theirs.fileno()] + ([] if self.terminal is None else [self.terminal])
        words = [sys.executable, "-I", "-S", guard_program.__file__, *map(str, shared)]
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # the guard inherits it
        try:
            self._guard = subprocess.Popen(words, pass_fds=shared, start_new_session=self.terminal is None)
        except OSError as error:
            raise Failure(f"the guard cannot be started: {error.strerror}", EXIT_NOT_EXECUTABLE) from error
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            theirs.close()

    def start(self, words: Sequence[str], env: Mapping[str, str], remaining: float) -> None:
        """Starts the command: `words` are the path of its program, and its arguments. See `extend` for `remaining`."""
        self._name = words[1]
        self.extend(remaining)
        coded = {os.fsencode(name): os.fsencode(value) for name, value in env.items()}
        self._send_message("run", [os.fsencode(word) for word in words], coded, self._is_in_foreground())

    def extend(self, remaining: float) -> None:
        """Lets the command run for `remaining` more seconds. After that, the guard ends the group."""
        self._send_message("until", *[now + remaining for now in guard_program.times_by_both_clocks()])

    def pause(self, seconds: float) -> None:
        """Waits for a message from the guard."""
        if not self._is_over and select.select([self._messages], [], [], seconds)[0]:
            self._receive()

    def _receive(self) -> None:
        data = b""
        with suppress(OSError):
            data = self._messages.recv(65_536)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            what, value = ast.literal_eval(line.decode())
            if what == "started":
                self._is_running = True
                for number in self._early:
                    self.signal(number)
            elif what == "exited":
                self.exit_code = value
            elif what == "failed":
                self.exit_code, self.failure = EXIT_NOT_EXECUTABLE, f"{self._name}: it cannot be executed ({value})"
            elif self.terminal is not None:  # stopped
                self._hand_terminal(self._guard.pid, os.getpgrp())
                os.kill(0, signal.SIGTSTP)  # the user's shell stops and continues this group
                self.resume()
        if not data and self.exit_code is None:
            self.exit_code = 128 + signal.SIGKILL
            self.failure = None if self._is_running else f"{self._name}: its guard has ended"

    def signal(self, number: int) -> None:
        """Sends a signal to the whole group."""
        if self._is_over:
            return  # the system may have given the number to another group
        if number not in (signal.SIGCONT, signal.SIGSTOP, signal.SIGWINCH):
            self.was_signalled = True
        if self._is_running:
            self._send_signal(number)
        else:
            self._early.append(number)

    def stop(self) -> None:
        """Stops the command and this process, until the user continues them."""
        self.signal(signal.SIGSTOP)  # not SIGTSTP, which a group in a session of its own ignores
        os.kill(os.getpid(), signal.SIGSTOP)
        self.resume()

    def resume(self) -> None:
        """Continues a command that was stopped. It gets the terminal if this process has the terminal again."""
        if self._is_running and self._may_continue():
            self._hand_terminal(os.getpgrp(), self._guard.pid)
            self.signal(signal.SIGCONT)

    def is_alive(self) -> bool:
        """True if any process of the group besides the guard still runs, or is stopped."""
        return self._is_running and not self._is_over and _has_members(self._guard.pid)

    def has_ended(self) -> bool:
        """True if the command has run, and its whole group has ended."""
        return self._is_running and not self.is_alive()

    def kill(self) -> None:
        """Ends the whole group and the guard. Must always be called in the end."""
        if not self._is_over:
            self._hand_terminal(self._guard.pid, os.getpgrp())
            self._send_signal(signal.SIGKILL)
            self._is_over = True
            self.exit_code = 128 + signal.SIGKILL if self.exit_code is None else self.exit_code
            self._messages.close()  # this also ends a guard that is about to start the command
            self._guard.kill()
            self._guard.wait()
            if self.terminal is not None:
                os.close(self.terminal)

    def _send_message(self, *message: object) -> None:
        if not self._is_over:
            with suppress(OSError):  # if the guard has ended, the next read shows it
                self._messages.sendall(f"{message!r}\n".encode())

    def _send_signal(self, number: int) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._guard.pid, number)

    def _is_in_foreground(self) -> bool:
        with suppress(OSError):
            return self.terminal is not None and os.tcgetpgrp(self.terminal) == os.getpgrp()
        return False

    def _hand_terminal(self, owner: int, to: int) -> None:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTTOU])
        with suppress(OSError):
            if self.terminal is not None and os.tcgetpgrp(self.terminal) == owner:
                os.tcsetpgrp(self.terminal, to)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _has_members(group: int) -> bool:
    """True if a group has a process that has not ended, besides the guard, whose id is the id of the group."""
    if sys.platform == "linux":
        stats = map(_stat, filter(str.isdigit, os.listdir("/proc")))
    else:
        rows = subprocess.run(["ps", "-A", "-o", "pid=,stat=,pgid="], capture_output=True, text=True).stdout
        stats = map(str.split, rows.splitlines())
    return any(its_group == str(group) != pid and state[0] not in "ZX" for pid, state, its_group in stats)


def _stat(pid: str) -> list[str]:
    """The id of a process, its state and its group. They follow its name, which may contain brackets itself."""
    try:
        with open(f"/proc/{pid}/stat", encoding="latin-1") as stat:
            state, _, group = stat.read().rpartition(")")[2].split()[:3]
    except (OSError, ValueError):
        return [pid, "X", ""]
    return [pid, state, group]
