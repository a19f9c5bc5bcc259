"""Runs the Python blocks of a page, and compares what they print with the comments beside `print`."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
SAYS = re.compile(r"(?:print\(|with |pass\b).*  # (.+)$")


def blocks(page: str) -> list[tuple[int, str]]:
    """The blocks of a page with the lines where they begin. Each has as many empty lines before it, so that an error
    names the line of the page.
    """
    text = (ROOT / page).read_text()
    found = []
    for block in BLOCK.finditer(text):
        line = text.count("\n", 0, block.start()) + 2
        found.append((line, "\n" * (line - 1) + block[1]))
    return found


def shape(text: str) -> str:
    """A text with its numbers removed, because they differ from run to run."""
    return re.sub(r"\d+", "0", text)


def run(page: str, code: str, names: dict[str, Any]) -> None:
    """Runs a block, in which `await` may be at the top, and which must print what its comments say."""
    compiled = compile(code, str(ROOT / page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    printed = StringIO()
    with redirect_stdout(printed):
        awaited = eval(compiled, names)
        if inspect.isawaitable(awaited):
            asyncio.run(awaited)  # type: ignore[arg-type]
    says = [found[1] for line in code.splitlines() if (found := SAYS.search(line))]
    if says:
        assert shape(printed.getvalue()).splitlines() == [shape(line) for line in says]
