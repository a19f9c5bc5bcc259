"""Reserves starts, so that all callers together start no more units in a period than the rates of a key allow."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from .acquire import RateTerms
from .attempt import assert_seconds, attempt, call, retry
from .errors import HoldfastError, error_of, is_transient
from .lease import RELEASE_SECONDS, LeaseState
from .steps import Core, Sleep, Steps
from .surroundings import Moment, moment, since

MAX_WAIT_SECONDS = 604_800
"""The longest wait for a start: a week."""


class RateOptions(RateTerms, total=False):
    """The options of `rate`. Times are in seconds."""

    rates: list[RateTerms]
    """Up to four rates, in place of one."""
    wait: float
    """How late the start may be. The default is 0: the call raises RateExceeded unless the work may start at once.

    `float("inf")` is as late as the service allows: a week, or with `settle` the longest period.
    """
    timeout: float
    """How long to retry after transient failures, on top of `wait`. The default is 30."""
    settle: bool
    """True if the `units` are estimates, which you correct by the `settle` of the answer after the work."""
    holder: str
    """The name that operators see at the rates of the key. The default is the holder of the client."""


class Reservation:
    """Reserves a start at the rates of a key, and waits until then."""

    def __init__(self, core: Core, key: str, holder: str, options: Mapping[str, Any]) -> None:
        """Raises ValueError for a time that is negative or not a number."""
        self.core = core
        self.key = key
        self.wait: float = options.get("wait", 0.0)
        self.timeout: float = options.get("timeout", 30.0)
        assert_seconds(wait=self.wait, timeout=self.timeout)
        terms = {name: options[name] for name in ("name", "limit", "per", "units", "burst") if name in options}
        self.rates: list[Mapping[str, Any]] = list(options["rates"]) if "rates" in options else [terms]
        self.settles = bool(options.get("settle"))
        # All tries have the same id, so that a retry after a lost answer does not pay again.
        request = {"key": key, "holder": options.get("holder") or holder, "requestId": core.surroundings.uuid()}
        self.request: dict[str, Any] = {**request, "rates": self.rates, **({"settle": True} if self.settles else {})}
        self.started_at = moment(core.surroundings)
        self.answer: Mapping[str, Any] = {}

    @classmethod
    def under(cls, kept: LeaseState, holder: str, options: Mapping[str, Any], took: float) -> Reservation:
        """Makes the reservation for a lease that has rates, within what is left of its wait."""
        wanted = {"rates": options["rates"], "settle": options.get("settle", False)}
        limits = {"wait": max(0.0, options.get("wait", 0.0) - took), "timeout": options.get("timeout", 30.0)}
        return cls(kept.core, kept.key, holder, {**wanted, **limits})

    def steps(self, kept: LeaseState | None = None) -> Steps[float]:
        """Waits for the start, and returns how many seconds that took. Raises LeaseLost if the lease is lost."""
        surroundings = self.core.surroundings
        try:
            self.answer = yield from self._ask(self.started_at)
        except (HoldfastError, GeneratorExit):
            raise
        except BaseException:
            # The request may have made a reservation. Sent again, it receives that reservation, so that it can be
            # cancelled.
            yield from self._cancel(self.request)
            raise
        answered_at = surroundings.monotonic()
        wait = self.answer["waitMs"] / 1000
        try:
            # The monotonic clock counts, because the wall clock may be set forward. The loop is there because a wait
            # may end early.
            while (left := answered_at + wait - surroundings.monotonic()) > 0:
                yield Sleep(min(left, surroundings.check_seconds) if kept else left)
                if kept and (lost := kept.check()):
                    raise lost
        except GeneratorExit:
            raise
        except BaseException:
            yield from self._cancel()
            raise
        return since(surroundings, self.started_at)

    def _ask(self, started_at: Moment) -> Steps[Mapping[str, Any]]:
        while True:
            left = max(0.0, self.wait - since(self.core.surroundings, started_at))
            wait_seconds = int(min(max_wait_seconds(self.rates, self.settles), left))
            self.request["waitSeconds"] = wait_seconds
            try:
                answer: Mapping[str, Any] = yield from retry(
                    self.core.surroundings, self.timeout, lambda _: attempt("rateReserve", {**self.request})
                )
                return answer
            except HoldfastError as error:
                if error.code != "RateExceeded":
                    raise
                after = (error.retry_after_ms or 0) / 1000
                # An operator may lift a pause at any time, so a paused caller asks again. Otherwise the service was
                # asked for whole seconds only, and a start within the rest of the wait is still possible.
                is_paused = (error.fields.get("cap") or {}).get("limit") == 0 and left > 0
                if not is_paused and not (math.isfinite(left) and after <= left % 1):
                    raise
            yield Sleep(min(after, left))

    def _settle(self, how: Mapping[str, Any]) -> Steps[Mapping[str, Any]]:
        request = {"key": self.key, "reservation": self.answer["reservation"], **how}
        return call(self.core, "rateSettle", request, RELEASE_SECONDS)

    def _cancel(self, request: Mapping[str, Any] | None = None) -> Steps[None]:
        try:
            if request:
                self.answer = yield from attempt("rateReserve", request, RELEASE_SECONDS / 2)
            yield from self._settle({"cancel": True})
        except HoldfastError:
            return  # the units then count as used

    def settle(self, units: Mapping[str, float]) -> Steps[bool]:
        """Corrects the estimates. Returns False if the service did not confirm the report."""
        try:
            return bool((yield from self._settle({"units": dict(units)})).get("settled"))
        except HoldfastError as error:
            if not is_transient(error):
                raise
            return False


def no_rates() -> HoldfastError:
    """The error of `settle` for a lease that has no rates."""
    message = "the lease has no rates"
    issues = [{"path": "rates", "message": message}]
    return error_of({"code": "InvalidRequest", "detail": f"rates: {message}", "issues": issues})


_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


def period_seconds(per: str) -> int:
    """The length of a period such as `15m`. 0 if the text is not a period."""
    found = re.fullmatch(r"([1-9]\d{0,7})([smhdw])", per)
    return int(found[1]) * _SECONDS[found[2]] if found else 0


def max_wait_seconds(rates: list[Mapping[str, Any]], settles: bool) -> int:
    """The longest wait of a call for its start, in seconds.

    With `settle`, at most the longest period, because the estimate may be wrong for that long.
    """
    if not settles:
        return MAX_WAIT_SECONDS
    return min(MAX_WAIT_SECONDS, max((period_seconds(str(rate.get("per"))) for rate in rates), default=0))
