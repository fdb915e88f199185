"""Plans of benchmarks as tasks of Inspect AI, with their protocols as solvers."""

from pathlib import Path

import pytest
from inspect_ai import Task, task
from inspect_ai.solver import generate
from scripted_model import in_order, run

from qabench.adapters.inspect_ai.tasks import inspect_tasks
from qabench.benchmarks import Benchmark, benchmark
from qabench.benchmarks.plan import TaskPlan
from qabench.cli.new import new
from qabench.runs.log import read_run

GUIDE = Path(__file__).parents[2] / "docs/guides/add-a-benchmark.md"
# What the guide says in words below its example.
DECLARED = """
from qabench.benchmarks.plan import ProtocolStep, TaskPlan

Rivers.tasks = tasks
Rivers.settings = (Setting("think-first", "rivers", "Two calls.", solver=("qabench/think_first",)),)
Rivers.official = {"match": {"case": Field(("ignored",)), "protocol": Field(("think-first",))}}
"""


@pytest.fixture
def rivers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Benchmark:
    """The benchmark of ``qabench new`` with the protocol of the guide."""
    new("rivers", tmp_path)
    monkeypatch.setenv("QABENCH_PATH", str(tmp_path))
    guide = GUIDE.read_text(encoding="utf-8")
    example = guide.partition("qabench.benchmarks.conversation`):\n\n```text\n")[2].partition("```")[0]
    with (tmp_path / "rivers/__init__.py").open("a") as file:
        file.write(f"\n\n{example.replace('strategyqa', 'rivers')}{DECLARED}")
    return benchmark("rivers")


def test_the_protocol_of_the_guide(rivers: Benchmark, tmp_path: Path) -> None:
    def script(messages: list[object]) -> str:
        text = messages[-1].text  # type: ignore[attr-defined]
        return "Paris has the Seine." if text.startswith("Think about") else text.partition("Your thoughts: ")[2]

    log = run(inspect_tasks(rivers)["rivers"](), script, tmp_path)
    assert log.eval.task == "qabench/rivers"
    assert [step.solver for step in log.plan.steps] == ["qabench/think_first"]
    (first, *_) = in_order(log)
    assert [message.role for message in first.messages] == ["user", "assistant"] * 2
    evaluation = read_run(log.location)
    assert "|protocol:think-first|" in evaluation.signatures["match"]
    assert all("Paris has the Seine" in str(record.answer) for record in evaluation.records)
    assert 0 < evaluation["match"].value < 1


def test_an_own_solver_or_task_of_inspect(rivers: Benchmark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    questions = rivers.load(None)
    plan = TaskPlan(questions, questions.rows, rivers.asking(), "own", [generate()])

    @task(name="own_task")
    def own_task() -> Task:
        return Task(solver=generate())

    monkeypatch.setattr(type(rivers), "tasks", lambda self: {"own": lambda: plan, "own_task": own_task})
    inspect_tasks.cache_clear()
    tasks = inspect_tasks(rivers)
    inspect_tasks.cache_clear()
    assert tasks["own_task"] is own_task
    log = run(tasks["own"](), lambda messages: "the Seine", tmp_path)
    assert [step.solver for step in log.plan.steps] == ["generate"] and log.eval.scorers[0].name == "rivers"
