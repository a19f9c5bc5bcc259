"""The fixtures of Holdfast for pytest.

pytest loads this module in every run, even if no test uses it. So it is outside of the package `holdfast`, and imports
the package only in a fixture.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from holdfast.testing import ManualClock, MemoryService


@pytest.fixture
def holdfast_clock() -> ManualClock:
    """A clock that the test advances: `holdfast_clock.advance(60)`. `holdfast_service` then uses the same clock."""
    from holdfast.testing import ManualClock

    return ManualClock()


@pytest.fixture
def holdfast_service(request: pytest.FixtureRequest) -> Iterator[MemoryService]:
    """Holdfast in memory. During the test, `holdfast.lease` and the other functions of the package use it."""
    from holdfast.testing import MemoryService, installed

    clock = request.getfixturevalue("holdfast_clock") if "holdfast_clock" in request.fixturenames else None
    with installed(MemoryService(clock)) as service:
        yield service
