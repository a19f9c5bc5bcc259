"""What the caller sees of a lease."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .errors import HoldfastError
from .lease import Kept


class LeaseView:
    """A lease or a permit that heartbeats extend until the release or a loss. A loss is final."""

    def __init__(self, kept: Kept) -> None:
        """For the client itself."""
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
        """Of a permit: `shared` or `exclusive`. Otherwise None."""
        return self._kept.granted.get("mode")

    @property
    def limit(self) -> int | None:
        """Of a permit: the limit. Otherwise None."""
        return self._kept.granted.get("limit")

    @property
    def weight(self) -> int | None:
        """Of a permit: its weight. Otherwise None."""
        return self._kept.granted.get("weight")

    @property
    def used(self) -> int | None:
        """Of a permit: what all permits weighed with it. Otherwise None."""
        return self._kept.granted.get("used")

    @property
    def limit_changed(self) -> Mapping[str, Any] | None:
        """Both limits, if the grant before named another one: the callers of the key disagree, or you are changing the
        limit.
        """
        return self._kept.granted.get("limitChanged")

    @property
    def expires_at(self) -> str:
        """When the service ends the lease unless a heartbeat extends it. ISO 8601."""
        return str(self._kept.term.grant["expiresAt"])

    @property
    def remaining(self) -> float:
        """How many seconds the lease is certainly held if no further heartbeat succeeds, by the clocks of this
        process.
        """
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
        """Reads the clocks, and raises LeaseLost if the lease is not certainly held. Call it before each step of the
        work.
        """
        error = self._kept.check()
        if error:
            raise error

    def __repr__(self) -> str:
        """For people: never the lease id, which proves the grant."""
        error = self._kept.check()
        state = error.fields["reason"] if error else f"held for {self.remaining:.0f} s more"
        return f"<{type(self).__name__} of {self.key!r}, fence {self.fence}, {state}>"


class Run(LeaseView):
    """The run of a slot, which `once` ends by itself."""

    is_watched = False
    """Whether the work could learn of a loss, and so may have stopped half way."""

    def assert_whole(self) -> None:
        """Raises LeaseLost if the run was lost while the work could see it. A loss that the work could not see has not
        stopped it.
        """
        if self._kept.lost and (self.is_watched or self._kept.keeping.on_lost):
            raise self._kept.lost

    @property
    def slot(self) -> str:
        """The slot, to name what you write."""
        return str(self._kept.granted["slot"])

    @property
    def held(self) -> bool:
        """As of a lease."""
        self.is_watched = True
        return super().held

    @property
    def lost(self) -> HoldfastError | None:
        """As of a lease."""
        self.is_watched = True
        return super().lost

    def check(self) -> None:
        """As of a lease."""
        self.is_watched = True
        super().check()
