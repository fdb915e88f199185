"""Prompts: the project's own, the authors' as read from their file, and users' files."""

from __future__ import annotations

import ast
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qabench.benchmarks.fanoutqa.judge import OWN_PROMPT, judge_for
from qabench.benchmarks.fanoutqa.judge_prompt import official_prompt
from qabench.errors import InputError, MissingExtra
from qabench.prompts.template import Prompt, read_prompt

SOURCE = '''"""A module that must never run."""
raise SystemExit("it ran")
factuality_system = "S"
def factuality_prompt(question: str, reference: str, answer: str):
    return (f"Q {question} R" f" {reference}" " A " f"{answer}.")
'''


@given(st.text(), st.text(), st.text())
def test_fields_are_filled_once_and_braces_in_values_stay(question: str, reference: str, answer: str) -> None:
    prompt = Prompt("x", "{question}|{reference}|{answer}|{answer}", "about {question}")
    assert prompt.messages(question=question, reference=reference, answer=answer) == (
        ("system", f"about {question}"),
        ("user", f"{question}|{reference}|{answer}|{answer}"),
    )


def test_values_are_no_templates() -> None:
    prompt = Prompt("x", "{question} {answer}")
    assert prompt.messages(question="{answer}", answer="{question}") == (("user", "{answer} {question}"),)


def test_the_digest_is_of_both_texts() -> None:
    prompts = [Prompt("x", "a"), Prompt("x", "b"), Prompt("x", "a", "s"), Prompt("x", "sa"), Prompt("x", "as")]
    assert len({prompt.digest for prompt in prompts}) == 5
    assert Prompt("x", "a").digest == Prompt("y", "a").digest
    assert Prompt("x", "a").label == f"x-{Prompt('x', 'a').digest}"


def test_our_own_prompt_names_the_six_cases() -> None:
    assert OWN_PROMPT.fields() == {"question", "reference", "answer"}
    assert [line[0] for line in OWN_PROMPT.user.splitlines() if line[1:4] == " - "] == list("ABCDEF")


def test_the_official_prompt_is_the_installed_one_s_and_nothing_runs() -> None:
    spec = find_spec("fanoutqa")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("needs the extra parity")
    loaded = "fanoutqa.eval.llm" in sys.modules
    prompt = official_prompt()
    assert ("fanoutqa.eval.llm" in sys.modules) == loaded
    assert prompt.name == "official"
    path = Path(spec.submodule_search_locations[0]) / "eval" / "llm.py"
    # Here, in a test, the function itself may run: what it gives is what we send.
    source = ast.parse(path.read_text(encoding="utf-8"))
    function = next(node for node in source.body if isinstance(node, ast.FunctionDef))
    names: dict[str, Any] = {}
    exec(compile(ast.Module([function], []), str(path), "exec"), names)
    given = {"question": "q {answer}", "reference": "r\nr", "answer": "a"}
    assert prompt.messages(**given)[1] == ("user", names["factuality_prompt"](**given))
    assert judge_for(prompt="official").prompt == judge_for(prompt=path).prompt == prompt
    # The words are the project's own: no long run of words is shared.
    ours, theirs = (text.lower().split() for text in (OWN_PROMPT.user, prompt.user))
    runs = {tuple(theirs[i : i + 8]) for i in range(len(theirs) - 7)}
    assert not [run for i in range(len(ours) - 7) if (run := tuple(ours[i : i + 8])) in runs]


def test_a_source_file_is_parsed_and_a_changed_text_is_said(tmp_path: Path) -> None:
    path = tmp_path / "llm.py"
    path.write_text(SOURCE)
    with pytest.warns(UserWarning, match="not the one known as official"):
        prompt = official_prompt(path)
    assert (prompt.name, prompt.system, prompt.user) == (
        "official-changed",
        "S",
        "Q {question} R {reference} A {answer}.",
    )


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("x = 1", "no function factuality_prompt"),
        ("def factuality_prompt(): pass", "no function factuality_prompt"),
        ("def factuality_prompt(q):\n    return q.upper()", "line 2: factuality_prompt does more"),
        ("def factuality_prompt(q):\n    return f'{q:>9}'", "line 2: factuality_prompt does more"),
        ("def factuality_prompt(q):\n    return f'{q}'", "no text factuality_system"),
        ("def (", "no Python source file: .* in line 1"),
        ("\0", "no Python source file"),
    ],
)
def test_a_file_that_is_not_theirs(tmp_path: Path, source: str, message: str) -> None:
    path = tmp_path / "llm.py"
    path.write_text(source)
    with pytest.raises(InputError, match=message):
        official_prompt(path)


def test_without_fanoutqa_the_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qabench.benchmarks.fanoutqa.judge_prompt.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"qabench\[parity\]"):
        judge_for(prompt="official")


def test_a_user_s_file(tmp_path: Path) -> None:
    text = tmp_path / "mine.txt"
    text.write_text("{question}\n{reference}\n{answer}\n")
    assert judge_for(prompt=text).prompt == Prompt("file:mine.txt", "{question}\n{reference}\n{answer}\n")
    toml = tmp_path / "mine.toml"
    toml.write_text('system = "s"\nuser = "{question}{reference}{answer}"\n')
    assert judge_for(prompt=str(toml)).prompt == Prompt("file:mine.toml", "{question}{reference}{answer}", "s")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"{question} {answer}", r"lacks \{reference\}"),
        ("a.txt", b"{question} {answer} {reference} {refrence}", r"has unknown \{refrence\}"),
        ("a.txt", b" \n", "no user message"),
        ("a.txt", b"\xff", "not UTF-8"),
        ("a.toml", b"user = ", "not TOML"),
        ("a.toml", b"user = 1", "must hold the texts"),
        ("a.toml", b"user = 'x'\nmodel = 'y'", "must hold the texts"),
        ("a.toml", b"system = 'x'", "no user message"),
    ],
)
def test_a_user_s_file_that_cannot_be_used(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        judge_for(prompt=path)
    with pytest.raises(InputError, match='allowed: "own", "official", or a file'):
        judge_for(prompt=str(tmp_path / "missing"))
    with pytest.raises(InputError, match="cannot read"):
        read_prompt(tmp_path / "missing")
