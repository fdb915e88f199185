"""One answer to one question, with its scores. Run logs and files of predictions are both read into records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from qabench.stats import Interval

STATUSES = ("answered", "cut off", "empty", "refused", "failed", "missing")
ANSWERED, CUT_OFF, EMPTY, REFUSED, FAILED, MISSING = STATUSES


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation: role is "system", "user", "assistant" or "tool"."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Record:
    """One question, the system's answer, and its scores.

    Attributes:
        id: the benchmark's id of the question.
        epoch: counts repetitions of the question, from 1.
        question: its text, for display.
        reference: the reference answer, for display; "" if there is none.
        messages: the whole conversation, including the model's last reply.
        answer: the text that was scored; None for failed and refused calls and for missing answers.
        status: one of ``STATUSES``. "cut off" means answered, but stopped at the limit of tokens or turns. "missing"
            means that a file of predictions has no answer to the question.
        problem: why there is no answer, or a problem with the answer or the input.
        scores: the numbers that metrics are computed from (``Metric.columns``), by name; empty if unscored.
        groups: grouping -> the groups that the question is in, such as {"category": ("History",)}.
        detail: details of the scoring for the report, in a format defined by the benchmark.
        input_tokens: None if unknown.
        output_tokens: None if unknown.
        seconds: None if unknown.
        cost: in US dollars; None if unknown.
        replies: replies of models in this record; None if unknown.
        cached: how many of them came from the cache.
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
    cost: float | None = None
    replies: int | None = None
    cached: int = 0


GROUPS, CURVE = KINDS = ("groups", "curve")


@dataclass(frozen=True, slots=True)
class SectionRow:
    """One value of a section.

    Attributes:
        system: the label of the evaluation.
        score: the title of the score, such as "Recall of errors" or "MRR@k".
        at: the group's name, or the position on the x axis of a curve, such as the cutoff k.
        interval: the value with its 95% interval.
        n: the number of ``ExtraSection.unit`` that the value is computed from.
    """

    system: str
    score: str
    at: str | int
    interval: Interval
    n: int


@dataclass(frozen=True, slots=True)
class ExtraSection:
    """A table and a chart of a report beyond scores, groups and comparisons.

    ``Benchmark.report_sections`` returns them. Sections without rows are omitted.

    Attributes:
        title: such as "Type of error"; the axis of a curve is labeled with ``axis``.
        unit: what n counts, in the plural, such as "errors".
        rows: values of all systems.
        kind: "groups" (dots with whiskers per group) or "curve" (lines with bands over ``at``).
        note: a note for readers, in one or more sentences; "" for none.
        axis: the label of a curve's x axis, such as "k".
        replaces: the grouping that the report omits because this section shows it better; "" for none.
    """

    title: str
    unit: str
    rows: Sequence[SectionRow]
    kind: str = GROUPS
    note: str = ""
    axis: str = ""
    replaces: str = ""
