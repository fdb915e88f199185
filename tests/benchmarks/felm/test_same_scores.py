"""The same replies have the same scores by the authors' script, as predictions, and by the metric."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from felm_oracle import Call, Script

import qabench
from qabench.adapters.files import evaluate
from qabench.benchmarks.felm import BENCHMARK
from qabench.benchmarks.felm.formulas import COLUMNS, COUNTS
from qabench.data.predictions import read_predictions
from qabench.evaluation import Evaluation

DOMAINS = ("wk", "science", "math", "reasoning", "writing_rec")
NAMES = ("f1", "precision", "recall", "balanced_accuracy")


def reply_to(text: str) -> str:
    """Replies of all kinds; a prompt always gets the same reply."""
    number = hashlib.sha256(text.encode()).digest()[0]
    rare = ["", "who knows", "Answer: 0", "Answer: 0, 1", "Answer: ALL_CORRECT", "Answer: 99"]
    usual = ["ALL_CORRECT", "Answer: 1", "Answer: 2, 1", "Thought: so.\nAnswer: 3", r"ALL\_CORRECT. 1 is fine"]
    return rare[number % len(rare)] if number < 90 else usual[number % len(usual)]


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
    rows = [question.row for question in BENCHMARK.load(config).rows]
    replies: list[str] = []

    def reply(call: Call) -> str:
        replies.append(reply_to(f"{len(replies)} {asked(call)}"))
        return replies[-1]

    script = Script(mirror, reply)
    result = script.run(rows, model, method, num_cons=samples)
    of_rows = [replies[i : i + samples] for i in range(0, len(replies), samples)] if samples > 1 else replies
    lines = [{"id": row["index"], "reply": reply} for row, reply in zip(rows, of_rows, strict=True)]
    reply_format = "vicuna" if "vicuna" in model else "answer"
    evaluation = evaluate(BENCHMARK, config, read_predictions(lines), reply_format=reply_format)
    assert f"|replies:{reply_format if samples == 1 else 'answer'}|" in evaluation.signatures["felm"]
    wanted = script.scores("ALL" if config == "all" else config, result)
    sums = {
        name: sum(record.scores[column] for record in evaluation.records)
        for name, column in zip(COUNTS, COLUMNS, strict=True)
    }
    found = values(evaluation) | sums
    assert {name: found[name] for name in wanted} == wanted
    for domain, by_name in evaluation.scores_by_group("domain").items():
        scores = {name: score.interval.mean for name, score in by_name.items() if name in NAMES}
        assert scores == defined(script.scores(domain, result))
    labels = [row["labels"] for row in rows]
    metric = qabench.load_metric("felm_factuality")
    computed = metric.compute(predictions=of_rows, references=labels, reply_format=reply_format)
    assert {name: computed[name] for name in wanted} == wanted
    readable = {f"readable_{name}": value for name, value in defined(computed["readable"]).items()}
    responses = {f"responses_{name}": value for name, value in defined(computed["responses"]).items()}
    assert (readable | responses).items() <= found.items()
    compared(f"{method} of {model}: {len(replies)} replies")
