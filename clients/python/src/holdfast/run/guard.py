"""The guard of a command: a program that starts the command, and ends its process group if the supervisor cannot.

The guard ends the group when the supervisor has ended in any way. It also does so when the time of the lease is over,
because the supervisor may be stopped.

It blocks the signals to the group, so that only SIGKILL and SIGSTOP reach it. It does not import the package, because
it must start fast. It receives the command over a socket, whose other end only the supervisor has, so that its own
command line shows neither the arguments nor the environment of the command.
"""

from __future__ import annotations

import ast
import errno
import os
import select
import signal
import socket
import sys
import time

# How often the clocks are checked, because timers do not run while the machine sleeps.
CHECK_SECONDS = 5.0
# A clock that goes on while the machine sleeps, and is never set back.
_CLOCK: int = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC", 0))


def times_by_both_clocks() -> list[float]:
    """The time by two clocks that all processes of the machine share."""
    return [time.clock_gettime(_CLOCK), time.time()]


class Guard:
    """Waits for messages of the supervisor, the end of the command, and the end of the lease."""

    def __init__(self, supervisor: socket.socket, terminal: int | None) -> None:
        self.supervisor = supervisor
        self.terminal = terminal
        self.supervisor_group = os.getpgid(os.getppid())
        self.deadlines = [float("inf")] * 2
        self.command_pid = 0
        self.partial_line = b""

    def report(self, what: str, value: object = None) -> None:
        """Sends a message to the supervisor."""
        self.supervisor.sendall(f"{(what, value)!r}\n".encode())

    def kill(self) -> None:
        """Ends the whole group, this process included."""
        try:
            if self.terminal is not None and os.tcgetpgrp(self.terminal) == os.getpgrp():
                os.tcsetpgrp(self.terminal, self.supervisor_group)
        finally:
            os.killpg(0, signal.SIGKILL)

    def run(self, words: list[bytes], env: dict[bytes, bytes], takes_terminal: bool) -> None:
        """Starts the command: `words` are the path of its program, and its arguments."""
        if self.terminal is not None and takes_terminal:
            os.tcsetpgrp(self.terminal, os.getpgrp())
        usual = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}
        # A script without a `#!` line cannot be executed directly (ENOEXEC), so /bin/sh runs it, as from any shell.
        for path, args in (words[0], words[1:]), (b"/bin/sh", [b"/bin/sh", words[0], *words[2:]]):
            try:
                self.command_pid = os.posix_spawn(path, args, env, setsigmask=[], setsigdef=usual)
            except OSError as error:
                if error.errno == errno.ENOEXEC and path == words[0]:
                    continue
                self.report("failed", errno.errorcode.get(error.errno or 0))
            else:
                self.report("started")
            break

    def reap(self) -> None:
        """Reports to the supervisor how the command has ended, or that it was stopped."""
        while self.command_pid:
            pid, status = os.waitpid(self.command_pid, os.WNOHANG | os.WUNTRACED)
            if pid == 0:
                break
            if os.WIFSTOPPED(status):
                self.report("stopped")
                continue
            self.command_pid = 0
            self.report("exited", os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))

    def receive(self) -> None:
        """Follows the messages of the supervisor."""
        data = self.supervisor.recv(65_536)
        if not data:
            self.kill()
        *lines, self.partial_line = (self.partial_line + data).split(b"\n")
        for line in lines:
            what, *values = ast.literal_eval(line.decode())
            if what == "until":
                self.deadlines = values
            else:
                self.run(*values)

    def watch(self, children: int) -> None:
        """Goes on until the group is killed."""
        while True:
            left = min(end - now for end, now in zip(self.deadlines, times_by_both_clocks(), strict=True))
            if left <= 0:
                self.kill()
            ready, _, _ = select.select([self.supervisor.fileno(), children], [], [], min(left, CHECK_SECONDS))
            if children in ready:
                os.read(children, 4096)
                self.reap()
            if self.supervisor.fileno() in ready:
                self.receive()


def main(descriptor: int, terminal: int | None = None) -> None:
    """Guards a command. With a terminal, the guard gets a process group of its own in the session of the supervisor."""
    children, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals() - {signal.SIGCHLD})
    os.set_inheritable(descriptor, False)
    if terminal is not None:
        os.set_inheritable(terminal, False)
        os.setpgid(0, 0)
    guard = Guard(socket.socket(fileno=descriptor), terminal)
    try:
        guard.watch(children)
    finally:
        guard.kill()


if __name__ == "__main__":
    if sys.platform == "linux":
        with open("/proc/self/comm", "w") as name:
            name.write("holdfast guard")  # for people who look at processes
    main(*map(int, sys.argv[1:]))
