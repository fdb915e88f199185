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

def odd():
    one = f"{x:.2f} y"
    two = f"{{name}} {x}"
    three = f(x)
    return "{a}".format(a=1)

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


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: s.assigned("nope"), "has no assignment to nope"),
        (lambda s: s.assigned("prompt", "Runner.get_prompt", nth=2), r"has no assignment to prompt \(number 3\)"),
        (lambda s: s.assigned("prompt", "Nobody.get_prompt"), "has no Nobody.get_prompt; is it the right file"),
        (lambda s: s.returned("Runner.get_prompt"), "'field.name' has no name; name it with fields="),
        (lambda s: s.assigned("one", "odd"), "'x' has a format specification"),
        (lambda s: s.assigned("two", "odd"), "looks like a field"),
        (lambda s: s.assigned("three", "odd"), r"'f\(x\)' has no name"),
        (lambda s: s.returned("odd"), "fields other than {}"),
        (lambda s: s.docstring("Runner"), "Runner has no docstring"),
    ],
)
def test_other_sources_are_refused(source: PromptSource, call: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call(source)  # type: ignore[operator]


def test_a_file_that_is_not_python(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read .*none\.py"):
        PromptSource(tmp_path / "none.py")
    (tmp_path / "x.py").write_text("def (", encoding="utf-8")
    with pytest.raises(InputError, match="not a Python source file"):
        PromptSource(tmp_path / "x.py")
