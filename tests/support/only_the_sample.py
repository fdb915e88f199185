"""A machine that has no data but the sample, whatever other tests of this process have prepared."""

from __future__ import annotations

from pathlib import Path

import pytest


def only_the_sample(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No mirror, and caches of this test alone, in ``folder``."""
    monkeypatch.delenv("QABENCH_MIRROR", raising=False)
    monkeypatch.setenv("QABENCH_CACHE", str(folder / "qabench"))
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", str(folder / "datasets"))
