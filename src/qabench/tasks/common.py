"""Shared by all tasks: metadata, selection of samples, answers, and calls of the model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessageAssistant
from inspect_ai.solver import TaskState

from qabench.errors import InputError, QabenchError
from qabench.llm.client import reason_of
from qabench.tasks.rejections import rejections

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
    return _named.get({}).get(argument) == value


def task_metadata(benchmark: str, config: str, setting: str, data: str, available: int | None = None) -> dict[str, Any]:
    """A task's metadata; see ``qabench.tasks``. ``available`` is the number of questions of the config."""
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
    """One question as an Inspect sample; ``metadata`` has further entries of the task, such as the JSON reference."""
    shown = {"question": question, "reference": reference, "groups": {name: list(of) for name, of in groups.items()}}
    return Sample(id=id, input=prompt, target=reference, metadata=shown | metadata)


def chosen(
    samples: Iterable[Sample], ids: Sequence[str] | str | None, category: Sequence[str] | str | None
) -> list[Sample]:
    """The samples with these ids, of these categories (or domains, or fields); all if neither is given.

    Raises:
        InputError: an unknown id or category.
    """
    every = list(samples)
    wanted_ids, wanted = texts(ids), texts(category)
    groups = {str(one.id): {g for of in (one.metadata or {})["groups"].values() for g in of} for one in every}
    known = set().union(*groups.values()) if groups else set()
    if missing := [id for id in wanted_ids if id not in groups]:
        raise InputError(f"no question has the id {missing[0]!r}; an example of an id is {next(iter(groups), '')!r}")
    if missing := [name for name in wanted if name not in known]:
        raise InputError(f"no question is in {missing[0]!r}; allowed: {', '.join(sorted(known))}")
    kept = [one for one in every if not wanted_ids or str(one.id) in wanted_ids]
    return [one for one in kept if not wanted or groups[str(one.id)] & set(wanted)]


def texts(value: Sequence[str] | str | int | None) -> list[str]:
    """An argument with several values; Inspect's command line passes a string with commas, or a number."""
    if value is None:
        return []
    parts = str(value).split(",") if isinstance(value, str | int) else map(str, value)
    return [part.strip() for part in parts if part.strip()]


def answer_of(state: TaskState) -> str | None:
    """The model's answer: the text of its last reply, if the conversation ends with it.

    None if there is no answer: the sample failed before or between replies, the model refused, the reply was filtered,
    or the last reply calls a tool. An empty reply is an answer, the string "".
    """
    last = state.messages[-1] if state.messages else None
    if not isinstance(last, ChatMessageAssistant) or last.tool_calls or not state.output.choices:
        return None
    return None if state.output.stop_reason == "content_filter" else state.output.completion


def note_problem(state: TaskState, problem: str) -> None:
    """Adds a problem to the sample's metadata["problems"]; the sample does not fail."""
    state.metadata.setdefault("problems", []).append(problem)


@contextmanager
def timeouts_fail() -> Iterator[None]:
    """Makes failed calls fail the sample, with a one-line reason.

    Inspect treats a ``TimeoutError`` as a time limit that the task handles: it would neither log nor retry it. Its
    retries end with a ``RetryError`` without the reason, which makes equal failures look different.
    """
    try:
        yield
    except TimeoutError as error:
        raise QabenchError(f"the model did not reply in time: {error or 'no details'}") from error
    except Exception as error:
        if isinstance(error, QabenchError) or not _of_a_call(error):
            raise
        found = reason_of(error)
        if found.permanent:
            rejections.note(found.text)
        raise QabenchError(found.text) from error


def _of_a_call(error: Exception) -> bool:
    """Whether an error comes from a client library and not from the task."""
    return hasattr(error, "last_attempt") or hasattr(error, "status_code") or isinstance(error, OSError)
