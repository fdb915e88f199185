"""FELM's task: the same requests, verdicts and figures as ``qabench evaluate-felm`` and the metric, and every fault."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("inspect_ai", reason="needs the extra run")

from inspect_ai import eval_retry
from inspect_ai import score as score_again
from inspect_ai.log import EvalLog, EvalSample
from openai_server import Fault, OpenAIServer, completion
from scripted_model import SCRIPTS, Reply, in_order, run, text
from typer.testing import CliRunner

import qabench
from qabench.benchmarks.felm.evaluators import felm_evaluator
from qabench.benchmarks.felm.scorer import felm_scorer
from qabench.benchmarks.felm.tasks import felm
from qabench.cli import app
from qabench.errors import InputError
from qabench.loading_scripts import open_path
from qabench.loading_scripts.felm.parse import DOMAINS, read_rows
from qabench.runs.figures import figures
from qabench.runs.log import read_run

FIGURES = ("f1", "precision", "recall", "balanced_accuracy")
COUNTS = ("tp", "tn", "fp", "fn")
FAILURE = RuntimeError("the server is down")


@pytest.fixture
def server(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIServer]:
    """Replies, and fails, as ``varied`` does."""
    pytest.importorskip("openai", reason="needs the extra judge")
    for name in ("FANOUTQA_OPENAI_API_KEY", "FANOUTQA_OPENAI_API_BASE"):
        monkeypatch.delenv(name, raising=False)

    def fault(number: int, body: dict[str, Any]) -> Fault | None:
        reply = varied(body["messages"][-1]["content"])
        if isinstance(reply, Exception):
            return Fault(status=400, body={"error": {"message": "no"}})
        if not isinstance(reply, str):
            return Fault(body=completion(reply.completion, finish_reason="content_filter"))
        return None

    with OpenAIServer() as server:
        server.fault, server.reply = fault, lambda body: str(varied(body["messages"][-1]["content"]))
        yield server


def varied(prompt: str) -> Reply:
    """One of everything that a model replies, the same one for a prompt each time."""
    number = hashlib.sha256(prompt.encode()).digest()[0]
    replies: list[Reply] = [
        "ALL_CORRECT",
        "Answer: 1",
        "Answer: 2, 1",
        "Answer: 3",
        "Thought: so.\nAnswer: 2",
        "who knows",
    ]
    rare: list[Reply] = ["", text("no", "content_filter"), FAILURE, "Answer: 0", "Answer: ALL_CORRECT"]
    return rare[number % len(rare)] if number < 40 else replies[number % len(replies)]


def done(folder: Path, script: Any = varied, epochs: int | None = None, **arguments: Any) -> EvalLog:
    """The log of a run in which the model replies by the last message's text."""
    answering = (lambda messages: script(messages[-1].text)) if callable(script) else script
    return run(felm(**arguments), answering, folder, epochs=epochs)


def metrics_of(log: EvalLog, scorer: str = "felm") -> dict[str, float]:
    assert log.results
    (found,) = (one for one in log.results.scores if one.name == scorer)
    return {name: metric.value for name, metric in found.metrics.items()}


def only(values: dict[str, Any], names: tuple[str, ...] = FIGURES, prefix: str = "") -> dict[str, Any]:
    return {name: values.get(prefix + name) for name in names if values.get(prefix + name) is not None}


def of(sample: EvalSample, scorer: str = "felm") -> Any:
    return (sample.scores or {})[scorer]


def command(server: OpenAIServer, *arguments: str) -> dict[str, Any]:
    common = ["--model", "m", "--base-url", server.base_url, "--retries", "0", "--json"]
    report: dict[str, Any] = json.loads(CliRunner().invoke(app, ["evaluate-felm", *arguments, *common]).stdout)
    return report


@pytest.mark.parametrize("config", ["sample", pytest.param("all", marks=pytest.mark.slow)])
def test_the_figures_are_those_of_the_command_and_of_the_metric(
    config: str, server: OpenAIServer, tmp_path: Path, request: Any, compared: Callable[[str], None]
) -> None:
    if config == "all":
        request.getfixturevalue("mirror")
    log = done(tmp_path, config=config)
    samples = in_order(log)
    report = command(server, config)

    ours, official = metrics_of(log), metrics_of(log, "felm_official")
    assert only(ours) == only(report) and only(official) == only(report["official"])
    assert only(ours, prefix="responses_") == only(report["responses"])
    for domain in DOMAINS:
        assert only(ours, ("f1", "balanced_accuracy"), f"{domain}_") == only(
            report["by_domain"][domain], ("f1", "balanced_accuracy")
        )
    # What is not scored, and why.
    unscored = [sample.id for sample in samples if not isinstance(of(sample).value, dict)]
    assert unscored == [one["index"] for one in report["unscored"]]
    totals = Counter({name: sum(of(s).value[name] for s in samples if s.id not in unscored) for name in COUNTS})
    assert dict(totals) == only(report, COUNTS)

    # The metric, on the replies as the log has them, and on the answers that were scored.
    metric = qabench.load_metric("felm_factuality")
    labels = [[segment["label"] for segment in of(one).metadata["detail"]["segments"]] for one in samples]
    replies = [of(one).metadata["detail"]["replies"][0] or None for one in samples]
    excluded = metric.compute(predictions=replies, references=labels, on_unparsed="exclude")
    assert only(excluded) == only(ours)
    assert only(metric.compute(predictions=replies, references=labels)) == only(official)
    answers = [of(one, "felm_official").answer for one in samples]
    assert only(metric.compute(predictions=answers, references=labels)) == only(official)

    # And what a report shows of the log.
    shown = {name: interval.mean for name, interval in figures(read_run(log.location)).items()}
    assert only(shown) == only(ours) and only(shown, prefix="official_") == only(official)
    assert only(shown, prefix="responses_") == only(report["responses"])
    compared(f"{len(samples)} responses, {len(unscored)} without a verdict, {len(ours) + len(official)} figures")


@pytest.mark.parametrize("method", ["raw", "cot", "link", "content"])
def test_a_method_asks_what_the_evaluator_asks(method: str, tmp_path: Path) -> None:
    asked: list[Any] = []

    def script(messages: Any) -> str:
        asked.append(tuple((message.role, message.text) for message in messages))
        return "ALL_CORRECT"

    log = run(felm("sample", method), script, tmp_path)
    evaluator = felm_evaluator(method, "m", "http://127.0.0.1:9/v1")
    rows = list(read_rows(open_path("felm", "./sample/all.jsonl"), "sample"))
    assert Counter(asked) == Counter(evaluator.requests(row, None)[0].messages for row in rows)
    assert (log.plan.config.temperature, log.plan.config.max_tokens) == (0, 100)
    assert log.eval.metadata and log.eval.metadata["setting"] == method


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


def test_without_claims_there_is_no_verdict(tmp_path: Path) -> None:
    log = done(tmp_path, lambda prompt: "none here", config="sample", claims=True, domains="wk")
    (record, *_) = read_run(log.location).records
    assert record.answer == "none here" and record.problem == "its claims: none in the reply 'none here'"
    assert only(dict(record.scores), COUNTS) == {} and record.scores["official_tn"] == 0


def test_cot_cons_takes_the_majority_of_different_samples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INSPECT_CACHE_DIR", str(tmp_path / "cache"))
    replies = ["Answer: 1", "who knows", "Answer: 1, 2"]
    numbers = count()
    for attempt in range(2):
        log = run(
            felm("sample", "cot-cons", num_cons=3, domains="math"),
            lambda messages: replies[next(numbers) % 3],
            tmp_path,
            cache=True,
            max_samples=1,
        )
        samples = in_order(log)
        for sample in samples:
            detail = of(sample).metadata["detail"]
            assert sorted(detail["replies"]) == sorted(replies)  # with a cache, too
            assert detail["segments"][0]["verdict"] is False
            assert len(detail["reasons"]) == 1
            seeds = [event.config.seed for event in sample.events if event.event == "model"]
            assert sorted(seeds) == [1, 2, 3]
        assert (log.plan.config.temperature, next(numbers)) == (0.9, 3 * len(samples) + attempt)
    about = of(samples[0]).metadata
    assert "samples:3" in about["signatures"]["felm"]


FAULTS: list[tuple[Reply, str, str | None]] = [
    ("who knows", "answered", "no verdict in the reply 'who knows'"),
    (text("who kn", "max_tokens"), "cut off", "no verdict in the reply (it was cut off) 'who kn'"),
    ("", "empty", "the reply is empty"),
    (text("no", "content_filter"), "refused", "filtered"),
    (FAILURE, "failed", "the server is down"),
    (TimeoutError("30 s"), "failed", "did not answer in time"),
]


@pytest.mark.parametrize(("reply", "status", "problem"), FAULTS)
def test_what_is_no_verdict_is_recorded_and_counts_as_the_official_script_counts_it(
    reply: Reply, status: str, problem: str, tmp_path: Path
) -> None:
    log = done(tmp_path, lambda prompt: reply, config="sample", domains="wk")
    assert log.status == "success" and only(metrics_of(log)) == {}
    found = read_run(log.location)
    for record in found.records:
        assert record.status == status and problem in (record.problem or "")
        labels = [segment["label"] for segment in record.detail["segments"]]
        assert {segment["verdict"] for segment in record.detail["segments"]} == {None}
        assert only(dict(record.scores), COUNTS, "official_") == {
            "tp": labels.count(True),
            "tn": 0,
            "fp": labels.count(False),
            "fn": 0,
        }
    assert {name.startswith("official_") for name in figures(found)} <= {True}


def test_a_retry_asks_again_only_what_failed(tmp_path: Path) -> None:
    numbers = count()
    log = done(tmp_path, lambda prompt: FAILURE if next(numbers) == 2 else "Answer: 1", config="sample")
    assert [sample.error is not None for sample in log.samples or []].count(True) == 1
    again: list[str] = []
    SCRIPTS["model"] = lambda messages: again.append(messages[-1].text) or "Answer: 1"  # type: ignore[func-returns-value]
    (retried,) = eval_retry(log.location, log_dir=str(tmp_path / "again"), display="none")
    assert len(again) == 1 and retried.status == "success"
    assert metrics_of(retried) == metrics_of(done(tmp_path / "whole", lambda prompt: "Answer: 1", config="sample"))


def test_epochs_are_summed(tmp_path: Path) -> None:
    once = done(tmp_path, config="sample")
    twice = done(tmp_path / "twice", config="sample", epochs=2)
    assert metrics_of(twice) == metrics_of(once) and metrics_of(twice, "felm_official") == metrics_of(
        once, "felm_official"
    )
    assert len(read_run(twice.location).records) == 2 * len(read_run(once.location).records)


def test_a_log_can_be_scored_again(tmp_path: Path) -> None:
    log = done(tmp_path, lambda prompt: "The segments 1 and 2 are wrong.", config="sample")
    assert only(metrics_of(log)) == {}
    vicuna = metrics_of(score_again(log, felm_scorer(reply_format="vicuna"), action="overwrite", display="none"))
    wanted = done(tmp_path / "other", lambda prompt: "Answer: 1, 2", config="sample")
    assert only(vicuna) == only(metrics_of(wanted))


def test_the_choice_of_responses(tmp_path: Path) -> None:
    assert {one.metadata["row"]["domain"] for one in felm("sample", domains="math,wk").dataset} == {"math", "wk"}
    ids = [one.id for one in felm("sample").dataset][2:4]
    assert [one.id for one in felm("sample", ids=ids).dataset] == ids
    (with_types,) = [one for one in felm("sample").dataset if len(one.metadata["groups"]["error type"]) > 1][:1]
    assert "knowledge_error" in with_types.metadata["groups"]["error type"]
    for wrong in ({"method": "magic"}, {"domains": "law"}, {"num_cons": 0}, {"reply_format": "xml"}, {"config": "dev"}):
        with pytest.raises(InputError):
            felm(**({"config": "sample"} | wrong))


def test_own_words_are_said_to_be_no_official_ones(mirror: Path, tmp_path: Path) -> None:
    own = done(tmp_path, lambda prompt: "ALL_CORRECT", config="sample", domains="wk")
    theirs = done(tmp_path, lambda prompt: "ALL_CORRECT", config="sample", domains="wk", prompt="official")
    assert "other words" in of(in_order(own)[0]).metadata["unofficial"]
    assert of(in_order(theirs)[0]).metadata["unofficial"] is None
    assert "prompt:official-" in of(in_order(theirs)[0]).metadata["signatures"]["felm"]


def test_the_signature_says_what_was_really_asked(tmp_path: Path) -> None:
    answered = run(felm("sample"), lambda messages: "ALL_CORRECT", tmp_path, max_tokens=33)
    assert "|temperature:0.0|max_tokens:33|replies:" in read_run(answered.location).signatures["felm"]
    failed = run(felm("sample"), lambda messages: RuntimeError("down"), tmp_path)
    assert "max_tokens" not in read_run(failed.location).signatures["felm_official"]
