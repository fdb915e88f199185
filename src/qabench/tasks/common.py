"""Shared by all tasks: metadata, samples, answers, scores, and work in threads."""

from __future__ import annotations

import contextlib
import contextvars
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from math import isnan, nan
from typing import Any, TypeVar

import anyio
from anyio.lowlevel import current_token
from inspect_ai._util.entrypoints import clear_entry_points_state
from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessageAssistant
from inspect_ai.scorer import SampleScore
from inspect_ai.solver import TaskState

from qabench.data.rows import Json
from qabench.evaluation import ANSWERED, Record
from qabench.evaluation.metric import Metric as BenchmarkMetric
from qabench.evaluation.records import values_of
from qabench.io.workers import run_job
from qabench.llm.client import too_long

Out = TypeVar("Out")

_imported: ContextVar[bool] = ContextVar("qabench_tasks_are_imported", default=False)
_named: ContextVar[Mapping[str, Any]] = ContextVar("qabench_named_arguments")


@contextmanager
def naming_arguments(arguments: Mapping[str, Any]) -> Iterator[None]:
    """Record the task arguments that the user gives in this call, for ``named_in_this_call``."""
    token = _named.set(arguments)
    try:
        yield
    finally:
        _named.reset(token)


def named_in_this_call(argument: str, value: Any) -> bool:
    """Tell whether the user gave this argument of a task in this call, so that it is not from a log."""
    return bool(_named.get({}).get(argument) == value)


@contextmanager
def own_tasks_only() -> Iterator[None]:
    """Keep Inspect's entry point from importing tasks: the caller has imported its benchmark's."""
    token = _imported.set(True)
    try:
        yield
    finally:
        _imported.reset(token)
        sys.modules.pop("qabench.inspect_tasks", None)
        # a later `inspect_ai.eval("qabench/...")` in this process finds all tasks
        clear_entry_points_state()


def tasks_are_imported() -> bool:
    """Tell whether ``own_tasks_only`` is active."""
    return _imported.get()


def task_metadata(
    benchmark: str, config: str, setting: str, data: str, available: int | None = None
) -> Json:
    """Return a task's metadata (see ``qabench.tasks``).

    ``available`` is the number of questions of the config.
    """
    about = {"benchmark": benchmark, "config": config, "setting": setting, "data": data}
    return about | ({} if available is None else {"available": available})


def sample(
    id: str,
    prompt: str | list[Any],
    question: str,
    reference: str,
    groups: Mapping[str, Sequence[str]],
    **metadata: Any,
) -> Sample:
    """Return a question as an Inspect sample.

    ``question`` and ``reference`` are for readers of the log.
    """
    lists = {grouping: list(names) for grouping, names in groups.items()}
    shown = {"question": question, "reference": reference, "groups": lists}
    return Sample(id=id, input=prompt, target=reference, metadata=shown | metadata)


def texts(value: Sequence[str] | str | int | None) -> list[str]:
    """Split an argument with several values.

    Inspect's command line passes a string with commas, or a number.
    """
    if value is None:
        return []
    parts = str(value).split(",") if isinstance(value, str | int) else map(str, value)
    return [part.strip() for part in parts if part.strip()]


def answer_of(state: TaskState) -> str | None:
    """Return the model's answer: the text of its last reply, if the conversation ends with it.

    None if there is no answer: the sample failed before or between replies, the prompt was too
    long, the model refused, the reply was filtered, or the last reply calls a tool. An empty reply
    is an answer, the string "".
    """
    last = state.messages[-1] if state.messages else None
    if not isinstance(last, ChatMessageAssistant) or last.tool_calls or not state.output.choices:
        return None
    if too_long(state.output):
        return None
    return None if state.output.stop_reason == "content_filter" else state.output.completion


def note_problem(state: TaskState, problem: str) -> None:
    """Add a problem to the sample's metadata["problems"].

    The sample does not fail.
    """
    state.metadata.setdefault("problems", []).append(problem)


def by_question(scores: Sequence[SampleScore]) -> list[SampleScore]:
    """Return the scores of all epochs in the order of a log's records: question by question, each by epoch.

    Inspect passes one epoch after the other. The last digit of a mean depends on the order.
    """
    positions = {score.sample_id: position for position, score in reversed(list(enumerate(scores)))}
    return sorted(scores, key=lambda score: positions[score.sample_id])


def measured(scores: Sequence[SampleScore], values: Mapping[str, float]) -> dict[str, float]:
    """Return the values of a metric.

    NaN for each if no sample has an answer, so that nothing was measured.
    """
    answered = any((score.score.answer or "").strip() for score in scores)
    return dict(values) if answered else dict.fromkeys(values, nan)


def metric_values(
    scores: Sequence[SampleScore], metrics: Sequence[BenchmarkMetric]
) -> dict[str, float]:
    """Return a benchmark's metrics over all answers and epochs as ``qabench score`` computes them, by name."""
    records = []
    for number, each in enumerate(by_question(scores)):
        value = each.score.value
        columns = {
            name: float(column)
            for name, column in (value.items() if isinstance(value, dict) else ())
            if column is not None and not isnan(float(column))
        }
        records.append(
            Record(str(each.sample_id), number, "", "", (), None, ANSWERED, scores=columns)
        )
    return measured(scores, values_of(metrics, records))


async def in_daemon_thread(function: Callable[..., Out], *arguments: Any) -> Out:
    """Await a blocking function in a daemon thread, so that an interrupted run does not wait for it.

    It is ``anyio.to_thread.run_sync(..., abandon_on_cancel=True)``, except that the process can end
    before the thread.
    """
    future: Future[Out] = Future()
    done, token, context = anyio.Event(), current_token(), contextvars.copy_context()

    def work() -> None:
        run_job(future, lambda: context.run(function, *arguments))
        with contextlib.suppress(RuntimeError):  # the event loop is closed: the run was interrupted
            anyio.from_thread.run_sync(done.set, token=token)

    threading.Thread(target=work, name="qabench-request", daemon=True).start()
    await done.wait()
    return future.result()
