"""`python -m holdfast run` runs a command under a lease, as `holdfast run` does, but without Node."""

from __future__ import annotations

import logging
import os
import re
import signal
import threading
from collections.abc import Mapping
from dataclasses import replace
from types import FrameType
from typing import Any

from ..client import Holdfast
from ..environment import own_name
from ..errors import HoldfastError, is_transient
from ..rate import Reservation
from ..steps import Transport, play
from ..surroundings import Surroundings, moment, since
from ..view import LeaseView, Run
from .arguments import EXIT_HELD, EXIT_LOST, EXIT_MISUSE, HELP, Arguments, Failure
from .command import Command, executable
from .supervise import Supervisor
from .texts import Wait, done_text, exit_code_of, message_of, print_line, refusal

_GRACE_SECONDS = 5
_FORWARDED = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGWINCH")


def main(words: list[str]) -> int:
    """Runs the command line, and returns the exit code."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) < 3:  # so that no file opened later becomes stderr
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    logging.getLogger("holdfast").disabled = True  # this program prints what matters itself
    try:
        verb, *typed = words or [""]
        if verb not in ("run", "--help", "-h"):
            raise Failure(f"there is no verb '{verb}': run is the only one")
        if os.name == "nt":
            raise Failure("run needs process groups, which Windows does not have")
        args = Arguments(typed if verb == "run" else ["--help"])
        if args.has("--help"):
            os.write(1, HELP.encode())
            return 0
        return _Runner(args).result()
    except HoldfastError as error:
        message, code = message_of(error), exit_code_of(error)
    except Failure as error:
        message, code = str(error), error.exit_code
    for line in message.split("\n") + (["see python -m holdfast run --help"] if code == EXIT_MISUSE else []):
        print_line(line)
    return code


class _Interrupted(BaseException):
    """A signal ended the wait."""


class _CommandFailed(Exception):
    """The command failed, so its slot stays free for another caller."""


class _Signals(Surroundings):
    """Takes the signals to this process: they end the wait, and when the command runs, they are passed on to it.

    A signal raises an exception only while the client waits. At another moment, the exception could lose the grant.
    """

    def __init__(self) -> None:
        self.received = 0
        self._command: Command | None = None
        self._is_waiting = self._has_raised = False
        for name in _FORWARDED:
            signal.signal(getattr(signal, name), self._receive)

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """As in the base class, but a signal interrupts the main thread."""
        self._is_waiting = threading.current_thread() is threading.main_thread()
        try:
            self._raise(self._is_waiting)
            return super().wait(event, seconds)
        finally:
            self._is_waiting = False

    def forward_to(self, command: Command) -> None:
        """Passes signals on to the command from now on. Raises if a signal came together with the grant."""
        self._raise(self.received > 0)
        self._command = command

    def _raise(self, is_time: bool) -> None:
        if self.received and is_time and not self._has_raised:
            self._has_raised = True
            raise _Interrupted

    def _receive(self, number: int, _: FrameType | None) -> None:
        if self._command:
            self._command.signal(number)
        elif number != signal.SIGWINCH:
            if self.received:
                os._exit(128 + self.received)  # a second signal means: end at once
            self.received = number
            self._raise(self._is_waiting)


class _Runner:
    """Runs a command under a lease, or for a slot."""

    def __init__(self, args: Arguments) -> None:
        """Checks every option, before anything is acquired."""
        self.key, self.words, self.is_quiet = args.key, args.command, args.has("--quiet")
        ttl = args.seconds("--ttl", 60, 2, 86_400)
        self.grace = args.seconds("--grace", min(_GRACE_SECONDS, ttl / 3), 0, ttl / 3)
        wait, timeout = args.seconds("--wait", 0, 0, word="forever"), args.seconds("--timeout", 30, 0)
        self.limits = {"wait": wait, "timeout": timeout}
        self.slot, self.rates = args.slot(), args.rates()
        terms = {**args.permit(), **({"rates": self.rates} if self.rates else {})} if self.slot is None else self.slot
        self.options: dict[str, Any] = {**self.limits, **terms, "ttl": ttl, "data": args.data()}
        self.held_exit = args.whole("--held-exit-code", 0, 255)
        self.fence_name = args.text("--fence-env")
        if self.fence_name is not None and not re.fullmatch("[A-Za-z_][A-Za-z_0-9]*", self.fence_name):
            raise Failure(f"--fence-env must be the name of a variable, not '{self.fence_name}'")
        self.file = executable(self.words[0], os.environ.get("PATH", ""))
        self.signals, self.lines = _Signals(), Wait()
        given: dict[str, Any] = {name: args.text(f"--{name}") for name in ("endpoint", "namespace", "region")}
        given["holder"] = args.text("--holder") or own_name()
        if not (given["endpoint"] or os.environ.get("HOLDFAST_ENDPOINT")):
            raise Failure("no endpoint: give --endpoint, or set HOLDFAST_ENDPOINT")
        try:
            self.client = Holdfast.from_env(**given, on_event=self._on_event, surroundings=self.signals)
        except ValueError as error:
            raise Failure(str(error)) from error
        core = self.client.core
        self.core = self.client.core = replace(core, transport=self._with_notes(core.transport))
        self.started_at = moment(self.signals)
        self.lease: LeaseView | None = None
        self.exit_code: int | None = None

    def result(self) -> int:
        """Acquires, runs the command, releases, and returns the exit code."""
        self.command = Command(lambda: self.lease is not None and self.lease.held)
        try:
            return self._result()
        except _Interrupted:
            return 128 + self.signals.received
        finally:
            self.command.kill()

    def _result(self) -> int:
        try:
            return self._under_lease() if self.slot is None else self._once()
        except HoldfastError as error:
            if self.lease is None and error.code in ("LeaseHeld", "RateExceeded", "Superseded"):
                self._note(refusal(error, self._read() if error.code == "LeaseHeld" else None))
                return EXIT_HELD if self.held_exit is None else self.held_exit
            if self.exit_code is None or error.code != "LeaseLost":
                raise
            lost = f"the lease of {self.key} is lost ({error.fields['reason']})"
            self._note(f"{lost}: this command did not complete the slot")
            return EXIT_LOST

    def _under_lease(self) -> int:
        lease = self.client.acquire(self.key, **self.options)
        try:
            if changed := lease.limit_changed:
                advice = "all callers of a key should pass the same --limit"
                self._note(f"the limit of {self.key} was {changed['from']}, and is now {changed['to']}: {advice}")
            return self._work(lease, {})
        finally:
            # An expired lease needs no release, and if the service did not answer the heartbeats, a release would only
            # delay the exit.
            if lease.remaining > 0:
                lease.release()

    def _once(self) -> int:
        def work(run: Run) -> None:
            if self.rates:
                left = max(0.0, self.limits["wait"] - since(self.signals, self.started_at))
                options = {**self.limits, "rates": self.rates, "wait": left}
                play(self.core, Reservation(self.core, self.key, run.holder, options).steps(run._kept))
            # A separate view, because `once` must not see that the lease was checked: if the command has succeeded, the
            # service decides whether that was in time.
            if self._work(LeaseView(run._kept), {"HOLDFAST_SLOT": run.slot}) != 0:
                raise _CommandFailed

        try:
            answer = self.client.once(self.key, work, **self.options)
        except _CommandFailed:
            return self.exit_code or 0
        if answer.outcome != "ran":
            self._note(done_text(self.key, answer))
        return 0

    def _work(self, lease: LeaseView, more: Mapping[str, str]) -> int:
        command, self.lease = self.command, lease
        self.signals.forward_to(command)
        if command.terminal is None:
            signal.signal(signal.SIGTSTP, lambda *_: command.stop())
        signal.signal(signal.SIGCONT, lambda *_: command.resume())
        command.start([self.file, *self.words], self._environment(lease, more), lease.remaining)
        self.exit_code = Supervisor(command, lease, self.grace, self.slot is not None, self._note).run()
        return self.exit_code

    def _environment(self, lease: LeaseView, more: Mapping[str, str]) -> dict[str, str]:
        """The environment of the command.

        It lacks the lease id, because any process of the command could pass it on.
        """
        named = {"HOLDFAST_KEY": lease.key, "HOLDFAST_FENCE": str(lease.fence), "HOLDFAST_HOLDER": lease.holder, **more}
        if self.core.namespace:
            named["HOLDFAST_NAMESPACE"] = self.core.namespace
        if self.fence_name:
            named[self.fence_name] = str(lease.fence)
        # If this runs inside of another run, these belong to the keys of the other one.
        inherited = {name: value for name, value in os.environ.items() if name not in _OF_OUTER_RUN}
        return {**inherited, **named}

    def _read(self) -> Any:
        try:
            return self.client.call("readLeases" if self.slot is None else "readOnce", {"key": self.key}, timeout=2)
        except HoldfastError:
            return None

    def _note(self, text: str) -> None:
        if not self.is_quiet:
            print_line(text)

    def _on_event(self, event: Mapping[str, Any]) -> None:
        if event["type"] == "waiting" and (line := self.lines.line(event)):
            self._note(line)

    def _with_notes(self, transport: Transport) -> Transport:
        """Prints why a call is tried again, one line until an answer comes. Under the lease, only a loss is printed."""
        failure, is_noted = "", False

        def send(operation: str, request: Mapping[str, Any], seconds: float, namespace: str | None) -> Any:
            nonlocal failure, is_noted
            if failure and not is_noted and self.lease is None and operation in _AWAITED:
                self._note(f"{failure}: trying again")
                is_noted = True
            failure = "no answer came"
            try:
                answer = transport(operation, request, seconds, namespace)
            except HoldfastError as error:
                failure = message_of(error) if is_transient(error) else ""
                raise
            failure, is_noted = "", False
            return answer

        return send


_AWAITED = ("acquire", "onceBegin", "rateReserve")
_OF_OUTER_RUN = ("HOLDFAST_FENCES", "HOLDFAST_SLOT")
