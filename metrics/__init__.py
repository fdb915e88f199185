"""The scores as ``evaluate`` metrics, one folder each: the module, its card, and its Space."""

from __future__ import annotations

from pathlib import Path


def metric_names() -> list[str]:
    """Return the names of all metrics, sorted: the folders that hold a module of their own name."""
    return sorted(path.stem for path in Path(__file__).parent.glob("*/*.py") if path.stem == path.parent.name)
