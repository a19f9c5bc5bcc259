"""The keys of `testing.MemoryService`: leases, permits, slots and rates, by the rules of the service."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from .errors import HoldfastError, error_of
from .rate import period_seconds
from .surroundings import Surroundings

Fields = dict[str, Any]
DAY = 86_400
KEPT_MS = 5000
"""How long the position of a caller in line is kept until it comes back."""


def problem(code: str, detail: str, /, **fields: Any) -> HoldfastError:
    """Makes an error as the service sends it."""
    return error_of({"type": f"urn:holdfast:error:{code}", "code": code, "detail": detail, **fields})


def instant(ms: float) -> str:
    """A time in ISO 8601, as the service writes it."""
    return datetime.fromtimestamp(int(ms) / 1000, timezone.utc).isoformat(timespec="milliseconds")[:-6] + "Z"


def limit_of(request: Mapping[str, Any]) -> int | None:
    """The limit of a permit. None for a request that wants the key alone."""
    is_alone = request.get("mode") == "exclusive" or not ("limit" in request or "mode" in request)
    return None if is_alone else int(request.get("limit", 200))


@dataclass(eq=False)
class Grant:
    """A grant. `ends` is in epoch milliseconds."""

    request: Fields
    lease_id: str
    fence: int
    ends: int
    previous: Fields | None
    ending: str | None = None
    """`broken` or `superseded`, if the holder was asked to stop, and keeps the grant until its release."""

    @property
    def shown(self) -> Fields:
        """The fields of the grant that others see."""
        named = {"holder": self.request["holder"], "fence": self.fence, "expiresAt": instant(self.ends)}
        mode = "exclusive" if limit_of(self.request) is None else "shared"
        return {**named, "mode": mode, "weight": self.request.get("weight", 1)}


@dataclass(eq=False)
class Waiter:
    """A call in line. Its thread waits for the event `ended`."""

    request: Fields
    ticket: str
    since: int
    ended: threading.Event = field(default_factory=threading.Event)
    answer: Fields | None = None
    error: HoldfastError | None = None

    def end(self, answer: Fields | None, error: HoldfastError | None = None) -> None:
        """Ends the wait."""
        self.answer, self.error = answer, error
        self.ended.set()


class Key:
    """A key: its grants, its line, its last slot and its rates. The service calls it under a mutex."""

    def __init__(self, name: str, clock: Surroundings, mutex: threading.Lock) -> None:
        self.name, self.clock, self.mutex = name, clock, mutex
        self.grants: list[Grant] = []
        self.line: list[Waiter] = []
        self.over: dict[str, str] = {}
        """How each grant ended, by its lease id and by its request id."""
        self.superseded_by: dict[str, str] = {}
        """The holder that superseded a request, by the id of that request."""
        self.latest: str | None = None
        self.fence = self.tickets = 0
        self.previous: Fields | None = None
        self.last: Grant | None = None
        self.done: Fields | None = None
        self.paid = 0.0
        """Until when the rates of the key are paid, in epoch milliseconds."""
        self.reserved: dict[str, Fields] = {}

    @property
    def now(self) -> int:
        """Epoch milliseconds."""
        return round(self.clock.wall() * 1000)

    @property
    def live(self) -> list[Grant]:
        """The grants that have not expired, ordered by when they end."""
        return sorted((one for one in self.grants if one.ends > self.now), key=lambda one: one.ends)

    def acquire(self, request: Fields) -> Fields:
        """Grants, or waits in line for up to `waitSeconds`."""
        grant = next((one for one in self.live if one.request["requestId"] == request["requestId"]), None)
        if grant and not grant.ending and grant.request["holder"] == request["holder"]:
            return self.answer(grant, repeated=True)
        if request["requestId"] in self.over:
            raise self.lost(self.over[request["requestId"]])
        if "replace" in request:
            self.replace(request)
        ticket = request.get("ticket")
        if self.has_room(request) and all(ticket and ticket < one.ticket for one in self.line):
            return self.answer(self.grant(request))
        if not request.get("waitSeconds"):
            raise self.held(request)
        return self.wait(request, ticket)

    def wait(self, request: Fields, ticket: str | None) -> Fields:
        """Waits in line for up to `waitSeconds`."""
        self.tickets += 1
        waiter = Waiter(request, ticket or f"{self.tickets:012}", self.now)
        self.line = sorted([*self.line, waiter], key=lambda one: one.ticket)
        until = self.now + request["waitSeconds"] * 1000
        while not waiter.ended.is_set() and self.now < until:
            self.pause(waiter.ended, min([until, *(one.ends for one in self.live)]))
            self.serve()
        if waiter.answer:
            return waiter.answer
        if not waiter.error:
            waiter.error = self.held(request, waiter)
            self.line.remove(waiter)
        raise waiter.error

    def pause(self, event: threading.Event, until: int) -> None:
        """Lets other calls act until the event is set, or the moment comes."""
        self.mutex.release()
        try:
            self.clock.wait(event, max(1, until - self.now) / 1000)
        finally:
            self.mutex.acquire()

    def has_room(self, request: Mapping[str, Any]) -> bool:
        """True if a request fits beside the grants."""
        limit, live = limit_of(request), self.live
        if limit is None or any(limit_of(one.request) is None for one in live):
            return not live
        used: int = sum(one.request.get("weight", 1) for one in live)
        return used + int(request.get("weight", 1)) <= limit

    def serve(self) -> None:
        """Serves the waiters in order."""
        while self.line and self.has_room(self.line[0].request):
            waiter = self.line.pop(0)
            waiter.end({**self.answer(self.grant(waiter.request)), "waitedMs": self.now - waiter.since})

    def replace(self, request: Fields) -> None:
        """Makes a request the newest one, which replaces the one before."""
        request_id, holder = request["requestId"], request["holder"]
        if request_id in self.superseded_by:
            raise self.superseded(request_id)
        if self.latest and self.latest != request_id:
            self.superseded_by[self.latest] = holder
            for waiter in [one for one in self.line if one.request["requestId"] == self.latest]:
                self.line.remove(waiter)
                waiter.end(None, self.superseded(self.latest))
        self.latest = request_id
        for grant in self.live:
            if request["replace"] == grant.request.get("replace") == "running" and not grant.ending:
                grant.ending = "superseded"
                self.superseded_by[grant.request["requestId"]] = holder

    def superseded(self, request_id: str) -> HoldfastError:
        """The error for a request that was replaced."""
        by = self.superseded_by[request_id]
        return problem("Superseded", f"a newer request, by {by}, has replaced this one", key=self.name, by=by)

    def grant(self, request: Fields) -> Grant:
        """Makes a grant."""
        for grant in [one for one in self.grants if one.ends <= self.now]:
            self.end(grant, "taken")
        self.over.pop(request["requestId"], None)  # the request itself may have had one of the expired grants
        self.fence += 1
        ends = self.now + request.get("ttlSeconds", 60) * 1000
        previous = self.previous if limit_of(request) is None else None
        self.last = grant = Grant({**request}, self.clock.uuid(), self.fence, ends, previous)
        self.latest = None if self.latest == request["requestId"] else self.latest
        self.grants.append(grant)
        return grant

    def end(self, grant: Grant, reason: str) -> None:
        """Ends a grant, and records how it ended, for its holder and for the next one."""
        self.grants.remove(grant)
        self.over[grant.lease_id] = self.over[grant.request["requestId"]] = reason
        ended = reason if reason in ("released", "broken", "superseded") else "expired"
        at = instant(grant.ends if ended == "expired" else self.now)
        self.previous = {"holder": grant.request["holder"], "fence": grant.fence, "ended": ended, "at": at}
        if limit_of(grant.request) is not None:
            self.previous = None

    def answer(self, grant: Grant, repeated: bool = False) -> Fields:
        """The answer of `acquire`."""
        permit: Fields = {}
        if limit := limit_of(grant.request):
            used = sum(one.request.get("weight", 1) for one in self.live)
            permit = {"mode": "shared", "limit": limit, "weight": grant.request.get("weight", 1), "used": used}
        acquired = {"leaseId": grant.lease_id, "previous": grant.previous, "repeated": repeated, "waitedMs": 0}
        return {**self.fields_of(grant), **acquired, **permit}

    def fields_of(self, grant: Grant) -> Fields:
        """The fields that every holder of a grant sees, which are the answer of a heartbeat."""
        left = {"remainingMs": grant.ends - self.now, "expiresAt": instant(grant.ends)}
        return {"key": self.name, "holder": grant.request["holder"], "fence": grant.fence, **left}

    def find(self, lease_id: str) -> Grant | None:
        """The grant of a lease id."""
        return next((one for one in self.grants if one.lease_id == lease_id), None)

    def knows(self, lease_id: str) -> bool:
        """True if the key has, or had, the grant of a lease id."""
        return lease_id in self.over or self.find(lease_id) is not None

    def heartbeat(self, request: Fields) -> Fields:
        """Extends a grant."""
        grant = self.find(request["leaseId"])
        if not grant or grant.ending:
            raise self.lost((grant and grant.ending) or self.over.get(request["leaseId"], "unknown"))
        grant.ends = self.now + grant.request.get("ttlSeconds", 60) * 1000
        return self.fields_of(grant)

    def release(self, request: Fields) -> Fields:
        """Ends a grant for its holder."""
        if grant := self.find(request["leaseId"]):
            self.end(grant, grant.ending or "released")
            self.over[grant.lease_id] = "released"
            self.serve()
        reason = self.over.get(request["leaseId"], "unknown")
        released = reason == "released"
        return {"key": self.name, "released": released, **({} if released else {"reason": reason})}

    def withdraw(self, request: Fields) -> Fields:
        """Takes a request out of the line, or ends its grant."""
        request_id, holder = request["requestId"], request["holder"]
        waiters = [
            one for one in self.line if (one.request["requestId"], one.request["holder"]) == (request_id, holder)
        ]
        grants = [
            one for one in self.grants if (one.request["requestId"], one.request["holder"]) == (request_id, holder)
        ]
        for waiter in waiters:
            self.line.remove(waiter)
            waiter.end(None, self.lost("cancelled"))
        for grant in grants:
            self.end(grant, grant.ending or "released")
        cancelled = bool(waiters or grants)
        if cancelled:
            self.over[request_id] = "released" if grants else "cancelled"
        self.serve()
        return {"key": self.name, "requestId": request_id, "cancelled": cancelled}

    def break_(self, request: Fields) -> Fields:
        """Ends a grant for an operator."""
        grant = next((one for one in self.grants if one.fence == request["fence"]), None)
        if not grant:
            raise problem("NotFound", "no grant of the key has the fence", key=self.name)
        if request.get("wait"):
            grant.ending = "broken"
        else:
            self.end(grant, "broken")
            self.serve()
        named = {"key": self.name, "fence": grant.fence, "holder": grant.request["holder"]}
        return {**named, "broken": True, "ended": not request.get("wait")}

    def lose(self, reason: str) -> None:
        """Ends every grant."""
        for grant in [*self.grants]:
            self.end(grant, reason)
        if reason == "taken":
            self.grant({"holder": "another", "ttlSeconds": 365 * DAY, "requestId": self.clock.uuid()})
        self.serve()

    def lost(self, reason: str) -> HoldfastError:
        """The error for a grant that has ended."""
        text = f"the grant is no longer yours ({reason}): stop the work under the grant"
        alone = next((one.request["holder"] for one in self.live if limit_of(one.request) is None), None)
        holder = None if reason in ("broken", "superseded", "cancelled") else alone
        return problem("LeaseLost", text, status=412, key=self.name, reason=reason, holder=holder)

    def held(self, request: Fields, waiter: Waiter | None = None) -> HoldfastError:
        """The error for a call that is not granted now."""
        live = self.live
        soonest = live[0].shown if live else {"holder": None, "fence": None, "expiresAt": None}
        text = f"{self.name} is held by {soonest['holder']} until {soonest['expiresAt']}"
        fields = {name: soonest[name] for name in ("holder", "fence", "expiresAt")}
        fields.update(used=sum(one.request.get("weight", 1) for one in live), limit=limit_of(request))
        if live and fields["limit"] is None:
            fields["limit"] = limit_of(live[0].request)
        fields.update(holders=[one.shown for one in live], retryAfterMs=live[0].ends - self.now if live else 1000)
        if waiter:
            fields.update(place=self.line.index(waiter) + 1, waiting=len(self.line) - 1)
            fields.update(keptMs=KEPT_MS, retryWith={"ticket": waiter.ticket})
        text = text if live else f"{self.name} has other waiters in line"
        return problem("LeaseHeld", text, status=409, key=self.name, **fields)

    def view(self) -> Fields:
        """The answer of `readLeases` for the key."""
        shown = sorted(self.grants, key=lambda one: (one.ends <= self.now, one.ends))
        grant = shown[0] if shown else self.last
        expires_at = shown[0].shown["expiresAt"] if shown else None
        state = ("held" if shown[0].ends > self.now else "expired") if shown else "released" if grant else "free"
        return {
            "key": self.name,
            "state": state,
            "holder": grant.shown["holder"] if grant else None,
            "fence": grant.shown["fence"] if grant else None,
            "expiresAt": expires_at,
            "data": grant.request.get("data") if grant else None,
            "holders": [one.shown for one in shown],
            "used": sum(one.request.get("weight", 1) for one in shown),
            "waiting": len(self.line),
        }

    # Slots.

    def begin(self, request: Fields) -> Fields:
        """Begins a run, and waits while another caller works."""
        per = request.get("per")
        length = period_of(per, "per") if per else 0
        slot = request.get("slot") or (slot_at(self.now, per, length, request.get("zone")) if per else "-")
        until, since = self.now + request.get("waitSeconds", 0) * 1000, self.now
        while True:
            if answer := self.answer_for_done_slot(request, slot):
                return answer
            try:
                grant = self.acquire({**request, "waitSeconds": 0, "slot": slot, "keep": 2 * length})
                slot = (self.find(grant["leaseId"]) or self.grants[0]).request["slot"]
                return {"outcome": "run", **grant, "slot": slot, "waitedMs": self.now - since}
            except HoldfastError as error:
                if error.code != "LeaseHeld":
                    raise
                if self.now >= until:
                    raise error_of({**error.fields, **({"retryWith": {"slot": slot}} if per else {})}) from None
            self.pause(threading.Event(), min(until, self.now + 100))

    def answer_for_done_slot(self, request: Fields, slot: str) -> Fields | None:
        """The answer for a slot that is done."""
        done = self.done if self.done and self.done["until"] > self.now else None
        if not done or done["slot"].encode() < slot.encode():
            return None
        slot_fields = {"key": self.name, "slot": slot, "doneBy": done["by"], "doneAt": instant(done["at"])}
        if done["slot"] != slot:
            return {"outcome": "superseded", **slot_fields, "fence": done["fence"], "doneSlot": done["slot"]}
        if request.get("inputHash", done["hash"]) != done["hash"]:
            text = "the slot is done with another input: name another slot or another key"
            raise problem("Conflict", text, key=self.name, field="inputHash")
        return {"outcome": "done", **slot_fields, "fence": done["fence"], "result": done["result"]}

    def complete(self, request: Fields) -> Fields:
        """Stores the result of a run, and ends the run."""
        lease_id, grant = request["leaseId"], self.find(request["leaseId"])
        if grant:
            begun = grant.request
            self.done = {
                "slot": begun["slot"],
                "by": begun["holder"],
                "at": self.now,
                "fence": grant.fence,
                "id": lease_id,
                "result": request.get("result"),
                "until": self.now + 1000 * begun.get("keepSeconds", max(DAY, begun["keep"])),
                "hash": begun.get("inputHash"),
            }
            self.end(grant, "released")
            self.previous = None
        if not self.done or self.done["id"] != lease_id:
            return {"key": self.name, "completed": False, "reason": self.over.get(lease_id, "unknown")}
        return {"key": self.name, "completed": True, "slot": self.done["slot"], "fence": self.done["fence"]}

    # Rates.

    def reserve(self, request: Fields) -> Fields:
        """Reserves a start."""
        reservation = self.reserved.get(request["requestId"])
        rates = [{"name": "requests", "units": 1, **one} for one in request["rates"]]
        charge, bound_by = max((charge_of(one, one["units"]), one["name"]) for one in rates)
        ahead = max(charge, min(charge_of(one, one.get("burst", one["units"])) for one in rates))
        paid = max(self.now, self.paid) + charge
        wait = max(0, -int(-(paid - ahead - self.now) // 1))
        if not reservation and wait > request.get("waitSeconds", 0) * 1000:
            text = f"the rate {bound_by} is used up for longer than the caller waits"
            after = wait - request.get("waitSeconds", 0) * 1000
            raise problem("RateExceeded", text, status=429, key=self.name, retryAfterMs=after, boundBy=bound_by)
        if not reservation:
            self.paid = paid
            reservation = {
                "start": self.now + wait,
                "charge": charge,
                "rates": rates,
                "settle": request.get("settle", False),
            }
            self.reserved[request["requestId"]] = reservation
        wait = max(0, reservation["start"] - self.now)
        start = {"startAt": instant(reservation["start"]), "waitMs": wait, "boundBy": bound_by}
        return {"key": self.name, "reservation": request["requestId"], **start}

    def settle(self, request: Fields) -> Fields:
        """Corrects the charge of a reservation by the real units, or cancels the reservation."""
        reservation = self.reserved.get(request["reservation"])
        if reservation and request.get("cancel"):
            self.paid -= reservation["charge"]
        elif reservation and reservation["rates"]:
            units = request["units"]
            self.paid += max(charge_of(one, units.get(one["name"], one["units"])) for one in reservation["rates"])
            self.paid -= reservation["charge"]
        done = reservation is not None and bool(reservation["rates"])
        self.reserved[request["reservation"]] = {"start": self.now, **(reservation or {}), "charge": 0, "rates": []}
        return {"key": self.name, ("cancelled" if request.get("cancel") else "settled"): done}


def period_of(per: str, path: str) -> int:
    """The length of a period, in seconds."""
    if seconds := period_seconds(per):
        return seconds
    message = "must be a period such as 15m, 1h or 1d"
    raise problem("InvalidRequest", f"{path}: {message}", status=400, issues=[{"path": path, "message": message}])


def charge_of(rate: Mapping[str, Any], units: float) -> float:
    """How long a rate needs to allow this many units, in milliseconds."""
    return 1000 * period_of(rate["per"], "rates.per") * units / int(rate["limit"])


def slot_at(now: int, per: str, length: int, zone: str | None) -> str:
    """The name of the period at a moment."""
    at = datetime.fromtimestamp(now / 1000, timezone.utc)
    if zone is not None:
        from zoneinfo import ZoneInfo

        at = at.astimezone(ZoneInfo(zone)).replace(tzinfo=timezone.utc)
    if per.endswith("w"):
        return "{}-W{:02}".format(*at.isocalendar())
    start = datetime.fromtimestamp(at.timestamp() // length * length, timezone.utc)
    return start.strftime("%Y-%m-%d" if length % DAY == 0 else "%Y-%m-%dT%H:%M:%SZ")


def rows_of(keys: Iterable[Key], prefix: str) -> list[Fields]:
    """The rows of a list, as `readLeases` answers them."""
    used = [one for one in keys if one.fence and one.name.startswith(prefix)]
    return [{**one.view(), "holders": len(one.grants)} for one in sorted(used, key=lambda one: one.name)]
