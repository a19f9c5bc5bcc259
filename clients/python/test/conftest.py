from __future__ import annotations

from collections.abc import Iterator

import pytest
from service import Service, serving


@pytest.fixture
def service() -> Iterator[Service]:
    """A service that grants every lease, over HTTP."""
    with serving() as one:
        yield one
