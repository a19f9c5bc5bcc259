"""The lines that `python -m holdfast run` prints, which are those of `holdfast run`."""

from __future__ import annotations

import math
import os
import re
import time
import unicodedata
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from ..errors import HoldfastError, is_transient
from .arguments import EXIT_FORBIDDEN, EXIT_HELD, EXIT_LOST, EXIT_MISUSE, EXIT_NO_ANSWER, EXIT_REFUSED

_CODES = {
    **dict.fromkeys(("InvalidRequest", "PayloadTooLarge"), EXIT_MISUSE),
    **dict.fromkeys(("LeaseHeld", "RateExceeded", "Superseded"), EXIT_HELD),
    **{"Forbidden": EXIT_FORBIDDEN, "LeaseLost": EXIT_LOST},
}
_LINE_SECONDS = 60.0  # how often a line about a long wait is printed
_MAX_COUNTED = 100  # up to this number, the service counts the others in line
# A lease with more than this left is bound: the expiry of a bound lease is 400 days away.
_MAX_UNBOUND_SECONDS = 2 * 86_400


def print_line(text: str) -> None:
    """Prints a line on stderr. The command and its lease go on even if stderr cannot be written."""
    with suppress(OSError):
        os.write(2, f"holdfast: {''.join(map(_shown, text))}\n".encode())


def _shown(character: str) -> str:
    """Escapes a control character or a direction mark, which could hide or forge text on the terminal."""
    if unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Zl", "Zp"):
        return character
    return (
        "\\n"
        if character == "\n"
        else f"\\x{ord(character):02x}"
        if ord(character) < 0x100
        else f"\\u{ord(character):04x}"
    )


def exit_code_of(error: HoldfastError) -> int:
    """The exit code of a call that failed."""
    if error.code == "Refused" and error.status in (401, 403):
        return EXIT_FORBIDDEN
    return _CODES.get(error.code, EXIT_NO_ANSWER if is_transient(error) else EXIT_REFUSED)


def message_of(error: HoldfastError) -> str:
    """The error as a line for people, or a line for each wrong field."""
    if error.code == "InvalidRequest":
        return "\n".join(f"{issue['path']}: {issue['message']}" for issue in error.fields["issues"])
    said = error.detail
    if error.code in ("Refused", "Unreachable"):  # the text may be the page of a proxy, or of another service
        said = (f"HTTP {error.status}: " if error.status else "") + re.sub(r"\s+", " ", said).strip()
    return f"{said} [{error.code}{f', trace {error.trace_id}' if error.trace_id else ''}]"


def refusal(error: HoldfastError, read: Mapping[str, Any] | None) -> str:
    """The line for a run that does not get the key. `read` is the current state of the key, if it could be read."""
    fields = error.fields
    key, cap = fields["key"], fields.get("cap")
    if error.code == "Superseded":
        return f"a newer run of {key}, by {fields['by']}, has replaced this one"
    if cap and cap.get("limit") == 0:
        return f"{key} is {_cap_text(cap)}"
    capped = f" ({_cap_text(cap)})" if cap else ""
    if error.code == "RateExceeded":
        after = duration(math.ceil(fields["retryAfterMs"] / 1000))
        return f"the rate {fields['boundBy']} of {key} is used up: try again in {after}{capped}"
    if _is_shared(fields):
        return f"{key} is held by {fields['holder']}{_until(fields['expiresAt'])}, in use: {_used_text(fields)}{capped}"
    lease = read if read and read.get("state") == "held" else {}
    holder, expires_at = (lease or fields)["holder"], (lease or fields)["expiresAt"]
    since = f" since {lease['acquiredAt']}" if lease.get("acquiredAt") else ""
    ends = ""
    if expires_at and "remainingMs" in lease and not lease.get("bound"):
        left = lease["remainingMs"] / 1000
        ends = f" (in {duration(left)})" if left > 0 else f" ({duration(-left)} ago)"
    line = f", {read['waiting']} in line" if read and not holder and read.get("waiting") else ""
    return f"{key} is held by {holder or 'another caller'}{since}{_until(expires_at)}{ends}{line}"


def done_text(key: str, answer: Any) -> str:
    """The line that says who has done the slot, and when."""
    name = re.sub(r"^arn:[\w-]+:states:[\w-]*:\d*:(?:execution|express):", "", answer.by or "another caller")
    by = f"by {name} at {answer.at} ({duration(time.time() - _instant(answer.at))} ago)"
    later = f"the later slot {answer.done_slot}" if answer.outcome == "superseded" else answer.slot
    return f"{key} is done for {later}, {by}"


def duration(seconds: float) -> str:
    """A length of time for people: `4m 5s`."""
    whole = max(0, math.floor(seconds + 0.5))
    parts = [(whole // 86_400, "d"), (whole // 3600 % 24, "h"), (whole // 60 % 60, "m"), (whole % 60, "s")]
    first = next((index for index, (count, _) in enumerate(parts) if count), 3)
    return " ".join(f"{count}{unit}" for count, unit in parts[first : first + 2] if count) or "0s"


class Wait:
    """Prints a line when the wait begins and when a position is known, and then at most one a minute after a change."""

    def __init__(self) -> None:
        self._last = ("", "", "")
        self._last_at = 0.0

    def line(self, event: Mapping[str, Any]) -> str | None:
        """A line about an event of the client. None if there is nothing new to say."""
        key, cap, position = event["key"], event.get("cap"), _position_text(event)
        is_shared = _is_shared(event)
        state = f"in use: {_used_text(event)}" if is_shared else f"held by {event.get('holder') or 'another caller'}"
        until = "" if is_shared else _until(event.get("expiresAt"))
        if cap and cap.get("limit") == 0:
            state, until = _cap_text(cap), ""
        last_key, _, last_position = self._last
        is_new = key != last_key or (position and not last_position)
        is_due = (key, state, position) != self._last and time.monotonic() - self._last_at >= _LINE_SECONDS
        if not (is_new or is_due):
            return None
        self._last, self._last_at = (key, state, position or last_position), time.monotonic()
        return f"waiting since {event['since']}{position}: {key} is {state}{until}"


def _position_text(event: Mapping[str, Any]) -> str:
    position, waiting = event.get("place"), event.get("waiting") or 0
    if not position:
        return ""
    return f" at position {position}{f' of {max(position, waiting + 1)}' if waiting < _MAX_COUNTED else ''}"


def _is_shared(fields: Mapping[str, Any]) -> bool:
    return any(holder["mode"] == "shared" for holder in fields.get("holders") or [])


def _used_text(fields: Mapping[str, Any]) -> str:
    limit, cap = fields.get("limit"), fields.get("cap") or {}
    used = f"{fields['used']}{'' if limit is None else f' of {limit}'}"
    return f"{used}, cap {cap['limit']}" if cap.get("limit") else used


def _cap_text(cap: Mapping[str, Any]) -> str:
    rates = [
        f"{'' if one['name'] == 'requests' else one['name'] + ':'}{one['limit']}/{one['per']}"
        for one in cap.get("rates") or []
    ]
    limits = " and ".join(([] if cap["limit"] is None else [str(cap["limit"])]) + ([" ".join(rates)] if rates else []))
    until = f" until {cap['until']}" if cap["until"] else ""
    state = "paused" if cap["limit"] == 0 else f"capped at {limits}"
    return f"{state} by {cap['by'] or 'an operator'} since {cap['since']}{until}: {cap['reason']}"


def _until(expires_at: str | None) -> str:
    if not expires_at:
        return ""
    is_bound = _instant(expires_at) - time.time() > _MAX_UNBOUND_SECONDS
    return f" until {'its execution ends' if is_bound else expires_at}"


def _instant(text: str) -> float:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
