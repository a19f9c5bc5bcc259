"""The Python blocks of the guides run against a real stack, and print what the comments beside `print` say."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
import uuid
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import holdfast
from holdfast import base

ROOT = Path(__file__).parents[3]
PAGES = ["docs/python.md", "clients/python/README.md"]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
SAYS = re.compile(r"(?:print\(|with |pass\b).*  # (.+)$")


def blocks() -> list[Any]:
    """Each block with its page and the line where it begins."""
    found = []
    for page in PAGES:
        text = (ROOT / page).read_text()
        for block in BLOCK.finditer(text):
            line = text.count("\n", 0, block.start()) + 2
            # As many empty lines, so that an error names the line of the page.
            found.append(pytest.param(page, "\n" * (line - 1) + block[1], id=f"{page}:{line}"))
    return found


async def aload(fence: int) -> None:
    """A step of the asyncio example."""
    assert fence > 0


def given() -> dict[str, Any]:
    """What the blocks take from the program around them."""

    def step(fence: int) -> None:
        assert fence > 0

    return {
        "holdfast": holdfast,
        "extract": step,
        "transform": step,
        "load": step,
        "aload": aload,
        "ask": lambda prompt: {"tokens": 12},
        "model": SimpleNamespace(fit=lambda: None, stop=lambda: None),
        "read_token": lambda: "token",
    }


def run(page: str, code: str) -> str:
    """Runs a block, in which `await` may be at the top. Returns what it printed."""
    compiled = compile(code, str(ROOT / page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    printed = StringIO()
    with redirect_stdout(printed):
        awaited = eval(compiled, given())
        if inspect.isawaitable(awaited):
            asyncio.run(awaited)  # type: ignore[arg-type]
    return printed.getvalue()


def shape(text: str) -> str:
    """A text without its numbers, which differ from run to run."""
    return re.sub(r"\d+", "0", text)


@pytest.mark.parametrize(("page", "code"), blocks())
def test_a_block_of_a_guide_runs(page: str, code: str, endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if "botocore" in code:
        pytest.importorskip("botocore")
    monkeypatch.setenv("HOLDFAST_ENDPOINT", endpoint)
    monkeypatch.setattr(base, "_clients", {})
    namespace = f"docs-{uuid.uuid4().hex[:12]}"  # so that no block meets the keys of another run
    monkeypatch.setenv("HOLDFAST_NAMESPACE", namespace)
    with holdfast.Holdfast(endpoint, holder="billing", namespace=namespace).lease("held"):
        printed = run(page, code)
    says = [found[1] for line in code.splitlines() if (found := SAYS.search(line))]
    if says:
        assert shape(printed).splitlines() == [shape(line) for line in says]


def test_a_reader_of_the_guides_finds_blocks() -> None:
    assert len(blocks()) >= 14
