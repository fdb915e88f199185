"""Stored answers of logs of other tasks, scored by a benchmark's scorer without a model."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from inspect_ai import Task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import match
from scripted_model import evaluate, scripted
from typer.testing import CliRunner

import qabench
from qabench.cli import app
from qabench.errors import InputError

FANOUTQA = qabench.benchmark("fanoutqa")


def of_command(*words: str) -> Any:
    result = CliRunner().invoke(app, [*words, "--json"])
    assert result.exit_code == 0, result.output
    (evaluation,) = json.loads(result.stdout)["evaluations"]
    return evaluation


def answers() -> dict[str, str]:
    return {each.id: f"It is {each.reference}." for each in FANOUTQA.load("sample").rows[:4]}


def expected() -> dict[str, float]:
    rows = [{"id": id, "answer": answer} for id, answer in answers().items()]
    evaluation = qabench.evaluate_predictions("fanoutqa", "sample", rows)
    return {name: score.value for name, score in evaluation.scores().items()}


@pytest.mark.parametrize("has_own_ids", [True, False])
def test_an_inspect_log_is_scored_by_a_benchmark(tmp_path: Path, has_own_ids: bool) -> None:
    samples = []
    for question in FANOUTQA.load("sample").rows[:4]:
        id = question.id if has_own_ids else None
        samples.append(Sample(question.text, target="x", id=id))
    texts = {each.text: answers()[each.id] for each in FANOUTQA.load("sample").rows[:4]}
    model = scripted(lambda messages: texts[messages[-1].text])
    (log,) = evaluate(Task(samples, scorer=match(), name="mine"), model, log_dir=str(tmp_path), display="none")
    scripted(lambda messages: pytest.fail("a model was called"))
    path = log.location.removeprefix("file://")
    document = of_command("score", "--benchmark", "fanoutqa", path, "--config", "sample")
    assert document["benchmark"] == "fanoutqa" and document["scores"] == pytest.approx(expected())
    assert document["model"] == "scripted/model"
    (note,) = (note for note in document["notes"] if "scored again without a model" in note)
    assert ("4 of 4 matched by the text" in note) is not has_own_ids
    # The scores of the task itself are still there without --benchmark.
    assert "match" in str(of_command("score", path)["scores"])


def test_answers_are_scored_again_on_the_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entered: list[str | None] = []

    @contextmanager
    def on_ray(ray: bool, address: str | None) -> Iterator[None]:
        entered.append(address)
        yield
        entered.clear()

    def scored(*arguments: object, **options: object) -> list[Any]:
        assert entered == ["10.0.0.1:6379"]
        raise InputError("on the cluster")

    monkeypatch.setattr("qabench.cli.score.on_ray", on_ray)
    monkeypatch.setattr("qabench.runs.score_again.scored_again", scored)
    words = ["score", "--benchmark", "fanoutqa", "x.eval", "--ray-address", "10.0.0.1:6379"]
    result = CliRunner().invoke(app, words)
    assert "on the cluster" in result.output + str(result.exception)


def test_answers_to_other_questions_are_counted(tmp_path: Path) -> None:
    texts = [each.text for each in FANOUTQA.load("sample").rows[:2]] + ["Who are you?"]
    samples = [Sample(text, target="x") for text in texts]
    model = scripted(lambda messages: "an answer")
    (log,) = evaluate(Task(samples, scorer=match(), name="mine"), model, log_dir=str(tmp_path), display="none")
    path = log.location.removeprefix("file://")
    document = of_command("score", "--benchmark", "fanoutqa", path, "--config", "sample")
    assert "answers that match no question of FanOutQA: 1 (3)" in document["problems"]
    words = ["score", "--benchmark", "fanoutqa", path, "--config", "sample", "--strict"]
    assert CliRunner().invoke(app, words).exit_code == 2


def lm_eval_file(path: Path) -> Path:
    rows = []
    for number, question in enumerate(FANOUTQA.load("sample").rows[:4]):
        reply = answers()[question.id]
        row = {"doc_id": number, "doc": {"question": question.text}, "target": "x", "filtered_resps": [reply]}
        rows.append(row | {"resps": [[reply]], "filter": "none", "metrics": ["acc"], "acc": 0.0, "arguments": []})
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def test_samples_of_lm_eval_are_scored_by_a_benchmark(tmp_path: Path) -> None:
    path = lm_eval_file(tmp_path / "samples_mine_2026-01-01T00-00-00.jsonl")
    document = of_command("score", str(path), "--benchmark", "fanoutqa", "--config", "sample", "--scores", "acc")
    assert document["scores"]["acc.loose"] == pytest.approx(expected()["acc.loose"])
    assert set(document["scores"]) == {"acc.loose", "acc.strict"}


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("--benchmark", "felm"), "no answer matches a question of FELM"),
        (("--benchmark", "nope"), "unknown benchmark 'nope'"),
        (("--benchmark", "fanoutqa", "--scores", "nope"), "has no score 'nope'"),
    ],
)
def test_what_cannot_be_scored_is_named(tmp_path: Path, words: tuple[str, ...], error: str) -> None:
    path = lm_eval_file(tmp_path / "samples_mine_2026-01-01T00-00-00.jsonl")
    config = ("--config", "sample")
    result = CliRunner().invoke(app, ["score", str(path), *words, *config])
    assert error in str(result.exception)


def test_predictions_are_no_log(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps({"id": "1", "answer": "x"}))
    words = ["score", "--benchmark", "fanoutqa", str(tmp_path / "a.jsonl"), "--config", "sample"]
    assert "is not a log of another task" in str(CliRunner().invoke(app, words).exception)


def test_a_folder_says_to_name_its_logs(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["score", "--benchmark", "fanoutqa", str(tmp_path)])
    assert isinstance(result.exception, InputError)
    assert str(result.exception) == f"{tmp_path} is a folder; name its logs of other tasks one by one"
