"""The service in memory answers as the real one: each case is played on both, and the answers are compared."""

from __future__ import annotations

import re
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from holdfast import HoldfastError
from holdfast.http import Http
from holdfast.testing import MemoryService

Step = tuple[str, dict[str, Any]]
A, B, C = {"holder": "a"}, {"holder": "b"}, {"holder": "c"}
LIMIT = {"limit": 3}
TIMES = re.compile(r"(Ms|At|[uU]ntil|since|at|deadline|sleepSeconds)$")
IDS = {"leaseId", "version", "traceId", "ticket", "requestId", "reservation"}
INSTANT = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")

# A call is an operation with fields. `$n.field` is a field of the answer to call n. `&` plays a call in a thread, until
# it waits in line; `join` waits for call n. The key is `k`, unless the call names another, and the holder `a`.
CASES: dict[str, list[Step]] = {
    "a lease is granted, extended, read and released": [
        ("acquire", {"ttlSeconds": 30, "data": {"x": [1]}}),
        ("readLeases", {}),
        ("heartbeat", {"leaseId": "$0.leaseId"}),
        ("heartbeat", {"leaseId": "$0.leaseId", "ttlSeconds": 90}),
        ("readLeases", {"waiters": True}),
        ("release", {"leaseId": "$0.leaseId"}),
        ("release", {"leaseId": "$0.leaseId"}),
        ("heartbeat", {"leaseId": "$0.leaseId"}),
        ("readLeases", {}),
    ],
    "a key that was never used is free": [("readLeases", {}), ("breakLease", {"fence": 1})],
    "a held key refuses others, and says who holds it": [("acquire", {}), ("acquire", B), ("acquire", {**B, **LIMIT})],
    "a retry of a request receives its grant again": [
        ("acquire", {"requestId": "one"}),
        ("acquire", {"requestId": "one"}),
        ("acquire", {**B, "requestId": "one"}),
    ],
    "a retry after the release learns that the grant is over": [
        ("acquire", {"requestId": "one"}),
        ("release", {"leaseId": "$0.leaseId"}),
        ("acquire", {"requestId": "one"}),
    ],
    "a retry is granted again, even if two grants of its request have expired": [
        ("acquire", {"requestId": "one", "ttlSeconds": 2}),
        ("sleep", {"seconds": 2.1}),
        ("acquire", {"requestId": "one", "ttlSeconds": 2}),
        ("sleep", {"seconds": 2.1}),
        ("acquire", {"requestId": "one"}),
    ],
    "the next holder learns of the previous one": [
        ("acquire", {}),
        ("release", {"leaseId": "$0.leaseId"}),
        ("acquire", B),
        ("readLeases", {}),
    ],
    "a lease without heartbeats can be taken after its end": [
        ("acquire", {"ttlSeconds": 2}),
        ("sleep", {"seconds": 2.1}),
        ("readLeases", {}),
        ("acquire", B),
        ("heartbeat", {"leaseId": "$0.leaseId"}),
        ("release", {"leaseId": "$0.leaseId"}),
    ],
    "a break ends the lease of the holder": [
        ("acquire", {}),
        ("breakLease", {"fence": "$0.fence"}),
        ("heartbeat", {"leaseId": "$0.leaseId"}),
        ("readLeases", {}),
        ("acquire", B),
    ],
    "a break that waits keeps the key for its holder": [
        ("acquire", {}),
        ("breakLease", {"fence": "$0.fence", "wait": True}),
        ("heartbeat", {"leaseId": "$0.leaseId"}),
        ("readLeases", {}),
        ("acquire", B),
        ("release", {"leaseId": "$0.leaseId"}),
        ("heartbeat", {"leaseId": "$0.leaseId"}),
        ("acquire", B),
    ],
    "an unknown lease id is lost": [("heartbeat", {"leaseId": "no"}), ("release", {"leaseId": "no"})],
    "permits share a key up to the limit": [
        ("acquire", LIMIT),
        ("acquire", {**B, **LIMIT, "weight": 2}),
        ("acquire", {**C, **LIMIT}),
        ("acquire", C),
        ("readLeases", {}),
        ("release", {"leaseId": "$1.leaseId"}),
        ("acquire", {**C, "limit": 4}),
        ("breakLease", {"fence": "$0.fence"}),
        ("heartbeat", {"leaseId": "$0.leaseId"}),
        ("readLeases", {}),
    ],
    "a lighter permit does not pass a key that is held alone": [
        ("acquire", {"mode": "exclusive"}),
        ("acquire", {**B, "mode": "shared"}),
        ("release", {"leaseId": "$0.leaseId"}),
        ("acquire", {**B, "mode": "shared"}),
        ("acquire", {**C, "mode": "exclusive"}),
        ("release", {"leaseId": "$3.leaseId"}),
        ("acquire", {**C, "mode": "exclusive"}),
    ],
    "a wait in line ends with the position of the caller": [("acquire", {}), ("acquire", {**B, "waitSeconds": 1})],
    "callers in line are served in the order of their arrival": [
        ("acquire", {}),
        ("&acquire", {**B, "waitSeconds": 20}),
        ("&acquire", {**C, "waitSeconds": 20}),
        ("readLeases", {"waiters": True}),
        ("acquire", {"holder": "d"}),
        ("release", {"leaseId": "$0.leaseId"}),
        ("join", {"call": 1}),
        ("heartbeat", {"leaseId": "$0.leaseId"}),
        ("release", {"leaseId": "$1.leaseId"}),
        ("join", {"call": 2}),
        ("heartbeat", {"leaseId": "$1.leaseId"}),
        ("breakLease", {"fence": "$2.fence"}),
        ("heartbeat", {"leaseId": "$2.leaseId"}),
    ],
    "a waiter that is withdrawn receives no lease": [
        ("acquire", {}),
        ("&acquire", {**B, "waitSeconds": 20, "requestId": "two"}),
        ("withdraw", {**B, "requestId": "two"}),
        ("join", {"call": 1}),
        ("withdraw", {**B, "requestId": "three"}),
        ("withdraw", {**C, "requestId": "two"}),
        ("readLeases", {}),
    ],
    "a grant that is withdrawn is released": [
        ("acquire", {"requestId": "one"}),
        ("withdraw", {**A, "requestId": "one"}),
        ("heartbeat", {"leaseId": "$0.leaseId"}),
        ("acquire", B),
    ],
    "a newer request replaces one that waits": [
        ("acquire", {}),
        ("&acquire", {**B, "waitSeconds": 20, "replace": "waiting", "requestId": "two"}),
        ("&acquire", {**C, "waitSeconds": 20, "replace": "waiting"}),
        ("join", {"call": 1}),
        ("acquire", {**B, "waitSeconds": 20, "replace": "waiting", "requestId": "two"}),
        ("release", {"leaseId": "$0.leaseId"}),
        ("join", {"call": 2}),
    ],
    "a newer request asks a holder to stop that said running": [
        ("acquire", {"waitSeconds": 1, "replace": "running"}),
        ("&acquire", {**B, "waitSeconds": 20, "replace": "running"}),
        ("heartbeat", {"leaseId": "$0.leaseId"}),
        ("readLeases", {}),
        ("release", {"leaseId": "$0.leaseId"}),
        ("join", {"call": 1}),
        ("heartbeat", {"leaseId": "$0.leaseId"}),
        ("release", {"leaseId": "$0.leaseId"}),
        ("readLeases", {}),
    ],
    "a slot is done once, and others receive its result": [
        ("onceBegin", {"slot": "s1"}),
        ("onceBegin", {**B, "slot": "s1"}),
        ("onceComplete", {"leaseId": "$0.leaseId", "result": {"n": 1}}),
        ("onceComplete", {"leaseId": "$0.leaseId", "result": {"n": 2}}),
        ("onceBegin", {**B, "slot": "s1"}),
        ("onceBegin", {**B, "slot": "s0"}),
        ("onceBegin", {**B, "slot": "s1", "inputHash": "other"}),
        ("onceBegin", {**B, "slot": "s2"}),
    ],
    "a run that is released leaves its slot open": [
        ("onceBegin", {}),
        ("heartbeat", {"leaseId": "$0.leaseId"}),
        ("release", {"leaseId": "$0.leaseId"}),
        ("onceComplete", {"leaseId": "$0.leaseId"}),
        ("onceBegin", B),
        ("onceComplete", {"leaseId": "no"}),
    ],
    "a retry of a begin receives its run again": [
        ("onceBegin", {"requestId": "one", "slot": "s1"}),
        ("onceBegin", {"requestId": "one", "slot": "s1"}),
    ],
    "slots are periods, also of a time zone": [
        ("onceBegin", {"key": "day", "per": "1d", "zone": "Pacific/Kiritimati"}),
        ("onceBegin", {"key": "day", **B, "per": "1d", "zone": "Pacific/Kiritimati", "waitSeconds": 1}),
    ],
    "a broken run is lost": [
        ("onceBegin", {"slot": "s1"}),
        ("breakLease", {"fence": "$0.fence", "kind": "once"}),
        ("onceComplete", {"leaseId": "$0.leaseId"}),
        ("onceBegin", {**B, "slot": "s1"}),
    ],
    "starts are spaced by the rate": [
        ("rateReserve", {"rates": [{"limit": 2, "per": "1m"}], "requestId": "one"}),
        ("rateReserve", {"rates": [{"limit": 2, "per": "1m"}], "requestId": "one"}),
        ("rateReserve", {"rates": [{"limit": 2, "per": "1m"}]}),
        ("rateReserve", {"rates": [{"limit": 2, "per": "1m"}], "waitSeconds": 60}),
        ("rateSettle", {"reservation": "$3.reservation", "cancel": True}),
        ("rateSettle", {"reservation": "$3.reservation", "cancel": True}),
        ("rateReserve", {"rates": [{"limit": 3, "per": "1m"}], "waitSeconds": 60}),
    ],
    "a reservation is settled once, by the names of its rates": [
        ("rateReserve", {"rates": [{"limit": 9, "per": "1m", "name": "tokens", "units": 5}], "settle": True}),
        ("rateSettle", {"reservation": "$0.reservation", "units": {"tokens": 2}}),
        ("rateSettle", {"reservation": "$0.reservation", "units": {"tokens": 2}}),
    ],
}


class Played:
    """One case, played on one service."""

    def __init__(self, service: Any) -> None:
        self._service = service
        self._prefix = uuid.uuid4().hex + "/"
        self.answers: list[Any] = []
        self._threads: dict[int, threading.Thread] = {}
        self._fences: dict[int, str] = {}

    def play(self, steps: list[Step]) -> list[Any]:
        for nth, (operation, fields) in enumerate(steps):
            self.answers.append(None)
            if operation == "sleep":
                time.sleep(fields["seconds"])
            elif operation == "join":
                self._threads[fields["call"]].join()
                assert self.answers[fields["call"]] is not None
            elif operation.startswith("&"):
                self._start(nth, operation[1:], fields)
            else:
                self.answers[nth] = self._call(operation, fields)
        return [self._normal("", answer) for answer in self.answers]

    def _start(self, nth: int, operation: str, fields: dict[str, Any]) -> None:
        def call() -> None:
            self.answers[nth] = self._call(operation, fields)

        before = self._call("readLeases", {})["waiting"]
        self._threads[nth] = threading.Thread(target=call)
        self._threads[nth].start()
        until = time.monotonic() + 10
        is_newer = fields.get("replace") == "waiting" and before
        while self._call("readLeases", {})["waiting"] == before and time.monotonic() < until:
            if is_newer and any(one.get("code") == "Superseded" for one in self.answers if one):
                break
            time.sleep(0.02)

    def _call(self, operation: str, fields: dict[str, Any]) -> Any:
        request = {name: self._value(value) for name, value in fields.items()}
        key = request.get("key", "k")
        request["key"] = key and self._prefix + key
        if operation in ("acquire", "onceBegin", "rateReserve"):
            request = {**A, "requestId": uuid.uuid4().hex, **request}
        try:
            return self._service(operation, request, 30.0, None)
        except HoldfastError as error:
            return {name: error.fields[name] for name in error.fields if name not in ("detail", "issues", "status")}

    def _value(self, value: Any) -> Any:
        if not isinstance(value, str) or not value.startswith("$"):
            return value
        call, name = value[1:].split(".")
        return self.answers[int(call)][name]

    def _normal(self, name: str, value: Any) -> Any:
        """A value without the parts that differ from run to run. Fences are numbered in the order of appearance."""
        if isinstance(value, dict):
            return {one: self._normal(one, value[one]) for one in sorted(value)}
        if isinstance(value, list):
            return [self._normal("", one) for one in value]
        if value is None or isinstance(value, bool):
            return value
        if name == "fence":
            return self._fences.setdefault(value, f"fence {len(self._fences)}")
        if TIMES.search(name) and name not in ("comeBackMs", "keptMs"):
            return "a time"
        if name in IDS:
            return "an id"
        if isinstance(value, str):
            return INSTANT.sub("a time", value.replace(self._prefix, ""))
        return value


@pytest.mark.parametrize("title", CASES)
def test_memory_answers_as_the_real_service(title: str, endpoint: str) -> None:
    with ThreadPoolExecutor(2) as pool:  # side by side, because some cases wait for seconds
        both = Http(endpoint, None, None), MemoryService()
        real, memory = pool.map(lambda service: Played(service).play(CASES[title]), both)
    for step, of_memory, of_real in zip(CASES[title], memory, real, strict=True):
        assert of_memory == part(of_real, of_memory), step


def part(real: Any, memory: Any) -> Any:
    """The part of a real answer that the service in memory also has. Texts may differ."""
    if isinstance(real, dict) and isinstance(memory, dict):
        return {name: part(real.get(name), memory[name]) for name in memory}
    if isinstance(real, list) and isinstance(memory, list) and len(real) == len(memory):
        return [part(one, other) for one, other in zip(real, memory, strict=True)]
    return real


def test_a_call_that_memory_does_not_have_is_refused_by_name() -> None:
    with pytest.raises(HoldfastError, match="publish is not a call of the service in memory") as raised:
        MemoryService()("publish", {}, 1.0)
    assert raised.value.code == "Refused"
