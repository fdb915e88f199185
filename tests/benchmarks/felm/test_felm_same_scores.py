"""The same replies give the same scores everywhere: script, metric, predictions, run, log, results, lm-eval."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from felm_oracle import Call, Script

import qabench
from qabench.benchmarks import benchmark
from qabench.benchmarks.felm import BENCHMARK
from qabench.benchmarks.felm.evaluate import load_responses
from qabench.data.predictions import read_predictions
from qabench.evaluation import ANSWERED, EMPTY, FAILED, REFUSED, Evaluation
from qabench.evaluation.tables import as_dict

DOMAINS = ("wk", "science", "math", "reasoning", "writing_rec")
NAMES = ("f1", "precision", "recall", "balanced_accuracy")
REFUSAL, FAILURE = "<refused>", "<failed>"
FELM = benchmark("felm")


def reply_to(text: str) -> str:
    """Replies of all kinds; a prompt always gets the same reply."""
    number = hashlib.sha256(text.encode()).digest()[0]
    rare = ["", "who knows", REFUSAL, FAILURE, "Answer: 0", "Answer: 0, 1", "Answer: ALL_CORRECT", "Answer: 99"]
    usual = ["ALL_CORRECT", "Answer: 1", "Answer: 2, 1", "Thought: so.\nAnswer: 3", r"ALL\_CORRECT. 1 is fine"]
    return rare[number % len(rare)] if number < 90 else usual[number % len(usual)]


def heard(reply: str) -> str:
    """The reply for the official script, which does not know refusals and failures: they are empty."""
    return "" if reply in (REFUSAL, FAILURE) else reply


def asked(call: Call) -> str:
    return str(call["prompt"] if "prompt" in call else call["messages"][-1]["content"])


def values(evaluation: Evaluation) -> dict[str, float]:
    return {name: score.interval.mean for name, score in evaluation.scores().items()}


def defined(scores: dict[str, Any]) -> dict[str, Any]:
    return {name: scores[name] for name in NAMES if scores.get(name) is not None}


@pytest.mark.parametrize("model", ["gpt-4", "vicuna_30B"])
@pytest.mark.parametrize(("config", "method", "samples"), [("all", "raw", 1), ("science", "cot-cons", 3)])
def test_script_and_predictions(
    model: str, config: str, method: str, samples: int, mirror: Path, compared: Callable[[str], None]
) -> None:
    rows = load_responses(config).rows
    replies: list[str] = []

    def reply(call: Call) -> str:
        replies.append(heard(reply_to(f"{len(replies)} {asked(call)}")))
        return replies[-1]

    script = Script(mirror, reply)
    result = script.run(rows, model, method, num_cons=samples)
    of_rows = [replies[i : i + samples] for i in range(0, len(replies), samples)] if samples > 1 else replies
    lines = [{"id": row["index"], "reply": reply} for row, reply in zip(rows, of_rows, strict=True)]
    reply_format = "vicuna" if "vicuna" in model else "answer"
    evaluation = BENCHMARK.evaluate(config, read_predictions(lines), reply_format=reply_format)
    assert f"|replies:{reply_format if samples == 1 else 'answer'}|" in evaluation.signatures["felm"]
    wanted = script.scores("ALL" if config == "all" else config, result)
    sums = {name: sum(record.scores[name] for record in evaluation.records) for name in ("tp", "tn", "fp", "fn")}
    found = values(evaluation) | sums
    assert {name: found[name] for name in wanted} == wanted
    for domain, by_name in evaluation.scores_by_group("domain").items():
        scores = {name: score.interval.mean for name, score in by_name.items() if name in NAMES}
        assert scores == defined(script.scores(domain, result))
    compared(f"{method} of {model}: {len(replies)} replies")


@pytest.fixture(scope="module")
def log(mirror: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A run over math with replies of every kind."""
    pytest.importorskip("inspect_ai", reason="needs the extra run")
    from scripted_model import run, text

    from qabench.benchmarks.felm.tasks import felm

    def script(messages: Any) -> Any:
        reply = reply_to(messages[-1].text)
        if reply == FAILURE:
            return RuntimeError("the server is down")
        return text("Answer: 1, 2", "content_filter") if reply == REFUSAL else reply

    return run(felm("math", prompt="official"), script, tmp_path_factory.mktemp("logs"))


def test_all_paths(log: Any, mirror: Path, compared: Callable[[str], None]) -> None:
    from qabench.runs.log import read_run

    rows = list(load_responses("math").rows)
    script = Script(mirror, lambda call: heard(reply_to(asked(call))))
    wanted = script.scores("math", script.run(rows, "gpt-4", "raw"))
    official = {name: wanted[name] for name in NAMES}

    of_run = read_run(log.location)
    assert {status for status, n in of_run.counts().items() if n} == {ANSWERED, EMPTY, REFUSED, FAILED}
    assert {name: values(of_run)[name] for name in NAMES} == official
    (in_log,) = log.results.scores
    metrics = {name: metric.value for name, metric in in_log.metrics.items()}
    assert {name: metrics[name] for name in NAMES} == official
    assert {name: metrics[name] for name in values(of_run)} == values(of_run)

    replies = {row["index"]: reply_to(asked(call)) for row, call in zip(rows, script.calls, strict=True)}
    given = {id: None if reply in (REFUSAL, FAILURE) else reply for id, reply in replies.items()}
    lines = [{"id": id, "reply": reply} for id, reply in given.items()]
    of_file = BENCHMARK.evaluate("math", read_predictions(lines))
    assert values(of_file) == values(of_run)
    segments = sum(len(row["labels"]) for row in rows)
    assert {one.scores()["f1"].n for one in (of_run, of_file)} == {segments}

    metric = qabench.load_metric("felm_factuality")
    computed = metric.compute(predictions=list(given.values()), references=[row["labels"] for row in rows])
    assert {name: computed[name] for name in NAMES} == official
    assert defined(computed["readable"]) == {name: values(of_run)[f"readable_{name}"] for name in NAMES}
    assert defined(computed["responses"]) == {name: values(of_run)[f"responses_{name}"] for name in NAMES}

    report = as_dict(of_run)
    assert {name: report["scores"][name] for name in NAMES} == official
    assert report["n"]["f1"] == segments and report["left_out"]["readable_f1"] > 0
    compared(f"{len(rows)} responses on five paths")
