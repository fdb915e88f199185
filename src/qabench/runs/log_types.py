"""An Inspect AI log as typed objects, which both readers of logs return.

``plain`` reads the JSON itself, and ``inspect_logs`` reads with Inspect's classes. Other code does
not need to know which of them read a log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from qabench.data.rows import Json
from qabench.evaluation.records import Message

# Inspect's name for no model: a solver may answer by itself, or call models of its own.
NO_MODEL = "none/none"


@dataclass(frozen=True, slots=True)
class Step:
    """A solver of a run, and the arguments that it was called with."""

    solver: str
    params: Json


@dataclass(frozen=True, slots=True)
class Log:
    """The header of a log: what was run, and how it ended.

    Attributes:
        is_plain: whether the header was read without Inspect, so that the samples may be, too.
        status: "success", "error", "cancelled" or "started" (killed, or still running).
        invalidated: whether the log, or a sample of it, was invalidated with Inspect's command.
        task: the name of the task.
        task_id: equal for a run and the runs that resumed it.
        created: an ISO date and time.
        model: Inspect's name of the model, or ``NO_MODEL``.
        server: the address of the model's server, or "" for the provider's own.
        task_args: all arguments of the task, with defaults.
        model_args: arguments of the model's provider.
        metadata: what the task says about itself.
        listed_ids: the ids of the questions, including repeated ones.
        epochs: how often each question is asked, as the header claims. Nothing of this size may be
            allocated.
        spec: all fields that are set in the run's specification.
        run_options: the options of the run that are set, such as limits.
        model_generation: the generation options that the model was created with.
        generation: the run's generation options, which override the model's.
        solver: the solver that replaced the task's own, or None.
        solver_args: its arguments.
        steps: the solvers.
        finish: the solver that runs last, or None.
        results: the aggregate scores in the log's header, or {}.
    """

    is_plain: bool
    status: str
    invalidated: bool
    task: str
    task_id: str
    created: str
    model: str
    server: str
    task_args: Json
    model_args: Json
    metadata: Json
    listed_ids: Sequence[str]
    epochs: int
    spec: Json
    run_options: Json
    model_generation: Json
    generation: Json
    solver: str | None
    solver_args: object
    steps: Sequence[Step]
    finish: str | None
    results: Json

    @property
    def positions(self) -> dict[str, int]:
        """Return the position of each question by its id."""
        distinct = dict.fromkeys(self.listed_ids)
        return {id: position for position, id in enumerate(distinct)}


@dataclass(frozen=True, slots=True)
class SampleError:
    """Why a sample failed, as Inspect writes it."""

    message: str
    traceback: str


@dataclass(frozen=True, slots=True)
class ModelTokens:
    """The tokens of one model in a sample, and their cost in US dollars if it is known."""

    prompt_tokens: int
    output_tokens: int
    cost: float | None


@dataclass(frozen=True, slots=True)
class SampleScore:
    """What one scorer says about a sample. ``reason`` says why its value is missing or abnormal."""

    value: object
    answer: str | None = None
    explanation: str | None = None
    reason: str | None = None
    metadata: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sample:
    """A question of a run, the conversation about it, and its scores.

    Attributes:
        id: the question's id.
        epoch: counts repetitions of the question, from 1.
        question: the text of what was asked.
        target: the text of the reference.
        messages: the conversation.
        has_output: whether the model returned anything.
        completion: the text of the last reply.
        model_in_reply: the name that the last reply has for its model, or "" if it has none.
        stop_reason: why the last reply ended.
        output_error: the error that came instead of a reply.
        is_too_long: whether the reply is a server's error about a prompt that is too long.
        error: why the sample failed.
        limit: the limit that stopped the sample, such as "limit of token: 500".
        usages: one for each model.
        seconds: Inspect's working time: without waiting for shared resources and for retries.
        metadata: what the task says about the question.
        scores: the scores by the name of their scorer.
        is_invalidated: whether somebody invalidated the sample with Inspect's command.
        invalidation_reason: the reason that was given for that.
    """

    id: str | int
    epoch: int
    question: str
    target: str
    messages: Sequence[Message]
    has_output: bool
    completion: str
    model_in_reply: str
    stop_reason: str | None
    output_error: str | None
    is_too_long: bool
    error: SampleError | None
    limit: str | None
    usages: Sequence[ModelTokens]
    seconds: float | None
    metadata: Json
    scores: Mapping[str, SampleScore]
    is_invalidated: bool
    invalidation_reason: str | None


def limit_text(kind: str, value: float) -> str:
    """Describe the limit that stopped a sample."""
    return f"limit of {kind}: {value:g}"


def shown_message(role: str, text: str, calls: Sequence[tuple[str, object]]) -> Message:
    """Return a message as reports show it: its text, and the tool calls below it."""
    texts = [text, *(f"{function}({arguments})" for function, arguments in calls)]
    return Message(role, "\n".join(filter(None, texts)))


def in_order(log: Log, samples: Sequence[Sample]) -> list[Sample]:
    """Return the samples in the order of the header's questions. Of repeated ones, keep the last."""
    positions = log.positions
    by_key: dict[tuple[int, int], Sample] = {}
    for sample in samples:
        position = positions.get(str(sample.id))
        if position is not None and 1 <= sample.epoch <= log.epochs:
            by_key[position, sample.epoch] = sample
    return [by_key[key] for key in sorted(by_key)]
