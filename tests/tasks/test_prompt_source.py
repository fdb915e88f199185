"""Prompts read from Python source files; test_official_messages.py compares those of the authors' files."""

from __future__ import annotations

from pathlib import Path

import pytest

from qabench.errors import InputError
from qabench.tasks.prompt_source import PromptSource


def test_other_sources_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.py"
    path.write_text("raise SystemExit\n\nclass Runner:\n    def get_prompt(self):\n        prompt = 'x'\n")
    source = PromptSource(path)
    assert source.assigned("prompt", "Runner.get_prompt") == "x"  # and the file is not executed
    with pytest.raises(InputError, match=r"no assignment to prompt \(number 3\); is it the right file"):
        source.assigned("prompt", "Runner.get_prompt", nth=2)
    with pytest.raises(InputError, match=r"has no Nobody.get_prompt; is it the right file"):
        source.returned("Nobody.get_prompt")
    (tmp_path / "x.py").write_text("def (", encoding="utf-8")
    for name in ("none.py", "x.py"):
        with pytest.raises(InputError, match=f"{name} is not a Python source file"):
            PromptSource(tmp_path / name)
