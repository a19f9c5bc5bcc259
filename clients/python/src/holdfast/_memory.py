"""The keys, slots and rates of `testing.MemoryService`, which calls them under its lock."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from .errors import HoldfastError, error_of
from .surroundings import Surroundings

Fields = dict[str, Any]
YEAR = 365 * 86_400
DAY = 86_400

PROBLEMS = {
    "InvalidRequest": (400, "The request is not valid"),
    "NotFound": (404, "There is no such record"),
    "LeaseHeld": (409, "The key is not available"),
    "Superseded": (409, "A newer request has replaced this one"),
    "Conflict": (409, "The record is not in the expected state"),
    "LeaseLost": (412, "The lease is no longer yours"),
    "RateExceeded": (429, "The rate is used up for longer than the call may wait"),
}
"""The status and the title of each error."""


def instant(ms: float) -> str:
    """ISO 8601, as the service writes it."""
    return datetime.fromtimestamp(int(ms) / 1000, timezone.utc).isoformat(timespec="milliseconds")[:-6] + "Z"


def now_of(by: Surroundings) -> int:
    """Milliseconds since 1970."""
    return round(by.wall() * 1000)


def problem(by: Surroundings, code: str, detail: str, /, **fields: Any) -> HoldfastError:
    """The error that the service sends."""
    status, title = PROBLEMS[code]
    head = {"type": f"urn:holdfast:error:{code}", "title": title, "status": status, "code": code, "detail": detail}
    return error_of({**head, "traceId": by.uuid(), **fields})


def invalid(by: Surroundings, path: str, message: str) -> HoldfastError:
    """The error of a field."""
    return problem(by, "InvalidRequest", f"{path}: {message}", issues=[{"path": path, "message": message}])


@dataclass(eq=False)
class Grant:
    """A grant, until another caller takes its room. Instants are in milliseconds."""

    request: Fields
    lease_id: str
    version: str
    fence: int
    acquired: int
    ends: int
    previous: Fields | None
    changed: Fields | None
    ending: str | None = None
    """`broken` or `superseded`, if the grant only stays until its holder releases it."""
    newer: str | None = None
    broken: int | None = None
    is_handed: bool = False
    """Whether it came by the line. The service then remembers how the grant before ended, until the next one."""

    @property
    def holder(self) -> str:
        return str(self.request["holder"])

    @property
    def weight(self) -> int:
        return int(self.request.get("weight", 1))


@dataclass(eq=False)
class Waiter:
    """A call in line. Its thread waits for the event."""

    request: Fields
    ticket: str
    since: int
    event: threading.Event = field(default_factory=threading.Event)
    answer: Fields | None = None
    error: HoldfastError | None = None


def is_alone(request: Mapping[str, Any]) -> bool:
    """Whether a request is for the key alone."""
    return request.get("mode") == "exclusive" or ("limit" not in request and "mode" not in request)


def limit_of(request: Mapping[str, Any]) -> int | None:
    """None for a request for the key alone."""
    return None if is_alone(request) else request.get("limit", 200)


class Lock:
    """One key: its grants and its line."""

    def __init__(self, key: str, by: Surroundings, mutex: threading.Lock, prefix: str = "") -> None:
        self.key, self.by, self.mutex, self.prefix = key, by, mutex, prefix
        self.grants: list[Grant] = []
        self.line: list[Waiter] = []
        self.ended: dict[str, str] = {}
        """How each grant ended, by its lease id and by its request id."""
        self.fence = self.tickets = 0
        self.previous: Fields | None = None
        self.last: Grant | None = None
        self.limited: Grant | None = None
        self.latest: Fields | None = None
        """The newest request with `replace`, until its grant."""
        self.newer: dict[str, str] = {}
        """The newer holder, by the id of each superseded request."""

    def error(self, code: str, detail: str, /, **fields: Any) -> HoldfastError:
        return problem(self.by, code, detail, key=self.key, **fields)

    @property
    def now(self) -> int:
        return now_of(self.by)

    @property
    def alone(self) -> Grant | None:
        """The last grant, if it was for the key alone."""
        return self.last if self.last and is_alone(self.last.request) else None

    @property
    def live(self) -> list[Grant]:
        return sorted((one for one in self.grants if one.ends > self.now), key=lambda one: one.ends)

    @property
    def used(self) -> int:
        return sum(one.weight for one in self.grants)

    @property
    def limit(self) -> int | None:
        return None if self.alone or not self.limited else limit_of(self.limited.request)

    def has_room(self, request: Mapping[str, Any]) -> bool:
        limit, weight = limit_of(request), request.get("weight", 1)
        room = 0 if limit is None or (self.alone and self.live) else limit - weight
        return sum(one.weight for one in self.live) <= room

    def acquire(self, request: Fields, in_line: bool = False) -> Fields:
        """Grants now. Raises LeaseHeld, LeaseLost, Superseded."""
        own = self.own(request)
        if own and not own.ending and own.ends > self.now:
            return self.answer(own, repeated=True)
        ended = self.ended.get(request["requestId"]) or (own.ending if own else None)
        if ended:
            raise self.lost(ended)
        if (self.line and not in_line) or not self.has_room(request):
            raise self.held(request)
        return self.answer(self.grant(request))

    def own(self, request: Mapping[str, Any]) -> Grant | None:
        named = (request["requestId"], request["holder"])
        return next((one for one in self.grants if (one.request.get("requestId"), one.holder) == named), None)

    def wait(self, request: Fields) -> Fields:
        """Grants, or waits in line for up to `waitSeconds`. Raises as `acquire`."""
        if request.get("replace"):
            self.join(request)
        ticket = request.get("ticket")
        is_first = ticket is not None and all(ticket < one.ticket for one in self.line)
        try:
            return self.acquire(request, in_line=is_first)
        except HoldfastError as error:
            if error.code != "LeaseHeld":
                raise
        self.tickets += 0 if ticket else 1
        waiter = Waiter(request, ticket or f"{self.tickets:012}", self.now)
        until = self.now + request["waitSeconds"] * 1000
        self.line.append(waiter)
        self.line.sort(key=lambda one: one.ticket)
        while not (waiter.answer or waiter.error) and self.now < until:
            pause = max(1, min([until, *(one.ends for one in self.live)]) - self.now) / 1000
            self.mutex.release()
            try:
                self.by.wait(waiter.event, pause)
            finally:
                self.mutex.acquire()
            self.serve()
        if not (waiter.answer or waiter.error):
            waiter.error = self.held(request, waiter)
            self.line.remove(waiter)
        if waiter.error:
            raise waiter.error
        return waiter.answer or {}

    def serve(self) -> None:
        """Grants to the waiters in order."""
        while self.line and self.has_room(self.line[0].request):
            waiter = self.line.pop(0)
            grant = self.grant({**waiter.request, "ticket": waiter.ticket}, is_handed=True)
            waiter.answer = self.answer(grant, waited=self.now - waiter.since)
            waiter.event.set()

    def refuse(self, waiter: Waiter, error: HoldfastError) -> None:
        self.line.remove(waiter)
        waiter.error = error
        waiter.event.set()

    def join(self, request: Fields) -> None:
        """Makes a request the newest: it replaces the newest before, and asks the holder to stop if both said
        `running`.
        """
        own, holder = request["requestId"], request["holder"]
        if own in self.newer:
            raise self.superseded(self.newer[own])
        if own in self.ended or any(one.request["requestId"] == own for one in self.grants):
            return
        before, self.latest = self.latest, request
        if before and before["requestId"] != own:
            self.newer[before["requestId"]] = holder
            for waiter in [one for one in self.line if one.request["requestId"] == before["requestId"]]:
                self.refuse(waiter, self.superseded(holder))
        for grant in self.grants:
            if request["replace"] == grant.request.get("replace") == "running" and not grant.ending:
                grant.ending, grant.newer, grant.broken = "superseded", holder, self.now
                self.newer[grant.request["requestId"]] = holder

    def superseded(self, by: str) -> HoldfastError:
        return self.error("Superseded", f"a newer request, by {by}, has replaced this one", by=by)

    def grant(self, request: Fields, is_handed: bool = False) -> Grant:
        now, limit = self.now, request.get("limit")
        for grant in [one for one in self.grants if one.ends <= now]:
            self.note(grant, "taken")
        self.grants = [one for one in self.grants if one.lease_id not in self.ended]
        before = self.limited.request.get("limit") if self.limited else None
        if self.alone and self.alone.lease_id in self.ended and not is_handed:
            self.ended[self.alone.lease_id] = "taken"
        self.fence += 1
        changed = {"from": before, "to": limit} if limit and before and limit != before else None
        ends = now + request.get("ttlSeconds", 60) * 1000
        named = self.prefix + self.by.uuid(), self.by.uuid()
        grant = Grant(dict(request), *named, self.fence, now, ends, self.previous, changed)
        grant.is_handed = is_handed
        if not is_alone(request):
            self.limited, self.previous, grant.previous = grant, None, None
        if self.latest and self.latest["requestId"] == request["requestId"]:
            self.latest = None
        self.last = grant
        self.grants.append(grant)
        return grant

    def note(self, grant: Grant, reason: str) -> None:
        """Notes how a grant ended, for its holder and for the next one."""
        self.ended[grant.lease_id] = self.ended[grant.request["requestId"]] = reason
        if not is_alone(grant.request):
            return
        ended = reason if reason in ("released", "broken", "superseded") else "expired"
        at = {"expired": grant.ends, "broken": grant.broken or self.now}.get(ended, self.now)
        self.previous = {"holder": grant.holder, "fence": grant.fence, "ended": ended, "at": instant(at)}
        if ended == "superseded":
            self.previous["by"] = grant.newer

    def end(self, grant: Grant, reason: str) -> None:
        self.note(grant, reason)
        self.grants.remove(grant)
        self.serve()

    def find(self, lease_id: str) -> Grant | None:
        return next((one for one in self.grants if one.lease_id == lease_id), None)

    def heartbeat(self, request: Fields) -> Fields:
        grant = self.find(request["leaseId"])
        if not grant or grant.ending:
            raise self.lost(grant.ending if grant and grant.ending else self.ended.get(request["leaseId"], "unknown"))
        grant.request["ttlSeconds"] = request.get("ttlSeconds") or grant.request.get("ttlSeconds", 60)
        grant.version, grant.ends = self.by.uuid(), self.now + grant.request["ttlSeconds"] * 1000
        return self.bare(grant)

    def release(self, lease_id: str) -> Fields:
        grant = self.find(lease_id)
        if grant:
            self.end(grant, grant.ending or "released")
            self.ended[lease_id] = self.ended[grant.request["requestId"]] = "released"
        reason = self.ended.get(lease_id, "unknown")
        if grant or reason == "released":
            return {"key": self.key, "released": True}
        return {"key": self.key, "released": False, "reason": reason}

    def withdraw(self, request: Fields) -> Fields:
        own, holder = request["requestId"], request["holder"]
        waiters = [one for one in self.line if (one.request["requestId"], one.request["holder"]) == (own, holder)]
        grant = self.own(request)
        for waiter in waiters:
            self.refuse(waiter, self.lost("cancelled"))
        if grant:
            self.end(grant, grant.ending or "released")
        answer = {"key": self.key, "requestId": own, "cancelled": bool(waiters or grant)}
        if not answer["cancelled"]:
            return {**answer, "reason": "unknown"}
        self.ended[own] = "released" if grant else "cancelled"
        if self.latest and self.latest["requestId"] == own:
            self.latest = None
        self.serve()
        return answer

    def break_(self, fence: int, wait: bool = False) -> Fields:
        grant = next((one for one in self.grants if one.fence == fence), None)
        if not grant and self.grants and self.alone:
            text = "the grant of the key has another fence: read the key, and break the grant by its present fence"
            raise self.error("Conflict", text, actual=self.actual())
        if not grant:
            raise self.error("NotFound", "no grant of the key has the fence: read the key for its holders")
        until = grant.ends
        grant.broken = self.now
        if wait:
            grant.ending = "broken"
        else:
            self.end(grant, "broken")
        answer = {"key": self.key, "fence": fence, "holder": grant.holder, "broken": True, "ended": not wait}
        return {**answer, "holderUntil": instant(until), "lastHeartbeatAt": None}

    def lose(self, reason: str) -> None:
        for grant in self.grants:
            self.note(grant, reason)
        self.grants = []
        if reason == "taken":
            self.grant({"holder": "another", "ttlSeconds": YEAR, "requestId": self.by.uuid()})
        self.serve()

    def lost(self, reason: str) -> HoldfastError:
        text = f"the grant is no longer yours ({reason}): stop the work under the grant"
        if reason == "cancelled":
            text = "an operator cancelled the waiter, or the caller withdrew it"
        alone = next((one.holder for one in self.grants if is_alone(one.request)), None)
        return self.error(
            "LeaseLost", text, reason=reason, holder=None if reason in ("broken", "superseded", "cancelled") else alone
        )

    def held(self, request: Mapping[str, Any], waiter: Waiter | None = None) -> HoldfastError:
        live, own, text = self.live, limit_of(request), f"{self.key} has other waiters in line"
        first = live[0] if live else None
        if first and not self.has_room(request):
            text = f"{self.key} is held by {first.holder} until {instant(first.ends)}"
            if not is_alone(first.request):
                most = "the call needs the key alone" if own is None else f"the limit is {own}"
                text += f", and has no room: the holders weigh {self.used}, and {most}"
        fields: Fields = {"holder": first and first.holder, "fence": first and first.fence, "used": self.used}
        fields.update(expiresAt=first and instant(first.ends), limit=self.limit if own is None else own)
        fields.update(
            holders=[holder_view(one) for one in live[:10]], retryAfterMs=first.ends - self.now if first else 1000
        )
        if waiter:
            fields.update(place=self.line.index(waiter) + 1, waiting=len(self.line) - 1, comeBackMs=0, keptMs=5000)
            fields["retryWith"] = {"requestId": request["requestId"], "ticket": waiter.ticket}
        return self.error("LeaseHeld", text, **fields)

    def bare(self, grant: Grant) -> Fields:
        names = {"key": self.key, "holder": grant.holder, "leaseId": grant.lease_id, "version": grant.version}
        data = {"data": grant.request["data"]} if "data" in grant.request else {}
        return {**names, "fence": grant.fence, **self.times(grant), **data}

    def times(self, grant: Grant) -> Fields:
        left = max(0, grant.ends - self.now)
        return {"acquiredAt": instant(grant.acquired), "expiresAt": instant(grant.ends), "remainingMs": left}

    def answer(self, grant: Grant, repeated: bool = False, waited: int = 0) -> Fields:
        got = {**self.bare(grant), "waitedMs": waited, "repeated": repeated, "previous": grant.previous}
        if is_alone(grant.request):
            return got
        got.update(mode="shared", limit=limit_of(grant.request), weight=grant.weight, used=self.used)
        return {**got, "limitChanged": grant.changed} if grant.changed else got

    def full(self, grant: Grant) -> Fields:
        """A grant, as every reader may see it."""
        state = {"state": "held" if grant.ends > self.now else "expired", **holder_view(grant), **self.times(grant)}
        more = {"ttlSeconds": grant.request.get("ttlSeconds", 60), "execution": None, "bound": False, "inGrace": False}
        broken = {"brokenAt": instant(grant.broken) if grant.broken else None, "brokenBy": None}
        by = {"supersededBy": grant.newer} if grant.newer else {}
        ending = grant.ending is not None
        return {**state, **more, "ending": ending, **broken, **by, "data": grant.request.get("data")}

    def actual(self, holder: str | None = None) -> Fields:
        """The state of the key: the grant that ends first, or the last one."""
        own = [one for one in self.grants if holder in (None, one.holder)]
        own.sort(key=lambda one: (one.ends <= self.now, one.ends))
        if own:
            shown = self.full(own[0])
            return {"key": self.key, **{name: shown[name] for name in shown if name not in ("mode", "weight")}}
        last = self.alone
        named = {"holder": last.holder if last else None, "fence": last.fence if last else None, "expiresAt": None}
        at = {"acquiredAt": instant(last.acquired) if last else None, "remainingMs": None, "ttlSeconds": None}
        rest = {"execution": None, "bound": False, "inGrace": False, "ending": False, "brokenBy": None}
        state = "released" if last else "free"
        broken = instant(last.broken) if last and last.broken else None
        data = last.request.get("data") if last else None
        return {"key": self.key, "state": state, **named, **at, **rest, "brokenAt": broken, "data": data}

    def row(self, holder: str | None = None) -> Fields:
        """The row of the key in a list."""
        use = {"used": self.used, "limit": self.limit, "holders": len(self.grants)}
        return {**self.actual(holder), **use, "waiting": len(self.line)}

    def view(self, with_waiters: bool = False) -> Fields:
        """The answer of `readLeases` for the key."""
        holders = [self.full(one) for one in self.grants]
        by = self.limited.holder if self.limited and self.limit is not None else None
        more = {"holders": holders, "limitBy": by, "hasRecord": self.fence > 0}
        previous = self.grants[0].previous if self.grants and self.grants[0].is_handed else None
        waiters = {"waiters": [waiter_view(one) for one in self.line]} if with_waiters else {}
        return {**self.row(), **more, "previous": previous, **waiters}


def holder_view(grant: Grant) -> Fields:
    """A holder, as LeaseHeld lists it."""
    mode = "exclusive" if is_alone(grant.request) else "shared"
    named = {"holder": grant.holder, "fence": grant.fence, "mode": mode, "weight": grant.weight}
    return {**named, "expiresAt": instant(grant.ends)}


def waiter_view(waiter: Waiter) -> Fields:
    """A waiter, as readers see it."""
    until = waiter.since + waiter.request["waitSeconds"] * 1000
    times = {"parkedAt": instant(waiter.since), "deadline": instant(until), "dueAt": None}
    replace = {"replace": waiter.request["replace"]} if "replace" in waiter.request else {}
    named = {"kind": "caller", "ticket": waiter.ticket, "holder": waiter.request["holder"], "execution": None}
    return {**named, **times, **replace}


PERIOD = re.compile(r"([1-9]\d{0,7})([smhdw])")
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": DAY, "w": 7 * DAY}


def seconds_of(per: str) -> int | None:
    """The length of a period."""
    found = PERIOD.fullmatch(per)
    return int(found[1]) * SECONDS[found[2]] if found else None


def slot_at(now: int, per: str, zone: str | None) -> str:
    """The name of the period that a call at `now` works for. It begins a little early, as in the service."""
    length = seconds_of(per) or DAY
    at = datetime.fromtimestamp((now + min(2500, length * 100)) / 1000, timezone.utc)
    if zone is not None:
        from zoneinfo import ZoneInfo

        at = at.astimezone(ZoneInfo(zone)).replace(tzinfo=timezone.utc)
    shift = 3 * DAY if per.endswith("w") else 0  # 1970-01-01 was a Thursday, and weeks begin on Monday
    start = datetime.fromtimestamp((at.timestamp() + shift) // length * length - shift, timezone.utc)
    if per.endswith("w"):
        return "{}-W{:02}".format(*start.isocalendar())
    return start.strftime("%Y-%m-%d" if length % DAY == 0 else "%Y-%m-%dT%H:%M:%SZ")


class Slots:
    """One key of `once`: a lock, and the last slot that was done."""

    def __init__(self, key: str, by: Surroundings, mutex: threading.Lock) -> None:
        self.lock = Lock(key, by, mutex, ONCE_IDS)
        self.runs: dict[str, Fields] = {}
        self.last: Fields | None = None
        self._done: Fields | None = None

    @property
    def done(self) -> Fields | None:
        return self._done if self._done and self._done["until"] >= self.lock.now else None

    def begin(self, request: Fields) -> Fields:
        """Begins a run, and waits for up to `waitSeconds` while another caller works."""
        lock, per = self.lock, request.get("per")
        least = max(request.get("ttlSeconds", 60), 2 * self.assert_terms(request))
        keep = request.get("keepSeconds", max(DAY, least))
        if keep < least:
            text = f"must be at least {least}: the ttlSeconds, and two periods of per"
            raise invalid(lock.by, "keepSeconds", text)
        since = lock.now
        slot = request.get("slot") or (slot_at(since, per, request.get("zone")) if per else "-")
        until = since + request.get("waitSeconds", 0) * 1000
        while True:
            try:
                return self.begin_now(request, slot, keep, lock.now - since)
            except HoldfastError as error:
                if error.code != "LeaseHeld":
                    raise
                if lock.now >= until:
                    raise error_of({**error.fields, **({"retryWith": {"slot": slot}} if per else {})}) from None
            lock.mutex.release()
            try:
                lock.by.wait(threading.Event(), 0.1)
            finally:
                lock.mutex.acquire()

    def assert_terms(self, request: Fields) -> int:
        per, by = request.get("per"), self.lock.by
        length = seconds_of(per) if per else 0
        if length is None or length > 366 * DAY:
            raise invalid(by, "per", "must be a period such as 15m, 1h, 1d or 1w, of at most 366 days")
        if per and length % (7 * DAY) == 0 and not per.endswith("w"):
            raise invalid(by, "per", f"must be {length // (7 * DAY)}w: a week begins on Monday")
        if "zone" in request and (not per or length % DAY):
            raise invalid(by, "zone", "needs a per of whole days or weeks")
        return length

    def begin_now(self, request: Fields, slot: str, keep: int, waited: int) -> Fields:
        lock, done, last = self.lock, self.done, self.last
        is_own = last is not None and all(last[name] == request[name] for name in ("requestId", "holder"))
        is_repeat = is_own and any(not one.ending for one in lock.live)
        if done and not is_repeat and done["slot"].encode() >= slot.encode():
            by = {"doneBy": done["by"], "doneAt": instant(done["at"]), "fence": done["fence"]}
            if done["slot"] != slot:
                return {"outcome": "superseded", "key": lock.key, "slot": slot, "doneSlot": done["slot"], **by}
            if request.get("inputHash", done["hash"]) != done["hash"]:
                text = "the slot is done with another input: name another slot or another key"
                raise lock.error("Conflict", text, field="inputHash", actual=lock.actual())
            return {"outcome": "done", "key": lock.key, "slot": slot, "result": done["result"], **by}
        # The lock remembers requests for longer than `once` does.
        named = {**request, "requestId": last["lockId"] if is_own and last else lock.by.uuid()}
        grant = lock.acquire(named)
        before = self.runs.get(grant["leaseId"])
        until = max(lock.now + keep * 1000, self._done["until"] if self._done else 0)
        ids = {"requestId": request["requestId"], "holder": request["holder"], "lockId": named["requestId"]}
        terms = {"slot": slot, "hash": request.get("inputHash"), "keep": until - lock.now, "isDone": False}
        self.last = self.runs[grant["leaseId"]] = before or {**ids, **terms, "fence": grant["fence"]}
        previous = None if grant["repeated"] or (last and last["isDone"]) else grant["previous"]
        more = {"previous": previous, "slot": self.last["slot"], "waitedMs": waited}
        return {"outcome": "run", **grant, **more}

    def complete(self, request: Fields) -> Fields:
        lock, lease_id = self.lock, request["leaseId"]
        run, grant = self.runs.get(lease_id), self.lock.find(lease_id)
        repeated = self._done is not None and self._done["leaseId"] == lease_id
        if not repeated and not (run and grant):
            reason = lock.ended.get(lease_id, "unknown")
            return {"key": lock.key, "completed": False, "reason": reason}
        if not repeated and run and grant:
            lock.end(grant, "released")
            run["isDone"] = True
            kept = {"slot": run["slot"], "by": run["holder"], "at": lock.now, "fence": run["fence"]}
            kept.update(leaseId=lease_id, result=request.get("result"), hash=run["hash"])
            self._done = {**kept, "until": lock.now + run["keep"]}
        done = self._done or {}
        at = {"slot": done["slot"], "doneAt": instant(done["at"]), "fence": done["fence"]}
        return {"key": lock.key, "completed": True, "repeated": repeated, **at}

    def forget(self, fence: int) -> Fields:
        lock, done = self.lock, self.done
        if not self.last:
            raise lock.error("NotFound", "no caller has begun a slot of the key")
        if self.last["fence"] != fence:
            text = "the key has another fence: read the key, and forget its slot by its present fence"
            raise lock.error("Conflict", text, actual=lock.actual())
        if lock.grants:
            raise lock.held({})
        self._done = None
        return {"key": lock.key, "forgotten": True, "fence": fence, "slot": done and done["slot"]}

    def view(self) -> Fields:
        done, hidden = self.done, ("inGrace", "bound", "brokenAt", "brokenBy")
        shown = {name: value for name, value in self.lock.actual().items() if name not in hidden}
        kept = done and {name: done[name] for name in ("slot", "by", "fence")}
        if kept and done:
            kept.update(at=instant(done["at"]), keptUntil=instant(done["until"]))
        slot = self.last and self.last["slot"]
        return {**shown, "kind": "once", "slot": slot, "done": kept, "result": done and done["result"]}


ONCE_IDS = "o."
"""The lease ids of runs begin so."""


def time_of(rate: Mapping[str, Any], units: int) -> int:
    """The time in which a rate allows so many units, in microseconds, rounded up once."""
    return -(-units * (seconds_of(rate["per"]) or 0) * 1_000_000 // int(rate["limit"]))


class Rates:
    """The rates of one key, as one time until which it is paid, in microseconds."""

    def __init__(self, key: str, by: Surroundings) -> None:
        self.key, self.by = key, by
        self.paid: int | None = None
        self.last: str | None = None
        self.named: list[Fields] | None = None
        self.open: dict[str, int] = {}
        self.made: dict[str, Fields] = {}

    def reserve(self, request: Fields) -> Fields:
        rates = [{"name": "requests", "units": 1, **one} for one in request["rates"]]
        for nth, one in enumerate(rates):
            if not 0 < (seconds_of(one["per"]) or 0) <= 31 * DAY:
                raise invalid(self.by, f"rates.{nth}.per", "must be a period such as 1m, of at most 31 days")
            if not 1 <= one["units"] <= 10 * one["limit"]:
                raise invalid(self.by, f"rates.{nth}.units", "must be at most 10 times the limit")
        charges = [(time_of(one, one["units"]), one["name"]) for one in rates]
        charge, bound_by = max(charges, key=lambda one: one[0])
        bursts = [(one.get("burst", one["units"]), one) for one in rates]
        aheads = [burst * (seconds_of(one["per"]) or 0) * 1_000_000 // one["limit"] for burst, one in bursts]
        ahead, now = max(charge, min(aheads)), now_of(self.by) * 1000
        settles, waits = bool(request.get("settle")), request.get("waitSeconds", 0)
        last = json.dumps([request["holder"], request["requestId"], charge, ahead, settles])
        latest = now + waits * 1_000_000 + ahead - charge
        is_own = self.paid is not None and self.last == last
        if not is_own and self.paid is not None and self.paid > max(now - 1, latest):
            after = -(-(self.paid - latest) // 1000)
            text = f"the rate {bound_by} is used up for longer than the caller waits: ask again after `retryAfterMs`"
            raise problem(self.by, "RateExceeded", text, key=self.key, retryAfterMs=after, boundBy=bound_by)
        changed = None
        if not is_own:
            self.paid = max(now, self.paid or now) + charge
            shown = [{name: one[name] for name in ("name", "limit", "per")} for one in rates]
            if self.named not in (None, shown):
                changed = {"from": self.named, "to": shown}
            self.named, self.last = shown, last
            if settles:
                self.open[last] = charge
        self.made[last] = {"charge": charge, "rates": rates, "settles": settles}
        wait = -(-max(0, (self.paid or now) - ahead - now) // 1000)
        at = {"startAt": instant(now / 1000 + wait), "waitMs": wait, "sleepSeconds": -(-wait // 1000)}
        answer = {"key": self.key, "reservation": last, **at, "boundBy": bound_by, "repeated": is_own}
        return {**answer, "rateChanged": changed} if changed else answer

    def settle(self, request: Fields) -> Fields:
        name, units, made = request["reservation"], request.get("units", {}), self.made.get(request["reservation"])
        if not made:
            raise invalid(self.by, "reservation", "must be the reservation of an answer")
        if request.get("cancel"):
            done = self.close(name, 0) if made["settles"] else self.last == name
            if done and not made["settles"]:
                self.paid = (self.paid or 0) - made["charge"]
            self.last = None if done and self.last == name else self.last
            return {"key": self.key, "cancelled": done}
        if not made["settles"]:
            raise invalid(self.by, "reservation", "was made without settle, so it can only be cancelled")
        for unit in units:
            if unit not in [one["name"] for one in made["rates"]]:
                raise invalid(self.by, f"units.{unit}", "must be the name of a rate of the reservation")
        taken = [time_of(one, min(units.get(one["name"], one["units"]), 10 * one["limit"])) for one in made["rates"]]
        return {"key": self.key, "settled": self.close(name, max(taken))}

    def close(self, name: str, charge: int) -> bool:
        """Pays another charge in place of the estimate, if the reservation is open."""
        before = self.open.pop(name, None)
        if before is not None:
            self.paid = (self.paid or 0) + charge - before
        return before is not None
