"""Errors are failed questions, and nothing measured is no score: in all benchmarks' runs and in
Inspect's own log.
"""

from math import isnan
from pathlib import Path
from typing import Any

import pytest
from benchmark_tasks import expertqa, fanoutqa_closed_book, fastbook_rag, felm
from inspect_ai import eval as inspect_eval
from openai_server import Fault, OpenAIServer
from scripted_model import run, text

from qabench.errors import InputError, QabenchError
from qabench.runs.log import failure, read_run
from qabench.runs.log_types import SampleError

TASKS: dict[str, Any] = {
    "fanoutqa": lambda: fanoutqa_closed_book("sample", prompt="qabench", lemmatizer="simplemma"),
    "expertqa": lambda: expertqa("sample", prompt="qabench"),
    "felm": lambda: felm("sample", prompt="qabench"),
    "fastbook": lambda: fastbook_rag("sample"),
}
LONG = "This model's maximum context length is 16 tokens."


def values(log: Any) -> dict[str, float]:
    return {name: metric.value for score in log.results.scores for name, metric in score.metrics.items()}


@pytest.mark.parametrize("name", TASKS)
def test_a_prompt_that_is_too_long_is_a_failure(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUB_API_KEY", "none")
    with OpenAIServer() as server:
        error = {"error": {"message": LONG, "type": "invalid_request_error", "code": "context_length_exceeded"}}
        server.reply = lambda body: "Mars. Answer: 1"
        server.fault = lambda number, body: None if number == 0 else Fault(400, body=error)
        model = {"model": "openai-api/stub/m", "model_base_url": server.base_url}
        options: dict[str, Any] = {"limit": 3, "max_connections": 1, "display": "none", "log_dir": str(tmp_path)}
        (log,) = inspect_eval(TASKS[name](), **model, **options)
    evaluation = read_run(log.location)
    assert {status: n for status, n in evaluation.counts().items() if n} == {"answered": 1, "failed": 2}
    failed = [record for record in evaluation.records if record.status == "failed"]
    assert {record.answer for record in failed} == {None}
    assert {record.problem for record in failed} == {f"the prompt is longer than the model's context: {LONG}"}


def test_a_reply_that_fills_the_context_is_cut_off(tmp_path: Path) -> None:
    log = run(TASKS["fanoutqa"](), lambda messages: text("Mars and", "model_length"), tmp_path, limit=1)
    assert read_run(log.location).counts()["cut off"] == 1


@pytest.mark.parametrize("name", TASKS)
def test_a_run_without_answers_has_no_values(name: str, tmp_path: Path) -> None:
    log = run(TASKS[name](), lambda messages: ConnectionError("down"), tmp_path, limit=3)
    numbers = values(log)
    assert log.status == "success" and numbers and all(map(isnan, numbers.values()))
    assert log.results and (log.results.total_samples, log.results.completed_samples) == (3, 0)
    assert read_run(log.location).counts()["failed"] == 3


@pytest.mark.parametrize("name", TASKS)
def test_metrics_of_several_epochs_equal_those_of_score(name: str, tmp_path: Path) -> None:
    replies = iter(["Mars, 1998 and Lima. Answer: 1", "Mars", "ALL_CORRECT", "the third of 7 planets", "Lima"] * 99)
    log = run(TASKS[name](), lambda messages: next(replies), tmp_path, epochs=3, max_connections=1)
    numbers = values(log)
    scores = {name: score.interval.mean for name, score in read_run(log.location).scores().items()}
    shared = {name: value for name, value in scores.items() if name in numbers}
    assert shared and {name: numbers[name] for name in shared} == shared


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (repr(QabenchError("the reply is 'a' and \"b\"")), "the reply is 'a' and \"b\""),
        (repr(InputError("two\nlines")), "two lines"),
        ("QabenchError('it's edited')", "it's edited"),
        ("QabenchError('a', 'b')", "a', 'b"),
        ("ValueError('x')", "ValueError('x')"),
    ],
)
def test_the_reason_of_a_failure_is_the_message(message: str, reason: str) -> None:
    assert failure(SampleError(message, "")) == reason
