"""Inspect AI tasks, built from the benchmarks' plans."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from inspect_ai import Task, task
from inspect_ai._util.registry import is_registry_object
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessage, GenerateConfig
from inspect_ai.solver import Generate, Solver, TaskState, solver

from qabench.adapters.inspect_ai.conversation import PREDICTED, InspectConversation
from qabench.adapters.inspect_ai.facts import ASKED_WITH
from qabench.adapters.inspect_ai.language_model import model_of_run
from qabench.adapters.inspect_ai.replies import chat
from qabench.adapters.inspect_ai.scoring import inspect_scorer
from qabench.benchmarks import Benchmark
from qabench.benchmarks.conversation import CarryOut
from qabench.benchmarks.plan import ProtocolStep, TaskPlan, planned_model, planning_for
from qabench.evaluation.scoring import Messages, Question
from qabench.evaluation.signature import field_value


@functools.cache
def inspect_tasks(benchmark: Benchmark) -> Mapping[str, Callable[..., Task]]:
    """Register a benchmark's tasks and its scorer, and return the tasks by name."""
    inspect_scorer(benchmark)
    return {name: _registered(benchmark, name, plan) for name, plan in benchmark.tasks().items()}


def _registered(benchmark: Benchmark, name: str, plan: Callable[..., Any]) -> Callable[..., Task]:
    if is_registry_object(plan):
        # The plan of a benchmark from outside may already be an Inspect task.
        return plan

    @functools.wraps(plan)
    def create(*arguments: Any, **named: Any) -> Task:
        with planning_for(model_of_run() or planned_model()):
            planned = plan(*arguments, **named)
        if isinstance(planned, Task):
            return planned
        return task_of(benchmark, planned)

    # Inspect names a task qabench/NAME after the package of the module in which it is defined.
    create.__module__ = __name__
    registered: Callable[..., Task] = task(name=name)(create)
    return registered


def task_of(benchmark: Benchmark, plan: TaskPlan) -> Task:
    """Return the task of a plan."""
    questions, asking = plan.questions, plan.asking
    # A resumed run must ask in the same way, so this is recorded, even if each sample signs it.
    asked_with = {}
    for name, value in {**questions.fields, **asking.fields(), **plan.conditions}.items():
        if value is not None:
            asked_with[name] = field_value(value)
    metadata: dict[str, Any] = {
        "benchmark": benchmark.name,
        "config": questions.config,
        "setting": plan.setting,
        "data": questions.data,
        "available": len({question.id for question in questions.rows}),
        ASKED_WITH: asked_with,
        **plan.metadata,
    }
    scorer = None
    if plan.unscored:
        metadata["unscored"] = plan.unscored
    else:
        signed = dict(questions.fields)
        if plan.prompted:
            # If not all samples have the same prompt, the protocol signs how each one was asked.
            signed |= asking.fields()
        scorer = inspect_scorer(benchmark)(signed=signed, groups=plan.groups, **asking.scoring)
    samples = [_sample(question, plan) for question in plan.selected]
    return Task(
        dataset=MemoryDataset(samples, name=f"qabench/{benchmark.name}-{questions.config}"),
        solver=[_solver(step) for step in plan.steps],
        scorer=scorer,
        config=GenerateConfig(**asking.parameters),
        metadata=metadata,
        # A failed question is unanswered: the others continue, and a retry asks it again.
        fail_on_error=False,
        score_on_error=True,
    )


def _sample(question: Question, plan: TaskPlan) -> Sample:
    groups = {grouping: list(names) for grouping, names in question.groups.items()}
    metadata = {
        "question": question.text,
        "reference": question.reference,
        "groups": groups,
        "row": dict(question.row),
    }
    if plan.predicted:
        metadata[PREDICTED] = dict(plan.predicted[question.id])
    first: str | list[ChatMessage] = question.text
    if plan.prompted:
        first = _input(plan.asking.messages(question.row))
    return Sample(id=question.id, input=first, target=question.reference, metadata=metadata)


def _input(messages: Messages) -> str | list[ChatMessage]:
    converted = chat(messages)
    if len(converted) == 1:
        return converted[0].text
    return converted


def _solver(step: Any) -> Solver:
    """Return a step as a solver. A benchmark from outside may have Inspect solvers as steps."""
    if isinstance(step, ProtocolStep):
        return _solver_of(step.protocol)(**step.arguments)
    solver_of_inspect: Solver = step
    return solver_of_inspect


@functools.cache
def _solver_of(protocol: Callable[..., CarryOut]) -> Callable[..., Solver]:
    """Register a protocol as a solver under the protocol's name."""

    @functools.wraps(protocol)
    def create(*arguments: Any, **named: Any) -> Solver:
        carry_out = protocol(*arguments, **named)

        async def solve(state: TaskState, generate: Generate) -> TaskState:
            await carry_out(InspectConversation(state))
            return state

        return solve

    create.__module__ = __name__
    registered: Callable[..., Solver] = solver(name=protocol.__name__)(create)
    return registered
