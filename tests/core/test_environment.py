"""The table of environment variables is complete, and keys are never shown."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import qabench
from qabench.environment import ENVIRONMENT, HIDDEN, environment

ROOT = Path(__file__).parents[2]
NAMES = {variable.name for variable in ENVIRONMENT}
# Options of other libraries that our code sets for a process it starts, and does not read.
SET_FOR_OTHERS = {"HF_DATASETS_DISABLE_PROGRESS_BARS", "HF_DATASETS_CACHE", "HF_MODULES_CACHE"}


def test_every_variable_in_the_code_is_documented() -> None:
    found = set()
    for folder in ("src", "metrics", "retrieval", "loading_scripts"):
        for path in (ROOT / folder).rglob("*.py"):
            found |= set(re.findall(r"[\"'`]((?:QABENCH|FANOUTQA|HF)_[A-Z_]+)\b", path.read_text(encoding="utf-8")))
    assert len(found) > 10
    assert found - SET_FOR_OTHERS <= NAMES


def test_keys_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FANOUTQA_OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("QABENCH_OFFLINE", "1")
    found = environment()
    assert found["variables"]["FANOUTQA_OPENAI_API_KEY"] == HIDDEN
    assert found["variables"]["QABENCH_OFFLINE"] == "1"
    assert found["qabench"] == qabench.__version__
