"""Two models in local folders do not get each other's cached replies."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs the extra bleurt")
pytest.importorskip("inspect_ai", reason="needs the extra run")

from tiny_language_models import save_tiny_chat

from qabench.runs.log import read_run
from qabench.runs.running import start


def test_models_that_differ_in_their_path_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QABENCH_CACHE", str(tmp_path / "cache"))
    answers = []
    for name, seed in (("a", 0), ("b", 1), ("a", None)):
        if seed is not None:
            save_tiny_chat(tmp_path / name, seed)
        log = start(
            "fanoutqa",
            None,
            "hf/tiny",
            model_args={"model_path": str(tmp_path / name), "device": "cpu"},
            task_args={"config": "sample", "prompt": "qabench", "lemmatizer": "simplemma"},
            log_dir=tmp_path / "logs",
            limit=2,
            max_tokens=8,
        )
        run = read_run(log)
        answers.append([record.answer for record in run.records])
        assert run.replies() == {"all": 2, "cached": 2 if seed is None else 0}
    assert answers[0] == answers[2] != answers[1]
