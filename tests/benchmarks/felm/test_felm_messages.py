"""All messages equal those of the authors' script, byte for byte."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from felm_oracle import Call, Script

from qabench.benchmarks.felm import BENCHMARK
from qabench.benchmarks.felm.method import FelmMethod


@pytest.fixture
def script(mirror: Path) -> Script:
    return Script(mirror, lambda call: "ALL_CORRECT")


@pytest.fixture(scope="module")
def rows(mirror: Path) -> list[Any]:
    return [question.row for question in BENCHMARK.load("all").rows]


def calls_of(method: FelmMethod, rows: list[Any], model: str) -> list[Call]:
    """Return the calls of a method, as the script makes them."""
    calls: list[Call] = []
    for row in rows:
        messages = method.messages(row)
        if model == "vicuna_30B":  # plain text; the script decodes greedily, and passes no temperature
            ((_, text),) = messages
            call: Call = {"prompt": text, "max_tokens": method.parameters["max_tokens"]}
        else:
            chat = [{"role": role, "content": text} for role, text in messages]
            call = {"model": model, "messages": chat, **method.parameters}
        calls += [call] * method.samples
    return calls


@pytest.mark.parametrize("model", ["gpt-4", "vicuna_30B"])
@pytest.mark.parametrize("method", ["raw", "cot", "link", "content", "cot-cons"])
def test_messages(method: str, model: str, script: Script, rows: list[Any], compared: Callable[[str], None]) -> None:
    sampled = [row for row in rows if row["domain"] == "science"] if method == "cot-cons" else rows
    script.run(sampled, model, method, num_cons=2)
    reply_format = "vicuna" if model == "vicuna_30B" else "answer"
    ours = FelmMethod(method, prompt="official", num_cons=2, official_quirks=True, reply_format=reply_format)
    assert calls_of(ours, sampled, model) == script.calls
    assert model == "gpt-4" or ours.parameters["temperature"] == 0
    compared(f"{method} of {model}: {len(script.calls)} calls")


@pytest.mark.parametrize("method", ["raw", "cot"])
def test_without_quirks_only_references_differ(method: str, rows: list[Any], mirror: Path) -> None:
    quirks, ours = (FelmMethod(method, prompt="official", official_quirks=on) for on in (True, False))
    assert [quirks.messages(row) for row in rows] == [ours.messages(row) for row in rows]
