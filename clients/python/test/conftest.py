from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from service import Service, serving

from holdfast import base
from holdfast_pytest import holdfast_clock, holdfast_service

__all__ = ["holdfast_clock", "holdfast_service"]

ROOT = Path(__file__).parents[3]

# A background job of a shell ignores SIGINT, and so would the programs that the tests start and interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def service() -> Iterator[Service]:
    """A service that grants every lease, over HTTP."""
    with serving() as one:
        yield one


def free_ports(count: int) -> int:
    """The first of `count` consecutive free ports."""
    for first in range(20_000 + os.getpid() % 20_000, 60_000, count):
        with suppress(OSError):
            for port in range(first, first + count):
                with socket.socket() as one:
                    one.bind(("127.0.0.1", port))
            return first
    raise OSError("no ports are free")


@pytest.fixture(scope="session")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The real service over emulators: the one at HOLDFAST_TEST_ENDPOINT, or a new stack."""
    given = os.environ.get("HOLDFAST_TEST_ENDPOINT")
    if given:
        yield given
        return
    node = ROOT / "node_modules" / ".bin" / "node"
    program = str(node) if node.exists() else shutil.which("node")
    if not program or not (ROOT / "node_modules" / "typescript").exists():
        pytest.skip("the real service needs the Node modules of the repository: npm install")
    port = free_ports(5)
    args = [program, "local/start.ts", "--memory", "--port", str(port)]
    env = {**os.environ, "CLOCK_SKEW_MS": "0", "NODE_NO_WARNINGS": "1"}
    log = tmp_path_factory.mktemp("stack") / "log"
    with log.open("w") as out, subprocess.Popen(args, cwd=ROOT, env=env, stdout=out, stderr=out) as stack:
        try:
            url = f"http://127.0.0.1:{port}"
            until = time.monotonic() + 30
            while True:
                with suppress(OSError), urllib.request.urlopen(f"{url}/v1/health", timeout=5):
                    break
                if stack.poll() is not None or time.monotonic() > until:
                    pytest.fail(f"the stack does not start: {log.read_text()}")
                time.sleep(0.1)
            yield url
        finally:
            stack.terminate()


@pytest.fixture
def namespace(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A new namespace, in which the functions of `holdfast` call the real service."""
    name = f"test-{uuid.uuid4().hex[:12]}"
    monkeypatch.setenv("HOLDFAST_ENDPOINT", endpoint)
    monkeypatch.setenv("HOLDFAST_NAMESPACE", name)
    monkeypatch.setattr(base, "_clients", {})
    return name
