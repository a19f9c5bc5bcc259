"""Reads lists page by page. An empty page is not always the last one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any


def paged(ask: Callable[[dict[str, Any]], Any], request: dict[str, Any], rows: str) -> Iterator[Any]:
    """Requests page after page, and yields their rows."""
    cursor: dict[str, str] | None = {}
    while cursor is not None:
        page = ask({**request, **cursor})
        yield from page[rows]
        cursor = None if page["nextCursor"] is None else {"cursor": page["nextCursor"]}


async def apaged(
    ask: Callable[[dict[str, Any]], Awaitable[Any]], request: dict[str, Any], rows: str
) -> AsyncIterator[Any]:
    """Requests page after page, and yields their rows, for asyncio."""
    cursor: dict[str, str] | None = {}
    while cursor is not None:
        page = await ask({**request, **cursor})
        for row in page[rows]:
            yield row
        cursor = None if page["nextCursor"] is None else {"cursor": page["nextCursor"]}
