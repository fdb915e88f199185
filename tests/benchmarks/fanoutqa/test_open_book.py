"""Models that search without end, and solvers of users whose pages are scored."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from benchmark_tasks import fanoutqa_closed_book, fanoutqa_open_book
from inspect_ai.solver import Generate, Solver, TaskState, solver
from scripted_model import call, run
from scripted_wiki import ScriptedWiki, isolate
from typer.testing import CliRunner

from qabench.benchmarks.fanoutqa.open_book import REPEATED_SEARCH, WITHOUT_QUESTION
from qabench.cli import app
from qabench.errors import InputError
from qabench.runs.log import read_run
from qabench.runs.sources import read_evaluations

PLANETS = "463f5c17d453c3d3"


@pytest.fixture
def wiki(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedWiki]:
    isolate(tmp_path, monkeypatch)
    monkeypatch.delenv("QABENCH_MIRROR", raising=False)
    with ScriptedWiki() as server:
        monkeypatch.setenv("QABENCH_WIKIPEDIA_API", server.api)
        server.pages = {"Jupiter": (38930, 1, "<p>Jupiter is a planet with many moons.</p>" * 50)}
        yield server


def test_a_model_that_keeps_searching_is_stopped(wiki: ScriptedWiki, tmp_path: Path) -> None:
    calls = 0

    def script(messages: Any) -> Any:
        nonlocal calls
        calls += 1
        return call("search", query="Jupiter")

    task = fanoutqa_open_book(
        "sample", ids=PLANETS, search="tools", context_length=1200, lemmatizer="simplemma", max_turns=3
    )
    run_of_log = read_run(run(task, script, tmp_path).location)
    assert calls == 3
    (record,) = run_of_log.records
    assert record.answer is None or record.answer == ""
    for problem in ("stopped after 3 turns with a search", REPEATED_SEARCH, WITHOUT_QUESTION):
        assert problem in str(record.problem)
    for score in run_of_log.scores().values():
        if score.spec.official:
            sentence = "turns: cut after 3, where the authors let the model search until it answers"
            assert sentence in run_of_log.deviations(score)


def test_a_model_that_answers_has_no_field_of_turns(wiki: ScriptedWiki, tmp_path: Path) -> None:
    replies = iter([call("search", query="Jupiter"), "Jupiter"])
    task = fanoutqa_open_book("sample", ids=PLANETS, search="tools", context_length=9000, lemmatizer="simplemma")
    run_of_log = read_run(run(task, lambda _: next(replies), tmp_path).location)
    assert all("|turns:" not in line for line in run_of_log.signatures.values())
    assert run_of_log.records[0].problem is None
    with pytest.raises(InputError, match="max_turns is 0"):
        fanoutqa_open_book("sample", max_turns=0, context_length=9000)


@solver
def agent(searches: Any) -> Solver:
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        if searches is not None:
            state.metadata["searches"] = searches
        return await generate(state)

    return solve


@pytest.mark.parametrize(
    ("searches", "recall"),
    [
        ([{"title": "Jupiter"}], 0.2),
        ([{"title": "Jupiter", "fragments": 0}], 0.0),
        ([], 0.0),
        (None, None),
    ],
)
def test_pages_of_a_solver_are_scored(searches: Any, recall: float | None, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.delenv("QABENCH_MIRROR", raising=False)
    task = fanoutqa_closed_book("sample", ids=PLANETS, scores="acc,evidence", lemmatizer="simplemma")
    log = run(task, lambda _: "Jupiter", tmp_path, solver=agent(searches))
    (evaluation,) = read_evaluations([log.location], scores=("acc", "evidence")).evaluations
    scores = evaluation.scores()
    assert "acc.loose" in scores
    absent = [text for text in evaluation.problems if text.startswith("no scores of evidence")]
    if recall is None:
        assert "evidence.recall" not in scores and len(absent) == 1
    else:
        assert scores["evidence.recall"].value == recall and not absent


@pytest.mark.parametrize("asked", ["in the run", "in the command"])
def test_scores_that_are_not_there_are_named(asked: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QABENCH_OFFLINE", "1")
    in_run, options = "acc,evidence", []
    if asked == "in the command":
        in_run, options = "acc", ["--scores", "acc,evidence"]
    task = fanoutqa_closed_book("sample", ids=PLANETS, scores=in_run, lemmatizer="simplemma")
    log, other = (run(task, lambda _: "Jupiter", tmp_path / name).location for name in ("a", "b"))
    commands = [["score", log], ["compare", log, f"again={other}"]]
    if options:
        commands.append(["leaderboard", "fanoutqa", log])
        commands.append(["report", log, "-o", str(tmp_path / "report")])
    for command in commands:
        result = CliRunner(env={"COLUMNS": "300"}).invoke(app, [*command, *options])
        assert result.exit_code == 0 and "no scores of evidence" in result.output, result.output
