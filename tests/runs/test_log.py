"""A log's answers are scored again when it is read: edited scores are not used, and those of models
are marked.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from benchmark_tasks import expertqa, fanoutqa_closed_book, fastbook_rag, felm
from inspect_ai.log import EvalLog, read_eval_log
from openai_server import OpenAIServer
from scripted_model import edited, run
from typer.testing import CliRunner

from qabench.cli import app
from qabench.hub.results import read_reports
from qabench.loading_scripts import FOLDER
from qabench.runs.log import read_run

TASKS: dict[str, tuple[Any, str, float]] = {  # a task, and another value for one of its scores
    "fanoutqa": (lambda: fanoutqa_closed_book("sample", lemmatizer="simplemma"), "acc.loose", 1.0),
    "felm": (lambda: felm("sample", "cot-cons", num_cons=3, prompt="qabench"), "error_tp", 5),
    "fastbook": (lambda: fastbook_rag("sample", k=3), "recall@3", 1.0),
    "expertqa": (lambda: expertqa("sample", prompt="qabench"), "rougeL", 1.0),
}
# Each kind of test is quick for one benchmark.
QUICK_ONCE = [pytest.param(name, marks=[pytest.mark.quick] if name == "fastbook" else []) for name in TASKS]


def reply(messages: Any) -> Any:
    """Return replies of all kinds; the same prompt always gets the same one."""
    number = len(messages[-1].text)
    kinds = [
        "Segment 1:\nClaim 1. It is so.\nAnswer: 1",
        "ALL_CORRECT, in 1998.",
        ConnectionError("no"),
        "Mars. Answer: 2",
    ]
    return kinds[number % len(kinds)]


class Logs(dict[str, Path]):
    """A log of each task, which is run when it is first read."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder

    def __missing__(self, name: str) -> Path:
        task, *_ = TASKS[name]
        self[name] = Path(run(task(), reply, self.folder, epochs=2).location)
        return self[name]


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return Logs(tmp_path_factory.mktemp("logs"))


def with_scores(name: str, value: float) -> Callable[[EvalLog], None]:
    """Return a change of a log in which every stored score of this name gets another value."""

    def edit(content: EvalLog) -> None:
        for sample in content.samples or []:
            for score in (sample.scores or {}).values():
                if isinstance(score.value, dict) and name in score.value:
                    score.value[name] = value

    return edit


@pytest.mark.parametrize("name", QUICK_ONCE)
def test_an_unedited_log_has_the_scores_of_its_answers(name: str, logs: dict[str, Path]) -> None:
    evaluation = read_run(logs[name])
    stored = {(str(sample.id), sample.epoch): sample.scores for sample in read_eval_log(str(logs[name])).samples or []}
    for record in evaluation.records:
        for score in (stored[record.id, record.epoch] or {}).values():
            numbers = {key: value for key, value in score.value.items() if value == value}  # type: ignore[union-attr]
            assert numbers.items() <= record.scores.items()
    assert evaluation.problems == [] and not evaluation.recorded and evaluation.scores()


@pytest.mark.parametrize("name", QUICK_ONCE)
def test_edited_scores_are_not_used(name: str, logs: dict[str, Path], tmp_path: Path) -> None:
    _, column, value = TASKS[name]
    path = edited(logs[name], tmp_path, with_scores(column, value))
    honest, forged = read_run(logs[name]), read_run(path)
    intervals = [{key: score.interval for key, score in each.scores().items()} for each in (forged, honest)]
    assert intervals[0] == intervals[1] and forged.signatures == honest.signatures
    (problem,) = forged.problems
    assert problem.startswith("answers whose scores in the log differ from those computed now: ")
    (report,) = read_reports(path)
    assert report["scores"] == {key: score.interval.mean for key, score in honest.scores().items()}
    printed = CliRunner().invoke(app, ["score", honest.benchmark, str(path)], env={"COLUMNS": "300"}).stdout
    assert "answers whose scores in the log differ" in printed


@pytest.mark.parametrize("name", QUICK_ONCE)
def test_an_edited_number_of_questions_is_not_used(name: str, logs: dict[str, Path], tmp_path: Path) -> None:
    def edit(content: EvalLog) -> None:
        content.samples, metadata = (content.samples or [])[:2], content.eval.metadata or {}
        content.eval.metadata = metadata | {"available": 1}

    honest, forged = read_run(logs[name]), read_run(edited(logs[name], tmp_path, edit))
    score = next(iter(forged.scores().values()))
    total = len({record.id for record in honest.records})
    assert any(f"of {total} questions were asked" in sentence for sentence in forged.deviations(score))
    assert not any("questions were asked" in sentence for sentence in honest.deviations(score))


@pytest.mark.quick
def test_verdicts_of_a_judge_come_from_the_cache_or_are_marked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QABENCH_CACHE", str(tmp_path / "cache"))
    with OpenAIServer() as server:
        server.reply = lambda body: "It agrees. A"
        judge = {"model": "judge", "base_url": server.base_url, "api_key": "none", "prompt": "qabench"}
        task = fanoutqa_closed_book("sample", scores="acc,judge", lemmatizer="simplemma", judge=judge)
        log = Path(run(task, lambda messages: "Mars", tmp_path).location)
        calls = len(server.calls)
        honest = read_run(log).scores()["gpt"].interval.mean
        path = edited(log, tmp_path / "forged", with_scores("gpt", 0.5))
        cached = read_run(path)
        assert cached.scores()["gpt"].interval.mean == honest != 0.5 and not cached.recorded and cached.problems
        monkeypatch.setenv("QABENCH_CACHE", str(tmp_path / "another"))
        uncached = read_run(path)
        assert len(server.calls) == calls > 0
    assert uncached.scores()["gpt"].interval.mean == 0.5 and list(uncached.recorded) == ["judge"]
    assert "as recorded in the log" in uncached.deviations(uncached.scores()["gpt"])
    assert not any("recorded" in said for said in uncached.deviations(uncached.scores()["acc.loose"]))


@pytest.mark.quick
def test_without_the_questions_scores_are_marked(tmp_path: Path) -> None:
    questions = json.loads((FOLDER / "fanoutqa/sample/questions.json").read_text(encoding="utf-8"))
    file = tmp_path / "own.json"
    file.write_text(json.dumps(questions[:3]), encoding="utf-8")
    task = fanoutqa_closed_book(questions=str(file), lemmatizer="simplemma")
    path = Path(run(task, lambda messages: "Mars", tmp_path).location)
    score = read_run(path).scores()["acc.loose"]
    assert any("as recorded in the log" in said for said in read_run(path).deviations(score))
    assert not read_run(path, file).recorded
