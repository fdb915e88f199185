"""Planned runs are counted without Inspect AI, and as Inspect counts them."""

import subprocess
import sys
from typing import Any

import pytest

from qabench.benchmarks import benchmark, benchmark_names
from qabench.benchmarks.plan import TaskPlan
from qabench.runs import estimate
from qabench.runs.counting import Counts, NamedModel, NeedsHarness, count_calls
from qabench.runs.estimate import plan_run
from qabench.runs.inspect_estimate import counted_by_inspect

pytestmark = pytest.mark.quick
CASES: list[tuple[str, str | None, dict[str, Any], dict[str, Any]]] = [
    ("fanoutqa", "closed-book", {}, {"max_tokens": 50, "limit": 3}),
    ("expertqa", "closed", {}, {"epochs": 2}),
    ("felm", "cot-cons", {}, {"limit": (1, 4), "epochs": 3}),
    ("felm", "raw", {"claims": True}, {"max_tokens": 50}),
    ("fastbook", "rag", {}, {}),
]


@pytest.mark.parametrize(("name", "setting_name", "task_args", "options"), CASES)
def test_the_counts_are_those_of_inspect(
    name: str, setting_name: str, task_args: dict[str, Any], options: dict[str, Any]
) -> None:
    setting = benchmark(name).setting(setting_name)
    arguments = {**setting.arguments, "config": "sample", **task_args}
    planned = benchmark(name).tasks()[setting.task](**arguments)
    assert isinstance(planned, TaskPlan)
    counts = count_calls(planned, benchmark(name).planned_reply, NamedModel("m"), **options)
    assert counts.calls and counts == counted_by_inspect(benchmark(name), setting, "m", arguments, **options)


def test_a_setting_that_needs_the_harness_is_counted_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def needs_harness(*_: Any, **__: Any) -> Any:
        raise NeedsHarness

    felm, arguments = benchmark("felm"), {"config": "sample"}
    expected = plan_run(felm, felm.setting(None), "m", arguments, limit=3)
    monkeypatch.setattr(estimate, "count_calls", needs_harness)
    assert plan_run(felm, felm.setting(None), "m", arguments, limit=3) == expected


@pytest.mark.parametrize("words", [("--dry-run", "--model", "m", "--config", "sample"), ("--list-options",)])
def test_a_plan_imports_no_harness(words: tuple[str, ...]) -> None:
    """Inspect takes seconds to import, as spaCy does, and runs each sample as a task of its own."""
    code = f"""if True:
        import sys
        from qabench.cli import app
        for name in {list(benchmark_names())}:
            try:
                app(["run", name, *{list(words)}])
            except SystemExit as end:
                assert not end.code
        print([name for name in ("inspect_ai", "spacy", "torch") if name in sys.modules])
    """
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]", done.stdout + done.stderr


@pytest.mark.parametrize("by_inspect", [False, True])
def test_a_failing_question_does_not_end_a_plan(by_inspect: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also with an exception that is not of qabench, as code from outside may raise."""
    felm, arguments = benchmark("felm"), {"config": "sample"}
    expected = plan_run(felm, felm.setting(None), "m", arguments)
    add, asked = Counts.add, []

    def failing_once(*arguments: Any) -> int:
        asked.append(1)
        if len(asked) == 2:
            raise KeyError("wide")
        return add(*arguments)

    monkeypatch.setattr(Counts, "add", failing_once)
    if by_inspect:
        monkeypatch.setattr(estimate, "count_calls", lambda *_, **__: (_ for _ in ()).throw(NeedsHarness))
    plan = plan_run(felm, felm.setting(None), "m", arguments)
    assert expected.warning is None and plan.calls == expected.calls - 1
    reason = "questions that cannot be planned, whose calls are not counted: 1 (KeyError('wide'))"
    assert plan.warning == reason
