"""Lets SIGTERM end a program as Ctrl-C does, so that its request is withdrawn, or its lease is released."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_inside = 0
_process = 0


def _exit(number: int, _: FrameType | None) -> None:
    if os.getpid() != _process:  # a forked child has no lease, so it ends as it would without this handler
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        return
    raise SystemExit(128 + number)


@contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """Turns SIGTERM into SystemExit(143), in the main thread, unless the program has a handler of its own."""
    global _inside, _process
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    if _inside == 0 and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        _process = os.getpid()
        signal.signal(signal.SIGTERM, _exit)
    _inside += 1
    try:
        yield
    finally:
        _inside -= 1
        if _inside == 0 and signal.getsignal(signal.SIGTERM) is _exit:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
