"""Records of answers, the scores computed from them, and how intervals are shown.

A record is one answer to one question. Logs of runs and files of predictions are both read into
records.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite, nan
from typing import TYPE_CHECKING, Any

from qabench.data.rows import grouped
from qabench.evaluation.score_spec import ScoreSpec, present

if TYPE_CHECKING:
    from qabench.stats import Array, Function, Interval

PREDICTIONS = "predictions"
"""The task and the setting of an evaluation of a file."""
AGENT = "agent"
"""The setting of answers by a custom solver or function."""
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
        reference: the reference answer, for display, or "" if there is none.
        messages: the whole conversation, including the model's last reply.
        answer: the text that was scored. None for failed and refused calls and for missing answers.
        status: one of ``STATUSES``. "cut off" means answered, but stopped at the limit of tokens or
            turns. "missing" means that a file of predictions has no answer to the question.
        statuses: group of scores -> its status, where it is not the question's: "empty" or "missing" if an
            answered question has nothing that the group is computed from, such as no passages.
        problem: why there is no answer, or a problem with the answer or the input.
        scores: the numbers that the scores are computed from (``ScoreSpec.columns``), by name. Empty if
            unscored.
        groups: grouping -> the groups that the question is in, such as {"category": ("History",)}.
        detail: details of the scoring for the report, in a format defined by the benchmark.
        input_tokens: None if unknown.
        output_tokens: None if unknown.
        seconds: None if unknown.
        cost: in US dollars. None if unknown.
        replies: replies of models in this record. None if unknown.
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
    statuses: Mapping[str, str] = field(default_factory=dict)

    def status_of(self, group: str) -> str:
        """Return the status of the question for a group of scores."""
        return (
            self.statuses.get(group, self.status) if self.status in (ANSWERED, CUT_OFF) else self.status
        )


GROUPS, CURVE = "groups", "curve"


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
        title: such as "Type of error". The axis of a curve is labeled with ``axis``.
        unit: what n counts, in the plural, such as "errors".
        rows: values of all systems.
        kind: "groups" (dots with whiskers per group) or "curve" (lines with bands over ``at``).
        note: a note for readers, in one or more sentences, or "" for none.
        axis: the label of a curve's x axis, such as "k".
        replaces: the grouping that the report omits because this section shows it better, or "" for
            none.
    """

    title: str
    unit: str
    rows: Sequence[SectionRow]
    kind: str = GROUPS
    note: str = ""
    axis: str = ""
    replaces: str = ""


@dataclass(frozen=True, slots=True)
class Score:
    """The value of a score with its 95% interval over questions. ``float(score)`` is the value.

    Attributes:
        spec: what was computed.
        interval: the value and its bounds.
        n: the number of ``spec.unit`` that the score is a mean over.
        left_out: the number of records that are not in the mean.
    """

    spec: ScoreSpec
    interval: Interval
    n: int
    left_out: int

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        return f"{self.spec.name} {self.value:.4f} (95% interval {self.interval.bounds()}, {self.size})"

    def __format__(self, form: str) -> str:
        return format(self.value, form) if form else str(self)

    @property
    def value(self) -> float:
        """Return the value."""
        return self.interval.mean

    @property
    def low(self) -> float | None:
        """Return the lower bound of the interval, or None if the items do not allow one."""
        return self.interval.low

    @property
    def high(self) -> float | None:
        """Return the upper bound of the interval, or None if the items do not allow one."""
        return self.interval.high

    @property
    def size(self) -> str:
        """``n`` with its unit: "1 question", "4,426 segments"."""
        unit = self.spec.unit
        return f"{self.n:,} {unit.removesuffix('s') if self.n == 1 else unit}"


def scores_of(specs: Sequence[ScoreSpec], records: Sequence[Record]) -> dict[str, Score]:
    """Return the scores of records by name.

    Args:
        specs: the benchmark's scores. Those whose columns are in no record are left out.
        records: the epochs of one question are one unit of the interval.

    Returns:
        Name -> score, in the order of ``specs``. A score that is undefined on these
        records, such as the recall of errors without any errors, is left out.
    """
    computed = _computed(specs, records)
    if not computed:
        return {}
    from qabench.stats import interval_of_units  # imports NumPy

    scores = {}
    for score, (statistics, function) in computed:
        interval = interval_of_units(statistics, function)
        scores[score.spec.name] = replace(score, interval=replace(interval, mean=score.value))
    return scores


def values_of(specs: Sequence[ScoreSpec], records: Sequence[Record]) -> dict[str, float]:
    """Return the values of ``scores_of`` without intervals, which take most of its time."""
    return {score.spec.name: score.value for score, _ in _computed(specs, records)}


def _computed(
    specs: Sequence[ScoreSpec], records: Sequence[Record]
) -> list[tuple[Score, tuple[Array, Function]]]:
    """Return each score without its interval, and the sample that its interval is computed from."""
    columns = column_names(records)
    if not (computable := present(specs, columns)):
        return []
    import numpy as np

    from qabench.stats import Interval, mean, scores, table, units

    ids = [record.id for record in records]
    values = {
        name: np.array([record.scores.get(name, nan) for record in records], dtype=np.float64)
        for name in columns
    }
    computed = []
    for spec in computable:
        rows = np.column_stack([values[name] for name in spec.needs])
        usable = np.flatnonzero(np.isfinite(rows).all(axis=1))
        if not len(usable):
            continue
        rows = rows[usable]
        questions = [ids[place] for place in usable.tolist()]
        if spec.reducer:
            by_question = rows_by_question(spec, records)
            questions = list(by_question)
            rows = np.concatenate([reduced(spec, each) for each in by_question.values()])
        first = rows[:, 0]
        statistics = units(rows if spec.function else table(first), questions)
        samples = np.array(list(Counter(questions).values()), dtype=np.float64)
        if samples.max() > 1:
            # The questions count equally, however many samples each has, as in paired tests.
            if spec.function is None:
                statistics = table(statistics[:, 0] / samples)
                first = statistics[:, 0]
            elif (samples != samples[0]).any():
                statistics = statistics / samples[:, None]
        value = float(scores(spec.function or mean, statistics.sum(axis=0, keepdims=True))[0])
        if isfinite(value):
            n = sum(int(spec.size(*row)) for row in rows.tolist()) if spec.size else len(rows)
            if spec.unit == "questions":
                n = len(statistics)
            value = spec.mean(first.tolist()) if spec.mean else value
            sample = (statistics, spec.resampled or spec.function or mean)
            score = Score(spec, Interval(value, nan, None, None), n, len(records) - len(usable))
            computed.append((score, sample))
    return computed


def answered_ids(records: Iterable[Record]) -> set[str]:
    """Return the ids of the questions with at least one answer."""
    return {record.id for record in records if record.status in (ANSWERED, CUT_OFF)}


def column_names(records: Iterable[Record]) -> list[str]:
    """Return the names of the scores of all records, in order of appearance."""
    return list(dict.fromkeys(name for record in records for name in record.scores))


def rows_by_question(spec: ScoreSpec, records: Sequence[Record]) -> dict[str, list[list[float]]]:
    """Return the values of the score's columns by question, a row for each of its records that has them all."""
    rows = ((record.id, columns_of(spec, record)) for record in records)
    return grouped((id, row) for id, row in rows if row is not None)


def reduced(spec: ScoreSpec, rows: Sequence[Sequence[float]]) -> list[list[float]]:
    """Return the rows of a question as its reducer leaves them: one row with the question's score."""
    return [[spec.reducer([row[0] for row in rows])]] if spec.reducer else list(map(list, rows))


def columns_of(spec: ScoreSpec, record: Record) -> list[float] | None:
    """Return the values of the score's columns in a record, or None if one is missing or not finite."""
    values = [record.scores.get(name, nan) for name in spec.needs]
    return values if all(map(isfinite, values)) else None


def item_score(spec: ScoreSpec, record: Record) -> float | None:
    """Return the score of one record, or None if it has none."""
    values = columns_of(spec, record)
    if values is None:
        return None
    try:
        value = spec.item(*values) if spec.item else values[0]
    except ZeroDivisionError:  # such as a share of no claims
        return None
    return value if isfinite(value) else None


def distinct(names: Sequence[str]) -> list[str]:
    """Return the names, each on one line.

    Repeated names get a number.
    """
    unique: dict[str, None] = {}
    for raw in names:
        name = re.sub(r"[\s\x00-\x1f\x7f-\x9f]+", " ", raw).strip()
        number, candidate = 1, name
        while candidate in unique:
            number += 1
            candidate = f"{name} ({number})"
        unique[candidate] = None
    return list(unique)
