"""Estimates the calls and the tokens of a run."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from qabench.benchmarks import Benchmark, Setting
from qabench.benchmarks.plan import TaskPlan, planning_for
from qabench.llm.client import Plan
from qabench.runs.counting import NamedModel, NeedsHarness, count_calls
from qabench.runs.task_options import check_task_options


@dataclass(frozen=True, slots=True)
class RunEstimate(Plan):
    """The calls that a run would make.

    ``warning`` is a sentence about questions whose calls are not all counted, or None.
    """

    warning: str | None = None


def plan_run(
    benchmark: Benchmark,
    setting: Setting,
    model: str,
    task_args: Mapping[str, Any],
    **options: Any,
) -> RunEstimate:
    """Estimate the calls and tokens of a run, with a model that only counts its prompts.

    In settings with tools, further calls are made that are not in the plan. ``options`` select
    questions and limit replies, as in a run: limit, epochs, max_tokens. The plan has no cost.

    Raises:
        InputError: as for a run.
    """
    check_task_options(benchmark, setting, task_args)
    arguments = {**setting.arguments, **task_args}
    named = NamedModel(model)
    counts = None
    # Most tasks are plans, whose prompts are counted without importing Inspect, which takes seconds.
    with suppress(NeedsHarness):
        with planning_for(named):
            planned = benchmark.tasks()[setting.task](**arguments)
        if isinstance(planned, TaskPlan):
            # A benchmark from outside may return an Inspect task, which has no plan.
            counts = count_calls(planned, benchmark.planned_reply, named, **options)
    if counts is None:
        from qabench.runs.inspect_estimate import counted_by_inspect

        counts = counted_by_inspect(benchmark, setting, model, arguments, **options)
    # The 0 is the number of replies in the cache, which is not looked up.
    tokens = counts.prompt_tokens, counts.completion_tokens
    return RunEstimate(counts.calls, 0, *tokens, cost=None, warning=counts.warning())
