"""All messages equal those of the authors' script, byte for byte."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from felm_oracle import Call, Script

from qabench.benchmarks.felm.evaluate import load_responses
from qabench.benchmarks.felm.method import felm_method

METHODS = ("raw", "cot", "link", "content")


@pytest.fixture
def script(mirror: Path) -> Script:
    return Script(mirror, lambda call: "ALL_CORRECT")


@pytest.fixture
def rows(mirror: Path) -> list[Any]:
    return list(load_responses("all").rows)


def as_chat(messages: tuple[tuple[str, str], ...]) -> list[dict[str, str]]:
    return [{"role": role, "content": text} for role, text in messages]


@pytest.mark.parametrize("method", METHODS)
def test_chat(method: str, script: Script, rows: list[Any], compared: Callable[[str], None]) -> None:
    script.run(rows, "gpt-4", method)
    ours = felm_method(method, prompt="official", official_quirks=True)
    calls: list[Call] = [{"model": "gpt-4", "messages": as_chat(ours.messages(row)), **ours.parameters} for row in rows]
    assert calls == script.calls
    assert len(calls) == 847
    compared(f"{method}: {len(calls)} chats")


@pytest.mark.parametrize("method", METHODS)
def test_vicuna(method: str, script: Script, rows: list[Any], compared: Callable[[str], None]) -> None:
    script.run(rows, "vicuna_30B", method)
    ours = felm_method(method, prompt="official", official_quirks=True, reply_format="vicuna")
    prompts = []
    for row in rows:
        ((role, text),) = ours.messages(row)
        assert role == "user"
        prompts.append({"prompt": text, "max_tokens": ours.parameters["max_tokens"]})
    assert prompts == script.calls
    compared(f"{method}: {len(prompts)} prompts")


def test_cot_cons(script: Script, rows: list[Any], compared: Callable[[str], None]) -> None:
    science = [row for row in rows if row["domain"] == "science"]
    script.run(science, "gpt-3.5-turbo", "cot-cons", num_cons=2)
    ours = felm_method("cot-cons", prompt="official", num_cons=2, domains=["science"])
    calls = [
        {"model": "gpt-3.5-turbo", "messages": as_chat(ours.messages(row)), **ours.parameters}
        for row in science
        for _ in range(ours.samples)
    ]
    assert calls == script.calls
    compared(f"cot-cons: {len(calls)} chats")


def test_cot_cons_of_vicuna(script: Script, rows: list[Any]) -> None:
    science = [row for row in rows if row["domain"] == "science"]
    script.run(science, "vicuna_30B", "cot-cons", num_cons=2)
    ours = felm_method(
        "cot-cons", prompt="official", num_cons=2, domains=["science"], official_quirks=True, reply_format="vicuna"
    )
    assert ours.parameters["temperature"] == 0  # the script decodes greedily
    asked = [text for row in science for _ in range(ours.samples) for _, text in ours.messages(row)]
    assert asked == [call["prompt"] for call in script.calls]


@pytest.mark.parametrize("domain", ["math", "reasoning", "wk", "writing_rec"])
def test_cot_cons_has_no_prompt_outside_science(script: Script, rows: list[Any], domain: str) -> None:
    with pytest.raises(UnboundLocalError, match="eval_prompt"):
        script.run([row for row in rows if row["domain"] == domain][:1], "gpt-4", "cot-cons")


@pytest.mark.parametrize("method", ["raw", "cot"])
def test_without_quirks_only_references_differ(method: str, rows: list[Any], mirror: Path) -> None:
    quirks, ours = (felm_method(method, prompt="official", official_quirks=on) for on in (True, False))
    assert [quirks.messages(row) for row in rows] == [ours.messages(row) for row in rows]
