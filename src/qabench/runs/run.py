"""A model's run over a benchmark, whatever wrote it: one record an answer, and what holds for all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

ANSWERED, CUT_OFF, EMPTY, REFUSED, FAILED = STATUSES = ("answered", "cut off", "empty", "refused", "failed")


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation: role is "system", "user", "assistant" or "tool"."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Record:
    """One question, what the model made of it, and how that scored.

    Attributes:
        id: the benchmark's id of the question. epoch: from 1.
        question: its text, for a person. reference: likewise the reference answer, "" where there is none.
        messages: the whole conversation, the model's last reply included.
        answer: what was scored; None where there is none: always where it failed or was refused.
        status: one of ``STATUSES``; "cut off": answered, but stopped at the limit of tokens or turns.
        problem: why there is no answer, or what is wrong with it or with what the model was given.
        scores: figure -> value in the figure's own unit; empty where the record could not be scored.
        groups: grouping -> the groups that the question is in, such as {"category": ("History",)}.
        detail: what the benchmark's scorer found, see ``qabench.tasks`` for each benchmark's shape.
        input_tokens, output_tokens, seconds: what it cost; None where unknown.
    """

    id: str
    epoch: int
    question: str
    reference: str
    messages: Sequence[Message]
    answer: str | None
    status: str
    problem: str | None = None
    scores: Mapping[str, float] = field(default_factory=dict)
    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)
    detail: Mapping[str, Any] = field(default_factory=dict)
    input_tokens: int | None = None
    output_tokens: int | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """A model's run over the questions of one config.

    Attributes:
        path: the log that it was read from. task: the Inspect task's name.
        benchmark, config, setting: such as "fanoutqa", "dev", "closed-book".
        model: as Inspect names it, such as "openai/gpt-4o". created: an ISO date and time.
        status: "success", "error", "cancelled" or "started" (killed, or still running).
        expected: how many records a finished run has.
        records: in the order of the benchmark's questions, by epoch within a question.
        signatures: figure's family -> everything that its scores depend on, in one line.
        unofficial: why scores are no official ones, None where they are.
        unscored: why nothing is scored, None where something is.
        arguments: the task's arguments and the options of generation.
    """

    path: str
    task: str
    benchmark: str
    config: str
    setting: str
    model: str
    created: str
    status: str
    expected: int
    records: Sequence[Record]
    signatures: Mapping[str, str] = field(default_factory=dict)
    unofficial: str | None = None
    unscored: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def counts(self) -> dict[str, int]:
        """How many records of each status, and how many are missing."""
        statuses = [record.status for record in self.records]
        return {status: statuses.count(status) for status in STATUSES} | {"missing": self.expected - len(statuses)}
