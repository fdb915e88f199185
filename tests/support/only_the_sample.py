"""A machine with only the sample, regardless of the data that other tests have prepared."""

from pathlib import Path

import pytest


def only_the_sample(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No mirror, and separate caches in ``folder``."""
    monkeypatch.delenv("QABENCH_MIRROR", raising=False)
    monkeypatch.setenv("QABENCH_CACHE", str(folder / "qabench"))
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", str(folder / "datasets"))
