"""The properties of a lease, a permit, a run or a start, which are the same for threads and for asyncio."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .errors import HoldfastError
from .lease import LeaseState
from .rate import Reservation


class LeaseView:
    """A lease or a permit that heartbeats extend until it is released or lost. A loss is final."""

    def __init__(self, kept: LeaseState) -> None:
        """The client calls this."""
        self._kept = kept

    @property
    def key(self) -> str:
        """The key that is held."""
        return self._kept.key

    @property
    def holder(self) -> str:
        """The name that other callers see."""
        return str(self._kept.granted["holder"])

    @property
    def fence(self) -> int:
        """The fencing token, which is higher in each grant of the key.

        Pass it to the store that you write to, so that the store can refuse a former holder.
        """
        return int(self._kept.granted["fence"])

    @property
    def previous(self) -> Mapping[str, Any] | None:
        """Who held the key before, and how that grant ended.

        After `expired` or `broken`, the work may be half done: clean up, or continue it.
        """
        return self._kept.granted.get("previous")

    @property
    def mode(self) -> str | None:
        """`shared` or `exclusive` for a permit, None for a lease."""
        return self._kept.granted.get("mode")

    @property
    def limit(self) -> int | None:
        """The limit of a permit, None for a lease."""
        return self._kept.granted.get("limit")

    @property
    def weight(self) -> int | None:
        """The weight of a permit, None for a lease."""
        return self._kept.granted.get("weight")

    @property
    def used(self) -> int | None:
        """What all permits of the key weighed at the grant, this one included. None for a lease."""
        return self._kept.granted.get("used")

    @property
    def limit_changed(self) -> Mapping[str, Any] | None:
        """Both limits, if the grant before had another limit: you are changing it, or callers disagree by mistake."""
        return self._kept.granted.get("limitChanged")

    @property
    def expires_at(self) -> str:
        """When the lease expires by the clock of the service, unless a heartbeat extends it. ISO 8601. For people."""
        return str(self._kept.term.grant["expiresAt"])

    @property
    def remaining(self) -> float:
        """How many seconds the lease is certainly held without another heartbeat, by the clocks of this process.

        Use it as the timeout of a request that must end under the lease.
        """
        return self._kept.left

    @property
    def held(self) -> bool:
        """True while the lease is certainly held: its time has not run out, and the service has not reported a loss."""
        return self._kept.check() is None

    @property
    def lost(self) -> HoldfastError | None:
        """Why the lease was lost. None while the lease is held, and after a release in time."""
        self._kept.check()
        return self._kept.lost

    def check(self) -> None:
        """Raises LeaseLost if the lease is not certainly held. Call it before each effect of the work.

        It only reads the clocks, so it costs nothing.
        """
        error = self._kept.check()
        if error:
            raise error

    def __repr__(self) -> str:
        """Shows the state, but never the lease id, which is the proof of the grant."""
        error = self._kept.check()
        state = error.fields["reason"] if error else f"held for {self.remaining:.0f} s more"
        return f"<{type(self).__name__} of {self.key!r}, fence {self.fence}, {state}>"


class Run(LeaseView):
    """The run of a slot, which `once` ends by itself."""

    is_watched = False
    """True if the work has checked for a loss, so that it may have stopped half way."""

    def raise_if_lost(self) -> None:
        """Raises LeaseLost if the run was lost and the work could see that, so that it may have stopped half way."""
        if self._kept.lost and (self.is_watched or self._kept.local.on_lost):
            raise self._kept.lost

    @property
    def slot(self) -> str:
        """The name of the slot. Use it in the names of what you write."""
        return str(self._kept.granted["slot"])

    @property
    def held(self) -> bool:
        """True while the run is certainly held."""
        self.is_watched = True
        return super().held

    @property
    def lost(self) -> HoldfastError | None:
        """Why the run was lost. None while the run is held."""
        self.is_watched = True
        return super().lost

    def check(self) -> None:
        """Raises LeaseLost if the run is not certainly held. Call it before each effect of the work."""
        self.is_watched = True
        super().check()


class StartView:
    """A reserved start. Its moment has come, so the work may begin."""

    def __init__(self, reservation: Reservation, waited: float) -> None:
        """The client calls this. Use `rate` instead."""
        self._reservation = reservation
        self.start_at: str = reservation.answer["startAt"]
        """The earliest start, by the clock of the service. ISO 8601."""
        self.waited = waited
        """How long the call took, in seconds."""
        self.rate_changed: Mapping[str, Any] | None = reservation.answer.get("rateChanged")
        """Both lists of rates, if the caller before named other rates; the faster rate counts. Otherwise None."""
