"""What your program sees of a lease, a permit or a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .errors import HoldfastError
from .lease import Kept
from .rate import Reservation


class LeaseView:
    """A lease or a permit that heartbeats extend until it is released or lost. A loss is final."""

    def __init__(self, kept: Kept) -> None:
        """The client calls this."""
        self._kept = kept

    @property
    def key(self) -> str:
        """The key."""
        return self._kept.key

    @property
    def holder(self) -> str:
        """The name of the holder, which other callers see."""
        return str(self._kept.granted["holder"])

    @property
    def fence(self) -> int:
        """The fencing token, which is higher in each grant of the key. Pass it to the store that you write to."""
        return int(self._kept.granted["fence"])

    @property
    def previous(self) -> Mapping[str, Any] | None:
        """The previous holder, and how its lease ended: after `expired` and `broken` the work may be half done."""
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
        """Both limits, if the grant before had another one: callers of the key disagree, or you are changing it."""
        return self._kept.granted.get("limitChanged")

    @property
    def expires_at(self) -> str:
        """When the service ends the lease unless a heartbeat extends it. ISO 8601."""
        return str(self._kept.term.grant["expiresAt"])

    @property
    def remaining(self) -> float:
        """How many seconds the lease is certainly held without another heartbeat, by the clocks of this process."""
        return self._kept.left

    @property
    def held(self) -> bool:
        """True while the lease is certainly held: no clock has reached its end, and no loss was reported."""
        return self._kept.check() is None

    @property
    def lost(self) -> HoldfastError | None:
        """The error of the loss. None while the lease is held, and after a release in time."""
        self._kept.check()
        return self._kept.lost

    def check(self) -> None:
        """Raises LeaseLost if the lease is not certainly held by the clocks. Call it before each step of the work."""
        error = self._kept.check()
        if error:
            raise error

    def __repr__(self) -> str:
        """Shows the state to people, but never the lease id, which proves the grant."""
        error = self._kept.check()
        state = error.fields["reason"] if error else f"held for {self.remaining:.0f} s more"
        return f"<{type(self).__name__} of {self.key!r}, fence {self.fence}, {state}>"


class Run(LeaseView):
    """The run of a slot, which `once` ends by itself."""

    is_watched = False
    """Whether the work has looked for a loss, so that it may have stopped half way."""

    def assert_whole(self) -> None:
        """Raises LeaseLost if the run was lost and the work could have seen it, and so may have stopped half way."""
        if self._kept.lost and (self.is_watched or self._kept.keeping.on_lost):
            raise self._kept.lost

    @property
    def slot(self) -> str:
        """The slot. Use it to name what you write."""
        return str(self._kept.granted["slot"])

    @property
    def held(self) -> bool:
        """True while the run is certainly held."""
        self.is_watched = True
        return super().held

    @property
    def lost(self) -> HoldfastError | None:
        """The error of the loss. None while the run is held."""
        self.is_watched = True
        return super().lost

    def check(self) -> None:
        """Raises LeaseLost if the run is not certainly held. Call it before each step of the work."""
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
        """Both lists of rates, if the caller before named other rates. The faster rate is kept."""
