"""Prompt templates, and prompts in users' and authors' files; test_official_messages.py compares
the official ones.
"""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qabench.benchmarks.fanoutqa.judge import judge_for
from qabench.errors import InputError
from qabench.prompts.authors import PromptSource
from qabench.prompts.prompt import Prompt, read_prompt

TEXTS = st.text() | st.sampled_from(["{question}", "{answer}"])  # values are not templates


@given(TEXTS, TEXTS, TEXTS)
def test_fields_are_filled_once_and_braces_in_values_stay(question: str, reference: str, answer: str) -> None:
    prompt = Prompt("x", "{question}|{reference}|{answer}|{answer}", "about {question}")
    assert prompt.messages(question=question, reference=reference, answer=answer) == (
        ("system", f"about {question}"),
        ("user", f"{question}|{reference}|{answer}|{answer}"),
    )


def test_the_digest_is_of_both_texts() -> None:
    prompts = [Prompt("x", "a"), Prompt("x", "b"), Prompt("x", "a", "s"), Prompt("x", "sa"), Prompt("x", "as")]
    assert len({prompt.digest for prompt in prompts}) == 5
    assert Prompt("x", "a").digest == Prompt("y", "a").digest
    assert Prompt("x", "a").label == f"x-{Prompt('x', 'a').digest}"


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
        ("a.txt", b"\xff", "must be UTF-8 text"),
        ("a.toml", b"user = ", "or TOML: "),
        ("a.toml", b"user = 'x'\nmodel = 'y'", "must have the string user"),
        ("a.toml", b"system = 'x'", "no user message"),
    ],
)
def test_invalid_files_of_users(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        judge_for(prompt=path)
    with pytest.raises(InputError, match="allowed: official, qabench, auto, or a file"):
        judge_for(prompt=str(tmp_path / "missing"))
    with pytest.raises(InputError, match="cannot read"):
        read_prompt(tmp_path / "missing")


def test_other_sources_of_official_prompts_are_refused(tmp_path: Path) -> None:
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
