"""FELM's task: prompts, the result of each kind of reply, and the log."""

from itertools import count
from pathlib import Path
from typing import Any

import pytest
from benchmark_tasks import felm
from inspect_ai import score as score_again
from inspect_ai.log import EvalLog, EvalSample
from scripted_model import Reply, in_order, run, text

from qabench.adapters.inspect_ai.reply_cache import caching_replies
from qabench.adapters.inspect_ai.scoring import inspect_scorer
from qabench.benchmarks.felm import BENCHMARK
from qabench.benchmarks.felm.method import FelmMethod
from qabench.errors import InputError
from qabench.runs.log import read_run

FIGURES = ("f1", "precision", "recall", "balanced_accuracy")
COUNTS = ("error_tn", "error_tp", "error_fn", "error_fp")
FAILURE = RuntimeError("the server is down")


def felm_own(config: str = "sample", method: str = "raw", **arguments: Any) -> Any:
    """The task with qabench's prompts, which do not need the authors' files."""
    return felm(config, method, **({"prompt": "qabench"} | arguments))


def done(folder: Path, script: Any, epochs: int | None = None, **arguments: Any) -> EvalLog:
    """The log of a run in which the model replies by the last message's text."""
    answering = (lambda messages: script(messages[-1].text)) if callable(script) else script
    return run(felm_own(**arguments), answering, folder, epochs=epochs)


def metrics_of(log: EvalLog) -> dict[str, float]:
    assert log.results
    (found,) = log.results.scores
    return {name: metric.value for name, metric in found.metrics.items()}


def only(values: dict[str, Any], names: tuple[str, ...] = FIGURES, prefix: str = "") -> dict[str, Any]:
    return {name: values.get(prefix + name) for name in names if values.get(prefix + name) is not None}


def of(sample: EvalSample) -> Any:
    return (sample.scores or {})["felm"]


def test_by_claims(tmp_path: Path) -> None:
    def script(prompt: str) -> Reply:
        if "Claim 1. ..." in prompt:
            return "Segment 1:\nClaim 1. One is so.\nClaim 2. One is otherwise.\nSegment 2:\nClaim 1. Two."
        return "Answer: 2" if "<claims>" in prompt else "ALL_CORRECT"

    log = done(tmp_path, script, config="sample", claims=True)
    for sample in in_order(log):
        detail = of(sample).metadata["detail"]
        by_claims = sample.metadata["row"]["domain"] in ("wk", "science", "writing_rec")
        verdicts = [segment["verdict"] for segment in detail["segments"]]
        assert verdicts == [not (by_claims and i == 0) for i in range(len(verdicts))]
        assert ("claims" in detail, len(sample.messages)) == (by_claims, 6 if by_claims else 3)
    assert log.eval.metadata and log.eval.metadata["setting"] == "raw by claims"
    assert "by:claims" in of(in_order(log)[0]).metadata["signatures"]["felm"]


def test_cot_cons_takes_the_majority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QABENCH_CACHE", str(tmp_path / "cache"))
    replies = ["Answer: 1", "who knows", "Answer: 1, 2"]
    numbers = count()
    for attempt in range(2):
        task = felm_own("sample", "cot-cons", num_cons=3, domains="math")
        with caching_replies(True):
            log = run(task, lambda messages: replies[next(numbers) % 3], tmp_path, max_samples=1)
        samples = in_order(log)
        for sample in samples:
            detail = of(sample).metadata["detail"]
            assert sorted(detail["replies"]) == sorted(replies)  # with a cache, too
            assert detail["segments"][0]["verdict"] is False and len(detail["reasons"]) == 1
            assert of(sample).answer.startswith("Answer: 1")
            seeds = [event.config.seed for event in sample.events if event.event == "model"]
            assert seeds == [None] * 3  # as the authors' script
        assert (log.plan.config.temperature, next(numbers)) == (0.9, 3 * len(samples) + attempt)
    about = of(samples[0]).metadata
    assert "samples:3" in about["signatures"]["felm"]


FAULTS: list[tuple[Reply, str, str | None]] = [
    ("who knows", "answered", "no verdict in the reply 'who knows'"),
    (text("who kn", "max_tokens"), "cut off", "no verdict in the reply (it was cut off) 'who kn'"),
    ("", "empty", "the reply is empty"),
    (text("no", "content_filter"), "refused", "filtered"),
    (FAILURE, "failed", "the server is down"),
    (TimeoutError("30 s"), "failed", "did not reply in time"),
]


@pytest.mark.parametrize(("reply", "status", "problem"), FAULTS)
def test_replies_without_a_verdict(reply: Reply, status: str, problem: str, tmp_path: Path) -> None:
    log = done(tmp_path, lambda prompt: reply, config="sample", domains="wk")
    assert log.status == "success"
    found = read_run(log.location)
    for record in found.records:
        assert record.status == status and problem in (record.problem or "")
        labels = [segment["label"] for segment in record.detail["segments"]]
        assert {segment["verdict"] for segment in record.detail["segments"]} == {None}
        wanted = dict(zip(COUNTS, (labels.count(True), 0, labels.count(False), 0), strict=True))
        assert only(dict(record.scores), COUNTS) == wanted
    scores = found.scores()
    assert not [name for name in scores if name.startswith("readable_")]
    # Without any answers, there are no scores.
    answered = status in ("answered", "cut off")
    assert [scores["recall"].interval.mean] == [0] if answered else scores == {}


def test_epochs_are_summed(tmp_path: Path) -> None:
    once = done(tmp_path, lambda prompt: "Answer: 1", config="sample")
    twice = done(tmp_path / "twice", lambda prompt: "Answer: 1", config="sample", epochs=2)
    assert metrics_of(twice) == metrics_of(once)
    found = read_run(twice.location)
    assert len(found.records) == 2 * len(read_run(once.location).records)
    assert "each question was asked 2 times" in found.deviations(found.scores()["f1"])


def test_a_log_can_be_scored_again(tmp_path: Path) -> None:
    log = done(tmp_path, lambda prompt: "The segments 1 and 2 are wrong.", config="sample")
    assert metrics_of(log)["recall"] == 0
    vicuna = metrics_of(
        score_again(log, inspect_scorer(BENCHMARK)(reply_format="vicuna"), action="overwrite", display="none")
    )
    wanted = done(tmp_path / "other", lambda prompt: "Answer: 1, 2", config="sample")
    assert only(vicuna) == only(metrics_of(wanted))


WRONG = [
    ({"method": "magic"}, "unknown method 'magic'; allowed: raw, cot, cot-cons, link, content"),
    ({"domains": "law"}, "no question is in 'law'; allowed: fooled, .*, wk, writing_rec"),
    ({"num_cons": 0}, "num_cons is 0; it must be at least 1"),
    ({"reply_format": "xml"}, "unknown reply_format 'xml'; allowed: answer, vicuna"),
    ({"config": "dev"}, "felm has no config 'dev'; allowed: all, wk"),
]


@pytest.mark.parametrize(("wrong", "message"), WRONG)
def test_wrong_arguments_list_the_valid_ones(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        felm_own(**({"config": "sample"} | wrong))


def test_our_prompts_without_the_authors_files(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("QABENCH_MIRROR", raising=False)
    with pytest.warns(UserWarning, match="the prompts of FELM's authors are not available"):
        felm("sample", domains="wk")


def test_vicuna_is_asked_by_one_message(mirror: Path, tmp_path: Path) -> None:
    asked: list[Any] = []
    task = felm("math", official_quirks=True, reply_format="vicuna", ids="0")
    log = run(task, lambda messages: asked.append(messages) or "2 and 1", tmp_path)  # type: ignore[func-returns-value]
    assert [message.role for message in asked[0]] == ["user"]
    found = read_run(log.location)
    assert "|interface:chat|" in found.signatures["felm"]
    assert "Vicuna was prompted in a chat, not by plain completion" in found.deviations(found.scores()["precision"])
    assert found.records[0].answer == "Answer: 1"


def test_vicuna_by_plain_completion(mirror: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import inspect_ai
    from openai_server import Fault, OpenAIServer

    monkeypatch.setenv("QABENCH_API_KEY", "none")
    choice = {"index": 0, "text": " 1", "finish_reason": "stop", "logprobs": None}
    reply = {"id": "1", "object": "text_completion", "created": 1, "model": "vicuna", "choices": [choice]}
    task = felm("math", official_quirks=True, reply_format="vicuna")
    with OpenAIServer() as server:
        server.fault = lambda number, body: Fault(body=reply)
        where = {"model": "openai-api-completions/qabench/vicuna", "model_base_url": server.base_url}
        (log,) = inspect_ai.eval(task, **where, log_dir=str(tmp_path), display="none", limit=2)
    asked = FelmMethod("raw", prompt="official", official_quirks=True, reply_format="vicuna")
    wanted = {asked.messages(question.row)[0][1] for question in BENCHMARK.load("math").rows[:2]}
    assert {call.body["prompt"] for call in server.calls} == wanted
    assert {(call.body["max_tokens"], call.body["temperature"]) for call in server.calls} == {(100, 0)}
    found = read_run(log.location.removeprefix("file://"))
    assert "|interface:completion|" in found.signatures["felm"]
    assert found.deviations(found.scores()["recall"]) == ["2 of 194 questions were asked"]
