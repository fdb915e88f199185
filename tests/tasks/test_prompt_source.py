"""Prompts read from Python source files."""

from __future__ import annotations

from pathlib import Path

import pytest

from qabench.errors import InputError
from qabench.tasks.prompt_source import PromptSource

SOURCE = '''
raise SystemExit("executed")
plain = """Use {context}
to answer."""

class Runner:
    def get_prompt(self, question):
        text = question["text"]
        if self.small:
            prompt = f"Small. {text}"
        else:
            prompt = ("Large <a>{QUERY}</a>" f" and {{}}: {text}")
        return "I know " + field.name + ". " + text

async def search(title):
    """Search it.

    With care.
    """
    return "About {}:\\n{}".format(title, body.strip())

if True:
    inner = "in a block"
'''


@pytest.fixture
def source(tmp_path: Path) -> PromptSource:
    path = tmp_path / "run.py"
    path.write_text(SOURCE, encoding="utf-8")
    return PromptSource(path)


def test_expressions_become_templates(source: PromptSource) -> None:
    assert source.assigned("plain") == "Use {context}\nto answer."
    assert source.assigned("inner") == "in a block"
    assert source.assigned("prompt", "Runner.get_prompt") == "Small. {text}"
    found = source.assigned("prompt", "Runner.get_prompt", fields={"text": "question"}, nth=1)
    assert found == "Large <a>{QUERY}</a> and {}: {question}"
    assert source.returned("Runner.get_prompt", fields={"field.name": "name"}) == "I know {name}. {text}"
    assert source.returned("search", fields={"body.strip()": "body"}) == "About {title}:\n{body}"
    assert source.docstring("search") == "Search it.\n\nWith care."


def test_other_sources_are_refused(source: PromptSource, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no assignment to prompt \(number 3\); is it the right file"):
        source.assigned("prompt", "Runner.get_prompt", nth=2)
    with pytest.raises(InputError, match=r"has no Nobody.get_prompt; is it the right file"):
        source.returned("Nobody.get_prompt")
    (tmp_path / "x.py").write_text("def (", encoding="utf-8")
    for name in ("none.py", "x.py"):
        with pytest.raises(InputError, match=f"{name} is not a Python source file"):
            PromptSource(tmp_path / name)
