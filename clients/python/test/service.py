"""A service that answers as a test says, over real HTTP."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = tuple[int, "bytes | dict[str, Any]"]


class Service:
    """Grants every lease, unless a test gives another answer. `received` lists the calls with their requests."""

    def __init__(self) -> None:
        self.received: list[tuple[str, dict[str, Any]]] = []
        self.headers: list[dict[str, str]] = []
        self.answers: dict[str, Callable[[dict[str, Any]], Answer]] = {}
        self.url = ""

    def calls(self, name: str) -> list[dict[str, Any]]:
        """The requests of one call."""
        return [request for call, request in self.received if call == name]

    def answer(self, call: str, request: dict[str, Any]) -> Answer:
        if call in self.answers:
            return self.answers[call](request)
        ms = 1000 * request.get("ttlSeconds", 60)
        grant = {"key": request.get("key"), "fence": 7, "expiresAt": "2026-01-01T00:00:00.000Z", "remainingMs": ms}
        if call in ("acquire", "heartbeat"):
            return 200, {**grant, "holder": request.get("holder"), "waitedMs": 0, "leaseId": str(uuid.uuid4())}
        return 200, {"released": True, "cancelled": True}


@contextmanager
def serving() -> Iterator[Service]:
    """Serves on a free port of this machine."""
    service = Service()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            call, request = self.path.split("?")[0].rsplit("/", 1)[-1], json.loads(body or b"{}")
            service.received.append((call, request))
            service.headers.append({"path": self.path, **{name.lower(): text for name, text in self.headers.items()}})
            status, answer = service.answer(call, request)
            text = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(text)))
            if 300 <= status < 400:
                self.send_header("location", "http://127.0.0.1:9/elsewhere")
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST

        def log_message(self, *_: Any) -> None:
            """Does not log."""

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_: Any) -> None:
            """Ignores that a client was killed."""

    server = Server(("127.0.0.1", 0), Handler)
    service.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield service
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def problem(code: str, **fields: Any) -> dict[str, Any]:
    """An error of the service."""
    return {"type": f"urn:holdfast:error:{code}", "code": code, "detail": f"{code} in a test", **fields}
