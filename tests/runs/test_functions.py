"""``qabench.run`` with Python functions, and ``qabench run --solver``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from openai_server import OpenAIServer
from typer.testing import CliRunner, Result

import qabench
from qabench.answers import loads, text_of
from qabench.cli import app
from qabench.errors import InputError, QabenchError
from qabench.evaluation import ANSWERED, FAILED, MISSING
from qabench.runs.log import read_run

SOLVERS = """
from inspect_ai.agent import agent
from inspect_ai.model import ModelOutput
from inspect_ai.solver import solver

def answered(state):
    state.output = ModelOutput.from_content("fixed", "Jupiter 1.326")
    state.messages.append(state.output.message)
    return state

@solver
def fixed():
    async def solve(state, generate):
        return answered(state)
    return solve

@agent
def fixed_agent():
    async def execute(state):
        "Answer every question."
        return answered(state)
    return execute

@solver
def fails_once():
    async def solve(state, generate):
        from pathlib import Path
        if state.sample_id == SECOND and not Path("failed").exists():
            Path("failed").touch()
            raise RuntimeError("no luck")
        return answered(state)
    return solve
"""


@pytest.mark.parametrize("name", qabench.benchmark_names())
def test_a_function_answers_every_benchmark(name: str) -> None:
    rows: list[Any] = []

    def answer(question: str, row: Any) -> str:
        rows.append((question, row))
        return "Answer: 1"

    evaluation = qabench.run(name, answer, config="sample", limit=3)
    assert [record.status for record in evaluation.records] == [ANSWERED] * 3
    assert all(question in row.values() for question, row in rows)
    assert evaluation.available == len(qabench.benchmark(name).questions("sample"))
    for score in evaluation.scores().values():
        assert any(text.startswith("solver: answer-") for text in evaluation.deviations(score))


def test_the_scores_are_those_of_a_file_with_the_answers(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"

    async def answer(question: str, row: Any) -> dict[str, str]:
        return {"answer": text_of(loads(row["answer"]))}

    evaluation = qabench.run("fanoutqa", answer, config="sample", output=path)
    scores = {name: score.interval for name, score in evaluation.scores().items()}
    of_file = qabench.evaluate_predictions("fanoutqa", "sample", path)
    assert scores == {name: score.interval for name, score in of_file.scores().items()}
    assert scores["acc.loose"].mean == 1


def test_failures_are_recorded_and_asked_again(tmp_path: Path) -> None:
    """A failed question has no answer in the file, where null would be the answer "None"."""
    path, asked = tmp_path / "answers.jsonl", []

    def answer(question: str, row: Any) -> str | None:
        asked.append(row["id"])
        if len(asked) == 2:
            raise RuntimeError("no luck")
        return None if len(asked) == 3 else "42"

    options: dict[str, Any] = {"config": "sample", "output": path, "concurrency": 1}
    first = qabench.run("fanoutqa", answer, limit=4, **options)
    assert [record.status for record in first.records] == [ANSWERED, FAILED, FAILED, ANSWERED]
    assert first.records[1].problem == "RuntimeError: no luck"
    assert first.records[2].problem == "InputError: the function returned None; expected a string or a dict"
    of_file = qabench.evaluate_predictions("fanoutqa", "sample", path)
    assert [record.status for record in of_file.records[:4]] == [ANSWERED, MISSING, MISSING, ANSWERED]
    with path.open("a", encoding="utf-8") as file:
        file.write('{"id": "cut')  # killed while writing
    second = qabench.run("fanoutqa", answer, limit=5, **options)
    assert asked[4:] == [second.records[i].id for i in (1, 2, 4)]
    assert [record.status for record in second.records] == [ANSWERED] * 5
    assert len(path.read_text().splitlines()) == 5 and all(map(json.loads, path.read_text().splitlines()))
    with pytest.raises(InputError, match="another benchmark or config"):
        qabench.run("felm", answer, **options)
    with pytest.raises(QabenchError, match="no question was answered: ZeroDivisionError"):
        qabench.run("fanoutqa", lambda question, row: str(1 / 0), config="sample", limit=1)


def test_a_model_in_python(tmp_path: Path) -> None:
    done: list[tuple[int, int]] = []
    options: dict[str, Any] = {"setting": "raw", "config": "sample", "limit": 2, "log_dir": tmp_path}
    with OpenAIServer() as server:
        evaluation = qabench.run(
            "felm", model="m", base_url=server.base_url, progress=lambda *counts: done.append(counts), **options
        )
    assert [record.status for record in evaluation.records] == [ANSWERED] * 2 and done[-1] == (2, 2)
    assert evaluation.setting == "raw" and Path(evaluation.path).parent == tmp_path
    with pytest.raises(InputError, match="log_dir"):
        qabench.run("felm", model="m", output=tmp_path / "answers.jsonl")


@pytest.fixture
def solvers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    second = list(qabench.benchmark("felm").questions("sample"))[1]
    Path("solvers.py").write_text(SOLVERS.replace("SECOND", repr(second)))
    return tmp_path / "solvers.py"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["run", *arguments])


@pytest.mark.parametrize("name", ["fixed", "fixed_agent"])
def test_a_solver_answers(name: str, solvers: Path) -> None:
    result = run("fanoutqa", "--config", "sample", "--limit", "2", "--solver", f"solvers.py@{name}")
    assert f"not official (acc, rouge): solver: {name}-" in result.output
    (log,) = Path("logs").glob("*.eval")
    evaluation = read_run(log)
    assert evaluation.setting == "agent" and evaluation.model.startswith(f"{name}-")
    assert [record.answer for record in evaluation.records] == ["Jupiter 1.326"] * 2


def test_a_run_with_a_solver_is_resumed_with_the_same_file(solvers: Path) -> None:
    option = ["--solver", "solvers.py@fails_once"]
    run("felm", "--config", "sample", "--limit", "2", *option)
    (log,) = Path("logs").glob("*.eval")
    assert [record.status for record in read_run(log).records] == [ANSWERED, FAILED]
    assert "--solver solvers.py@fails_once" in str(run("--resume", str(log)).exception)
    source = solvers.read_text()
    solvers.write_text(source + "\n")
    assert isinstance(run("--resume", str(log), *option).exception, InputError)
    solvers.write_text(source)
    assert run("--resume", str(log), *option).exit_code == 0
    newest = max(Path("logs").glob("*.eval"), key=lambda path: path.stat().st_mtime)
    assert [record.status for record in read_run(newest).records] == [ANSWERED] * 2
