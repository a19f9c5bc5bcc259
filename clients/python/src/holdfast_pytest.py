"""The fixtures of Holdfast for pytest.

pytest loads this module in each run. So it is outside of the package `holdfast`, and imports the package only for a
test that uses a fixture.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from holdfast.testing import ManualClock, MemoryService


@pytest.fixture
def holdfast_clock() -> ManualClock:
    """A clock that the test moves: `holdfast_clock.advance(60)`. `holdfast_service` then runs on it too."""
    from holdfast.testing import ManualClock

    return ManualClock()


@pytest.fixture
def holdfast_service(request: pytest.FixtureRequest) -> Iterator[MemoryService]:
    """Holdfast in memory. During the test, `holdfast.lease`, `holdfast.aio.lease` and the other functions use it."""
    from holdfast.testing import MemoryService, installed

    clock = request.getfixturevalue("holdfast_clock") if "holdfast_clock" in request.fixturenames else None
    with installed(MemoryService(clock)) as service:
        yield service
