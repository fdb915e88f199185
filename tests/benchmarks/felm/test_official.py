"""What is official in FELM: the values of signatures, and all messages, equal byte for byte."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from felm_oracle import Call, Script

from qabench.benchmarks.felm import BENCHMARK
from qabench.benchmarks.felm.method import FelmMethod
from qabench.benchmarks.felm.official import DECLARATIONS, PROMPTS, SCORE, signatures
from qabench.evaluation.signature import deviations, digest, parse

DECLARED = DECLARATIONS[SCORE]
OFFICIAL = {name: field.official for name, field in DECLARED.items() if isinstance(field.official, tuple)}
(DATA,) = OFFICIAL["data"]
IRRELEVANT = {"evaluator", "samples", "domains"}
RUN: dict[str, Any] = {"config": "wk", "data": DATA, "evaluator": "openai/gpt-4", "temperature": 0.0, "max_tokens": 100}


def said(line: str) -> list[str]:
    return deviations(line, DECLARED)


def asked(method: str = "raw", **options: Any) -> dict[str, Any]:
    """The fields of a run's signature."""
    made = FelmMethod(method, prompt=options.pop("prompt", "official"), **options)
    parameters = made.generated_with({**made.parameters})
    return {**RUN, **made.fields(), **{name: parameters.get(name) for name in ("temperature", *parameters)}}


def official_runs() -> list[dict[str, Any]]:
    vicuna = {"official_quirks": True, "reply_format": "vicuna"}
    named = {"evaluator": "openai-api-completions/qabench/vicuna-33b", "interface": "completion"}
    return [
        asked("raw"),
        asked("cot"),
        asked("cot-cons", domains=["science"]) | {"config": "science"},
        asked("link", official_quirks=True),
        asked("content", official_quirks=True),
        *(asked(method, **vicuna) | named for method in ("raw", "cot", "link", "content")),
        asked("cot-cons", domains=["science"], **vicuna) | named | {"config": "science"},
    ]


def test_official_runs_have_no_deviations(mirror: Path) -> None:
    for fields in official_runs():
        assert said(signatures(fields)["felm"]) == [], fields


def test_every_changed_field_is_a_deviation(mirror: Path) -> None:
    seen: set[str] = set()
    for fields in official_runs():
        line = signatures(fields)["felm"]
        _, found = parse(line)
        for name in found:
            if name == "qabench":
                continue
            changed = said(line.replace(f"|{name}:{found[name]}|", f"|{name}:another|"))
            assert (changed == []) == (name in IRRELEVANT), name
            seen.add(name)
    absent = {"references", "domains", "shown", "suffix", "seed", "system", "system_message"}
    assert seen | absent == set(DECLARED)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"prompt": "qabench"}, "prompt: qabench-"),
        ({"method": "link"}, "reference links are shown"),
        ({"method": "content"}, "reference texts are shown"),
        ({"method": "cot-cons"}, "cot-cons in wk,science,math,reasoning,writing_rec: "),
        ({"claims": True}, "claims are judged instead of segments"),
        ({"reply_format": "vicuna"}, "the authors' last lines for Vicuna"),
    ],
)
def test_other_ways_of_asking(fields: dict[str, Any], sentence: str, mirror: Path) -> None:
    method = fields.pop("method", "raw")
    found = said(signatures(asked(method, **fields))["felm"])
    assert len(found) == 1 and sentence in found[0]


def test_a_system_message_is_a_deviation() -> None:
    assert said(signatures({**asked(prompt="qabench"), "system_message": "Be brief."})["felm"])[1:]


def test_prompts_are_those_of_the_files(mirror: Path) -> None:
    labels = {}
    for method in ("raw", "cot", "link", "content"):
        for claims in (False, True):
            for quirks, replies in ((False, "answer"), (True, "answer"), (True, "vicuna")):
                options = {"claims": claims, "official_quirks": quirks, "reply_format": replies}
                words = ["claims" if claims else "segments", method]
                if replies == "vicuna":
                    words.insert(1, "Vicuna")
                if method in ("link", "content") and not quirks:
                    words.append("references shown")
                labels[", ".join(words)] = FelmMethod(method, prompt="official", **options).prompts.label
    assert labels == PROMPTS


def test_labels_are_those_of_the_file(mirror: Path) -> None:
    for config, wanted in zip(OFFICIAL["config"], OFFICIAL["references"], strict=True):
        responses = BENCHMARK.load(config)
        assert responses.data == DATA
        assert digest(question.row["labels"] for question in responses.rows) == wanted


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
        # plain text; the script decodes greedily, and passes no temperature
        if model == "vicuna_30B":
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
