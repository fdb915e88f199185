"""What all tasks share: metadata, the choice of samples, and the reference and groups that a report shows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessageAssistant
from inspect_ai.solver import Generate, Solver, TaskState, solver

from qabench.errors import InputError, QabenchError
from qabench.llm.reasons import reason_of
from qabench.tasks.rejections import rejections


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
    """One question as Inspect has it; ``metadata`` is the task's own, such as the reference as JSON text."""
    shown = {"question": question, "reference": reference, "groups": {name: list(of) for name, of in groups.items()}}
    return Sample(id=id, input=prompt, target=reference, metadata=shown | metadata)


def chosen(
    samples: Iterable[Sample], ids: Sequence[str] | str | None, category: Sequence[str] | str | None
) -> list[Sample]:
    """The samples with these ids, of these categories (or domains, or fields); all where neither is given.

    Raises:
        InputError: an id or a category that there is not.
    """
    every = list(samples)
    wanted_ids, wanted = texts(ids), texts(category)
    groups = {str(one.id): {g for of in (one.metadata or {})["groups"].values() for g in of} for one in every}
    known = set().union(*groups.values()) if groups else set()
    if missing := [id for id in wanted_ids if id not in groups]:
        raise InputError(f"no question has the id {missing[0]!r}; ids are such as {next(iter(groups), '')!r}")
    if missing := [name for name in wanted if name not in known]:
        raise InputError(f"no question is in {missing[0]!r}; allowed: {', '.join(sorted(known))}")
    kept = [one for one in every if not wanted_ids or str(one.id) in wanted_ids]
    return [one for one in kept if not wanted or groups[str(one.id)] & set(wanted)]


def texts(value: Sequence[str] | str | int | None) -> list[str]:
    """An argument that names several things; on Inspect's command line it comes as one text with commas or a number."""
    if value is None:
        return []
    parts = str(value).split(",") if isinstance(value, str | int) else map(str, value)
    return [part.strip() for part in parts if part.strip()]


def answer_of(state: TaskState) -> str | None:
    """What the model answered: the text of its last reply, where that is the conversation's last word.

    None where there is no answer: the sample failed before or between two replies, the reply was refused or filtered,
    or it still asks for a tool. An empty reply is an answer, the text "".
    """
    last = state.messages[-1] if state.messages else None
    if not isinstance(last, ChatMessageAssistant) or last.tool_calls or not state.output.choices:
        return None
    return None if state.output.stop_reason == "content_filter" else state.output.completion


def note_problem(state: TaskState, problem: str) -> None:
    """Adds to the sample's metadata["problems"] what went wrong without making the sample fail."""
    state.metadata.setdefault("problems", []).append(problem)


@contextmanager
def timeouts_fail() -> Iterator[None]:
    """Makes failed calls fail the sample, with a reason in one line.

    Inspect takes a ``TimeoutError`` for a time limit that the task handles: it would log none, and never ask again.
    Its retries end in a ``RetryError`` without the reason, which makes equal failures look different.
    """
    try:
        yield
    except TimeoutError as error:
        raise QabenchError(f"the model did not answer in time: {error or 'no details'}") from error
    except Exception as error:
        if isinstance(error, QabenchError) or not _of_a_call(error):
            raise
        found = reason_of(error)
        if found.permanent:
            rejections.note(found.text)
        raise QabenchError(found.text) from error


def _of_a_call(error: Exception) -> bool:
    """Whether an error comes from a client library, and is not the task's own."""
    return hasattr(error, "last_attempt") or hasattr(error, "status_code") or isinstance(error, OSError)


@solver
def ask() -> Solver:
    """Asks the model once: Inspect's own ``generate()`` under ``timeouts_fail``."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        with timeouts_fail():
            return await generate(state)

    return solve
