"""The plan of a run: the questions, how the model is asked, and what is scored.

The functions of ``Benchmark.tasks`` return such plans. A harness builds a task from a plan (see
``qabench.adapters.inspect_ai.tasks``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from qabench.benchmarks.conversation import CarryOut, LanguageModel, ask_once
from qabench.errors import InputError, unknown_name
from qabench.evaluation.scoring import Asking, Question, Questions

Names = Sequence[str] | str | None
"""Several names: a list, or a string with commas."""

# These are context variables, so that concurrent calls in threads or tasks do not see each other's
# values.
_arguments: ContextVar[Mapping[str, Any]] = ContextVar("qabench_arguments_of_this_call")
_model: ContextVar[LanguageModel | None] = ContextVar("qabench_planned_model", default=None)


def ask() -> CarryOut:
    """Ask the model once."""
    return ask_once


@dataclass(frozen=True)
class ProtocolStep:
    """One step between a question and its answer.

    Attributes:
        protocol: a function that returns the protocol for these arguments. Logs contain its name.
        arguments: the arguments, which logs contain.
    """

    protocol: Callable[..., CarryOut] = ask
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class TaskPlan:
    """The plan of one setting of a benchmark.

    Attributes:
        questions: all questions of the config.
        selected: the questions that are asked. See ``select``.
        asking: how the model is asked.
        setting: the name of the setting in the log.
        steps: the steps for each question, in order. By default, the model is asked once with the
            messages of ``asking``. A harness also accepts its own solvers as steps.
        groups: the groups of scores. None for the benchmark's default groups.
        predicted: question id -> fields of the prediction that do not depend on the model, such as
            retrieved passages.
        prompted: whether a conversation begins with the messages of ``asking``. If so, the fields
            of ``asking`` are signed even if the user replaces the steps. Otherwise, a conversation
            begins with the question.
        conditions: the signature fields of the steps that are known before the first question, such
            as the version of a retriever.
        metadata: additional metadata of the log.
        unscored: why the answers are not scored, or "" if they are.
    """

    questions: Questions
    selected: Sequence[Question]
    asking: Asking
    setting: str
    steps: Sequence[Any] = (ProtocolStep(),)
    groups: Sequence[str] | None = None
    predicted: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    prompted: bool = True
    conditions: Mapping[str, object] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    unscored: str = ""


def each_asked_once(
    setting: str,
    task: str,
    load: Callable[[str | None, Path | None], Questions],
    asking: Callable[[], Asking],
    selected_groups: Callable[[Names], Sequence[str] | None],
) -> Callable[..., TaskPlan]:
    """Return the function that plans a setting in which each question is asked once.

    Args:
        setting: the name of the setting.
        task: the name of the returned function.
        load: ``Benchmark.load``.
        asking: a function that returns how the model is asked.
        selected_groups: ``Benchmark.selected_groups``.
    """

    def plan(
        config: str | None = None,
        questions: str | None = None,
        ids: Names = None,
        groups: Names = None,
        scores: Names = None,
    ) -> TaskPlan:
        """Ask each question once.

        Args:
            config: the config. By default, the dataset's default config.
            questions: a file of questions in the dataset's format, instead of a config.
            ids: only these questions.
            groups: only the questions in these groups.
            scores: the scores, or groups of scores, to compute.
        """
        file = Path(questions) if questions else None
        loaded = load(config, file)
        selected = select(loaded, ids, groups)
        computed = selected_groups(scores or None)
        return TaskPlan(loaded, selected, asking(), setting, groups=computed)

    plan.__name__ = plan.__qualname__ = task
    return plan


def select(questions: Questions, ids: Names = None, groups: Names = None) -> list[Question]:
    """Return the questions with these ids and in these groups. None and "" select all.

    Raises:
        InputError: an id or a group that no question has. The message names it.
    """
    by_id = {question.id: question for question in questions.rows}
    selected_ids = split_texts(ids) or list(by_id)
    for id in selected_ids:
        if id not in by_id:
            example = next(iter(by_id), "")
            raise InputError(f"no question has the id {id!r}; an example of an id is {example!r}")
    groups_by_id = {id: _all_groups(question) for id, question in by_id.items()}
    allowed = sorted(set[str]().union(*groups_by_id.values()))
    selected_groups = set(split_texts(groups))
    for group in sorted(selected_groups):
        if group not in allowed:
            raise unknown_name("no question is in", group, allowed)
    selected = []
    for id, question in by_id.items():
        in_group = not selected_groups or selected_groups & groups_by_id[id]
        if id in selected_ids and in_group:
            selected.append(question)
    return selected


def _all_groups(question: Question) -> set[str]:
    """Return the groups of a question in all groupings."""
    return set[str]().union(*question.groups.values())


def split_texts(value: Sequence[str] | str | int | None) -> list[str]:
    """Split an argument with several values: a list, or a string with commas from a command line."""
    if value is None:
        return []
    if isinstance(value, str | int):
        # Inspect's command line turns "7" into a number.
        texts = str(value).split(",")
    else:
        texts = list(map(str, value))
    stripped = [text.strip() for text in texts]
    return [text for text in stripped if text]


@contextmanager
def naming_arguments(arguments: Mapping[str, Any]) -> Iterator[None]:
    """Record the task arguments that the user gives in this call, for ``named_in_this_call``."""
    token = _arguments.set(arguments)
    try:
        yield
    finally:
        _arguments.reset(token)


def named_in_this_call(argument: str, value: Any) -> bool:
    """Tell whether this argument comes from the user in this call, not from a log."""
    return bool(_arguments.get({}).get(argument) == value)


@contextmanager
def planning_for(model: LanguageModel | None) -> Iterator[None]:
    """Let ``planned_model`` return this model while the functions of ``Benchmark.tasks`` run."""
    token = _model.set(model)
    try:
        yield
    finally:
        _model.reset(token)


def planned_model() -> LanguageModel | None:
    """Return the model that the plan is for, or None if it is not known yet."""
    return _model.get()
