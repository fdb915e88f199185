"""Records of answers, and the scores that are computed from them.

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
    from qabench.stats.intervals import Interval
    from qabench.stats.units import Array, Function

PREDICTIONS = "predictions"
"""The name of the task and of the setting if a file of predictions was evaluated."""
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
        question: the text of the question, for display.
        reference: the reference answer, for display, or "" if there is none.
        messages: the whole conversation, including the model's last reply.
        answer: the text that was scored. None for failed and refused calls and for missing answers.
        status: one of ``STATUSES``. "cut off" means answered, but stopped at the limit of tokens or
            turns. "missing" means that a file of predictions has no answer to the question.
        statuses: group of scores -> its status, where it differs from the question's: "empty" or
            "missing" if an answered question has nothing that the group is computed from, such as
            no passages.
        problem: why there is no answer, or a problem with the answer or the input.
        scores: the numbers that the scores are computed from (``ScoreSpec.columns``), by name.
            Empty if unscored.
        groups: grouping -> the groups that the question is in, such as {"category": ("History",)}.
        detail: details of the scoring for the report, in a format defined by the benchmark.
        input_tokens: the number of tokens that the model read. None if unknown.
        output_tokens: the number of tokens that the model generated. None if unknown.
        seconds: the time that the answer took. None if unknown.
        cost: what the answer cost in US dollars. None if unknown.
        replies: the number of models' replies for this record. None if unknown.
        cached: how many of the replies came from the cache.
        cluster: what several questions have in common, such as a passage: intervals and tests treat
            a cluster as one unit. None means that the question is a unit by itself.
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
    cluster: str | None = None

    def status_of(self, group: str) -> str:
        """Return the status of the question for a group of scores."""
        if self.status not in (ANSWERED, CUT_OFF):
            return self.status
        return self.statuses.get(group, self.status)


GROUPS, CURVE = "groups", "curve"


@dataclass(frozen=True, slots=True)
class SectionRow:
    """One value of an ``ExtraSection``.

    Attributes:
        system: the label of the evaluation.
        score: the title of the score, such as "Recall of errors" or "MRR@k".
        at: the group's name, or the position on the x axis of a curve, such as the cutoff k.
        interval: the value with its 95% interval.
        n: how many of ``ExtraSection.unit``, such as errors, the value is computed from.
    """

    system: str
    score: str
    at: str | int
    interval: Interval
    n: int


@dataclass(frozen=True, slots=True)
class ExtraSection:
    """A table and a chart of a report beyond scores, groups and comparisons.

    ``Report.sections`` of a benchmark returns them. Sections without rows are omitted.

    Attributes:
        title: the heading, such as "Type of error". The axis of a curve is labeled with ``axis``.
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


@dataclass(frozen=True, slots=True, repr=False)
class Score:
    """The value of a score with its 95% interval over questions. ``float(score)`` is the value.

    Attributes:
        spec: the declaration of the score.
        interval: the value and its bounds.
        n: how many of ``spec.unit``, such as questions, the score is computed from.
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

    def __repr__(self) -> str:
        return f"Score({self})"

    def __format__(self, form: str) -> str:
        if not form:
            return str(self)
        return format(self.value, form)

    @property
    def value(self) -> float:
        """Return the value of the score."""
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
        """Return ``n`` with its unit, such as "1 question" or "4,426 segments"."""
        unit = self.spec.unit
        if self.n == 1:
            unit = unit.removesuffix("s")
        return f"{self.n:,} {unit}"


def scores_of(specs: Sequence[ScoreSpec], records: Sequence[Record] | Columns) -> dict[str, Score]:
    """Return the scores of records by name.

    Args:
        specs: the benchmark's scores. Those whose columns are in no record are left out.
        records: the epochs of one question are one unit of the interval.

    Returns:
        Name -> score, in the order of ``specs``. A score that is undefined on these
        records, such as the recall of errors if there are no errors, is left out.
    """
    computed = _computed(specs, records)
    if not computed:
        return {}
    # Imported here because this module imports NumPy, which is slow and which some commands do not
    # need.
    from qabench.stats.intervals import interval_of_units

    scores = {}
    for score, (statistics, function) in computed:
        interval = interval_of_units(statistics, function)
        scores[score.spec.name] = replace(score, interval=replace(interval, mean=score.value))
    return scores


def values_of(specs: Sequence[ScoreSpec], records: Sequence[Record]) -> dict[str, float]:
    """Return the values of ``scores_of`` without intervals, which take most of its time."""
    return {score.spec.name: score.value for score, _ in _computed(specs, records)}


@dataclass(frozen=True, slots=True)
class Columns:
    """Records as columns, from which the scores of all records and of groups are computed.

    A report has the scores of many groups, and collecting each group's numbers from its records
    would take longer than computing the scores.

    Attributes:
        ids: the question's id of each record.
        clusters: the cluster of each question that has one, by the question's id.
        values: name of a score -> its value in each record. NaN where a record has none.
    """

    ids: Sequence[str]
    clusters: Mapping[str, str]
    values: Mapping[str, Array]

    @classmethod
    def of(cls, records: Sequence[Record]) -> Columns:
        """Return the columns of records. Without any score, NumPy is not imported."""
        ids = [record.id for record in records]
        clusters = clusters_of(records)
        names = column_names(records)
        if not names:
            return cls(ids, clusters, {})
        import numpy as np

        values = {}
        for name in names:
            column = [record.scores.get(name, nan) for record in records]
            values[name] = np.array(column, dtype=np.float64)
        return cls(ids, clusters, values)

    def at(self, positions: Sequence[int]) -> Columns:
        """Return the columns of the records at these positions."""
        ids = [self.ids[position] for position in positions]
        if not self.values:
            return Columns(ids, self.clusters, {})
        import numpy as np

        chosen = np.array(positions, dtype=np.intp)
        values = {name: column[chosen] for name, column in self.values.items()}
        return Columns(ids, self.clusters, values)


def _computed(
    specs: Sequence[ScoreSpec], records: Sequence[Record] | Columns
) -> list[tuple[Score, tuple[Array, Function]]]:
    """Return each score without its interval, and the sample that its interval is computed from.

    The sample is an array with one row of statistics per question or cluster, and the function of
    their sums.
    """
    columns = records
    if not isinstance(columns, Columns):
        columns = Columns.of(columns)
    computable = present(specs, list(columns.values))
    if not computable:
        return []
    # Imported here, so that NumPy is not imported if there is nothing to compute.
    import numpy as np

    from qabench.stats.intervals import Interval
    from qabench.stats.units import mean, scores, units

    # This is asked once for all scores, because counting the records of each question takes longer
    # than a mean over them.
    are_distinct = len(set(columns.ids)) == len(columns.ids)
    computed = []
    for spec in computable:
        questions, rows = _complete_rows(spec, columns)
        if not questions:
            continue
        # Records with an undefined value are left out of the mean, and counted.
        left_out = len(columns.ids) - len(questions)
        if spec.reducer:
            by_question = grouped(zip(questions, rows.tolist(), strict=True))
            questions = list(by_question)
            rows = np.concatenate([reduced(spec, samples) for samples in by_question.values()])
        statistics = _question_statistics(spec, questions, rows, are_distinct)
        # The score is a function of the sums of all questions.
        value = float(scores(spec.function or mean, statistics.sum(axis=0, keepdims=True))[0])
        if not isfinite(value):
            continue
        n = len(rows)
        if spec.unit == "questions":
            # Samples of one question count as one question.
            n = len(statistics)
        elif spec.size:
            n = sum(int(spec.size(*row)) for row in rows.tolist())
        if spec.mean:
            # The official mean adds in another order, which changes the last digit.
            values = statistics if spec.function is None else rows
            value = spec.mean(values[:, 0].tolist())
        if columns.clusters:
            cluster_ids = [columns.clusters.get(id, id) for id in dict.fromkeys(questions)]
            # The clusters change the interval only, not the value.
            statistics = units(statistics, cluster_ids)
        sample = (statistics, spec.resampled or spec.function or mean)
        score = Score(spec, Interval(value, nan, None, None), n, left_out)
        computed.append((score, sample))
    return computed


def _question_statistics(
    spec: ScoreSpec, questions: Sequence[str], rows: Array, are_distinct: bool
) -> Array:
    """Return one row of statistics per question, as the score's function needs them.

    The questions count equally, however many samples each has, as in paired tests.

    Args:
        spec: the score.
        questions: the question of each row. The statistics are in the order in which questions
            first appear.
        rows: the values of the score's columns, one row per sample.
        are_distinct: whether it is known that each question has one row.
    """
    # Imported here, so that NumPy is not imported if there is nothing to compute.
    import numpy as np

    from qabench.stats.units import table, units

    statistics = rows
    if spec.function is None:
        statistics = table(rows[:, 0])
    if are_distinct:
        return units(statistics, None)
    samples_by_question = Counter(questions)
    if len(samples_by_question) == len(questions):
        return units(statistics, None)
    sums = units(statistics, questions)
    samples = np.array(list(samples_by_question.values()), dtype=np.float64)
    if spec.function is None:
        return table(sums[:, 0] / samples)
    if (samples != samples[0]).any():
        return sums / samples[:, None]
    # Questions with equal numbers of samples already count equally.
    return sums


def clusters_of(records: Iterable[Record]) -> dict[str, str]:
    """Return the cluster of each question that has one, by the question's id."""
    return {record.id: record.cluster for record in records if record.cluster is not None}


def column_names(records: Iterable[Record]) -> list[str]:
    """Return the names of the scores of all records, in order of appearance."""
    # A dict as an ordered set.
    names: dict[str, None] = {}
    for record in records:
        # Nearly all records have the same names, and this check is faster than adding them again.
        if not record.scores.keys() <= names.keys():
            names |= dict.fromkeys(record.scores)
    return list(names)


def rows_by_question(spec: ScoreSpec, columns: Columns) -> dict[str, list[list[float]]]:
    """Return the values of the score's columns by question, one row per complete record."""
    if not columns.values.keys() >= set(spec.needs):
        return {}
    questions, rows = _complete_rows(spec, columns)
    return grouped(zip(questions, rows.tolist(), strict=True))


def _complete_rows(spec: ScoreSpec, columns: Columns) -> tuple[Sequence[str], Array]:
    """Return the question and the values of each record that has all of the score's columns."""
    import numpy as np

    rows = np.column_stack([columns.values[name] for name in spec.needs])
    # A missing value is NaN, which would make every sum with it NaN.
    complete = np.flatnonzero(np.isfinite(rows).all(axis=1))
    questions = columns.ids
    if len(complete) < len(rows):
        questions = [columns.ids[position] for position in complete.tolist()]
    return questions, rows[complete]


def reduced(spec: ScoreSpec, rows: Sequence[Sequence[float]]) -> list[list[float]]:
    """Return the rows of a question. A score with a reducer reduces them to one row."""
    if spec.reducer is None:
        return [list(row) for row in rows]
    return [[spec.reducer([row[0] for row in rows])]]


def columns_of(spec: ScoreSpec, record: Record) -> list[float] | None:
    """Return the values of the score's columns, or None if one is missing or not finite."""
    values = []
    for name in spec.needs:
        value = record.scores.get(name, nan)
        if not isfinite(value):
            return None
        values.append(value)
    return values


def item_score(spec: ScoreSpec, record: Record) -> float | None:
    """Return the score of one record, or None if it has none."""
    if spec.item is None and not spec.columns:
        # Nearly all scores are a column of their own. Pages ask for each score of each record.
        value = record.scores.get(spec.name, nan)
        return value if isfinite(value) else None
    values = columns_of(spec, record)
    if values is None:
        return None
    if spec.item is None:
        # ``columns_of`` returns finite values only.
        return values[0]
    try:
        value = spec.item(*values)
    except ZeroDivisionError:
        # The score is a share of claims, for example, and the record has no claims.
        return None
    if not isfinite(value):
        return None
    return value


def distinct(names: Sequence[str]) -> list[str]:
    """Return the names, each on one line. Repeated names get a number."""
    unique: dict[str, None] = {}
    for raw in names:
        # Characters that break a line or a terminal would break tables.
        name = re.sub(r"[\s\x00-\x1f\x7f-\x9f]+", " ", raw).strip()
        number, candidate = 1, name
        while candidate in unique:
            number += 1
            candidate = f"{name} ({number})"
        unique[candidate] = None
    return list(unique)
