"""A warning about a fallback is shown once, not by every command, and as one line."""

import warnings
from pathlib import Path
from typing import Any

import pytest

from qabench.cli.output import plain_warnings
from qabench.errors import FallbackWarning


def shown(capsys: Any, *texts: str, category: type[Warning] = FallbackWarning) -> list[str]:
    with plain_warnings():
        warnings.simplefilter("always")
        for text in texts:
            warnings.warn(text, category, stacklevel=1)
    return [line for line in capsys.readouterr().err.splitlines() if line]


def test_a_fallback_is_said_once(cache: Path, capsys: Any) -> None:
    assert shown(capsys, "simplemma is used") == ["warning: simplemma is used"]
    assert shown(capsys, "simplemma is used", "a small model is used") == ["warning: a small model is used"]
    assert (
        shown(capsys, "careful", category=UserWarning)
        == ["warning: careful"]
        == shown(capsys, "careful", category=UserWarning)
    )


def test_without_a_writable_cache_it_is_said_each_time(
    tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a-file"
    file.touch()
    monkeypatch.setenv("QABENCH_CACHE", str(file))
    assert shown(capsys, "simplemma is used") == ["warning: simplemma is used"] == shown(capsys, "simplemma is used")
