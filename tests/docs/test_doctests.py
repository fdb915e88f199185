"""All doctests of the package: what ``>>>`` shows in a docstring is what the code returns."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = {"src/qabench": "qabench", "loading_scripts": "qabench.loading_scripts", "retrieval": "qabench.retrieval"}


def modules() -> list[str]:
    """The modules with doctests; those of metrics are in ``tests/metrics``."""
    return [
        ".".join([package, *path.relative_to(ROOT / folder).with_suffix("").parts])
        for folder, package in FOLDERS.items()
        for path in sorted((ROOT / folder).rglob("*.py"))
        if ">>>" in path.read_text(encoding="utf-8")
    ]


@pytest.mark.parametrize("name", modules())
def test_doctests(name: str) -> None:
    done = doctest.testmod(importlib.import_module(name))
    assert done.attempted and not done.failed
