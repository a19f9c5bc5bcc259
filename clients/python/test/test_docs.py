"""The Python blocks of the guides run against a real stack."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from guides import ROOT, blocks, run

import holdfast

PAGES = ["docs/python.md", "clients/python/README.md"]
BLOCKS = [pytest.param(page, code, id=f"{page}:{line}") for page in PAGES for line, code in blocks(page)]


async def aload(fence: int) -> None:
    """A step of the asyncio example."""
    assert fence > 0


def given() -> dict[str, Any]:
    """The variables that the blocks expect from the program around them."""

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


def passed(code: str, folder: Path) -> None:
    """Runs a block of tests as a separate file, with the fixtures of the package."""
    file = folder / "test_guide.py"
    file.write_text(code.lstrip())
    args = [sys.executable, "-m", "pytest", "-q", "-p", "holdfast_pytest", "-p", "no:cacheprovider", str(file)]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "clients/python/src"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(args, env=env, capture_output=True, text=True, timeout=60)
    assert "2 passed" in done.stdout, done.stdout


@pytest.mark.parametrize(("page", "code"), BLOCKS)
def test_a_block_of_a_guide_runs(page: str, code: str, endpoint: str, namespace: str, tmp_path: Path) -> None:
    if "botocore" in code:
        pytest.importorskip("botocore")
    if "def test_" in code:
        passed(code, tmp_path)
        return
    with holdfast.Holdfast(endpoint, holder="billing", namespace=namespace).lease("held"):
        run(page, code, given())


def test_the_guides_have_python_blocks() -> None:
    assert len(BLOCKS) >= 15
