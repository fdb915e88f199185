"""The result of one system on one config of a benchmark: its records, and the scores computed from them.

A record is one answer to one question. Logs of runs and files of predictions are both read into
records.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite, nan
from typing import TYPE_CHECKING, Any

from qabench.data.rows import Json
from qabench.errors import InputError
from qabench.evaluation.metric import Metric, Names, present
from qabench.evaluation.signature import Declaration, asked_part, deviations, signature_name
from qabench.evaluation.tables import (
    as_dict,
    deviations_by_sentence,
    plot_scores,
    score_table,
    undefined_note,
    undefined_sentences,
    unscored,
)
from qabench.io.tables import Displayed, Table

if TYPE_CHECKING:
    from qabench.stats import Array, Function, Interval

PREDICTIONS = "predictions"
"""The task and the setting of an evaluation of a file."""
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
        problem: why there is no answer, or a problem with the answer or the input.
        scores: the numbers that metrics are computed from (``Metric.columns``), by name. Empty if
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
    """The value of a metric with its 95% interval over questions. ``float(score)`` is the value.

    Attributes:
        metric: what was computed.
        interval: the value and its bounds.
        n: the number of ``metric.unit`` that the score is a mean over.
        left_out: the number of records that are not in the mean.
    """

    metric: Metric
    interval: Interval
    n: int
    left_out: int

    def __float__(self) -> float:
        return self.value

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
        unit = self.metric.unit
        return f"{self.n:,} {unit.removesuffix('s') if self.n == 1 else unit}"


def scores_of(metrics: Sequence[Metric], records: Sequence[Record]) -> dict[str, Score]:
    """Return the scores of records by metric name.

    Args:
        metrics: the benchmark's metrics. Those whose columns are in no record are left out.
        records: epochs of one question are resampled together.

    Returns:
        Metric name -> score, in the order of ``metrics``. A metric that is undefined on these
        records, such as the recall of errors without any errors, is left out.
    """
    computed = _computed(metrics, records)
    if not computed:
        return {}
    from qabench.stats import bootstrap_all  # imports NumPy

    intervals = bootstrap_all([each.sample for each in computed])
    return {
        each.metric.name: Score(
            each.metric, replace(interval, mean=each.value), each.n, len(records) - each.records
        )
        for each, interval in zip(computed, intervals, strict=True)
    }


def sample_of(metric: Metric, records: Sequence[Record]) -> tuple[Array, Function]:
    """Return the statistics of the questions and the function of their sums from which an interval is computed."""
    return _computed([metric], records)[0].sample


def values_of(metrics: Sequence[Metric], records: Sequence[Record]) -> dict[str, float]:
    """Return the values of ``scores_of`` without intervals, which take most of its time."""
    return {each.metric.name: each.value for each in _computed(metrics, records)}


@dataclass(frozen=True, slots=True)
class _Computed:
    """The value of a metric, n, the number of records in it, and the sample from which its interval is drawn."""

    metric: Metric
    value: float
    n: int
    records: int
    sample: tuple[Array, Function]


def _computed(metrics: Sequence[Metric], records: Sequence[Record]) -> list[_Computed]:
    columns = list(dict.fromkeys(name for record in records for name in record.scores))
    if not (computable := present(metrics, columns)):
        return []
    import numpy as np

    from qabench.stats import mean, scores, table, units

    ids = [record.id for record in records]
    values = {
        name: np.array([record.scores.get(name, nan) for record in records], dtype=np.float64)
        for name in columns
    }
    computed = []
    for metric in computable:
        rows = np.column_stack([values[name] for name in metric.needs])
        usable = np.flatnonzero(np.isfinite(rows).all(axis=1))
        if not len(usable):
            continue
        rows = rows[usable]
        questions = [ids[place] for place in usable.tolist()]
        if metric.reducer:
            by_question = rows_by_question(metric, records)
            questions = list(by_question)
            rows = np.concatenate([reduced(metric, each) for each in by_question.values()])
        first = rows[:, 0]
        statistics = units(rows if metric.function else table(first), questions)
        value = float(scores(metric.function or mean, statistics.sum(axis=0, keepdims=True))[0])
        if isfinite(value):
            n = sum(int(metric.size(*row)) for row in rows.tolist()) if metric.size else len(rows)
            value = metric.mean(first.tolist()) if metric.mean else value
            sample = (statistics, metric.resampled or metric.function or mean)
            if metric.unit == "questions" and n > len(statistics):
                metric = replace(metric, unit="answers")
            computed.append(_Computed(metric, value, n, len(usable), sample))
    return computed


def rows_by_question(metric: Metric, records: Sequence[Record]) -> dict[str, list[list[float]]]:
    """Return the values of the metric's columns by question, a row for each of its records that has them all."""
    questions: dict[str, list[list[float]]] = {}
    for record in records:
        if (row := columns_of(metric, record)) is not None:
            questions.setdefault(record.id, []).append(row)
    return questions


def reduced(metric: Metric, rows: Sequence[Sequence[float]]) -> list[list[float]]:
    """Return the rows of a question as its reducer leaves them: one row with the question's score."""
    return [[metric.reducer([row[0] for row in rows])]] if metric.reducer else list(map(list, rows))


def columns_of(metric: Metric, record: Record) -> list[float] | None:
    """Return the values of the metric's columns in a record, or None if one is missing or not finite."""
    values = [record.scores.get(name, nan) for name in metric.needs]
    return values if all(map(isfinite, values)) else None


def item_score(metric: Metric, record: Record) -> float | None:
    """Return the record's score by a metric, or None."""
    values = columns_of(metric, record)
    if values is None:
        return None
    try:
        value = metric.item(*values) if metric.item else values[0]
    except ZeroDivisionError:  # such as a share of no claims
        return None
    return value if isfinite(value) else None


@dataclass(frozen=True, slots=True, repr=False)
class Evaluation(Displayed):
    """The records of one system on the questions of one config, from a run's log or from a file of predictions.

    Attributes:
        path: the log or the file of predictions.
        task: the name of the Inspect task. "predictions" for a file.
        benchmark: such as "fanoutqa", or "" for any other task, whose name is the config.
        config: such as "dev".
        setting: such as "closed-book". "predictions" for a file.
        model: Inspect's name of the model, such as "openai/gpt-4o". For a file, its name.
        created: an ISO date and time.
        status: "success", "error", "cancelled" or "started" (killed, or still running).
        expected: the number of records of a complete evaluation.
        available: the number of questions of the config. None if unknown. Fewer than these may have
            been asked.
        records: in the order of the benchmark's questions. Repetitions of a question are ordered by
            epoch.
        signatures: group of scores -> everything these scores depend on, in one line. See
            ``signature``.
        unscored: why there are no scores, or None.
        arguments: the task's arguments and the generation options.
        server: the address of the model's server, if the user gave one.
        problems: one sentence for each kind of problem in the input as a whole, such as unreadable
            lines.
        notes: sentences about the scoring, such as the calls of a judge and their cost.
        origin: equal for a run and the runs that resumed it, or "" if unknown. They are never
            compared with each other.
        recorded: group of scores -> why its scores are taken from the log, not computed again from
            the answers.
        metrics: the benchmark's metrics. Those whose columns no record has are not computed.
        declarations: the official values of the fields of the benchmark's signatures, by the
            signature's name.
        failures_official: whether the authors' results contain questions without an answer.
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
    unscored: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    server: str = ""
    problems: Sequence[str] = ()
    notes: Sequence[str] = ()
    available: int | None = None
    origin: str = ""
    recorded: Mapping[str, str] = field(default_factory=dict)
    metrics: Sequence[Metric] = ()
    declarations: Mapping[str, Declaration] = field(default_factory=dict)
    failures_official: bool = False
    _computed: Json = field(default_factory=dict, init=False, compare=False)

    def __getitem__(self, name: str) -> Score:
        """Return a score, such as ``evaluation["acc.loose"]``.

        Raises InputError if there is none of this name.
        """
        scores = self.scores()
        if name not in scores:
            undefined = self.undefined()
            if name in undefined:
                raise InputError(f"{name} is undefined: {undefined[name]}")
            reason = unscored(self, scores) or f"the scores are {', '.join(scores)}"
            raise InputError(f"no score {name!r}: {reason}")
        return scores[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.scores())

    @property
    def answered(self) -> bool:
        """Return whether at least one question was answered.

        Otherwise there are no scores.
        """
        return any(record.status in (ANSWERED, CUT_OFF) for record in self.records)

    def scores(self) -> dict[str, Score]:
        """Return the scores by metric name, with intervals and n, or {} if nothing was answered.

        Computed once.
        """
        if "scores" not in self._computed:
            self._computed["scores"] = (
                scores_of(self.metrics, self.records) if self.answered else {}
            )
        return dict(self._computed["scores"])

    def undefined(self) -> dict[str, str]:
        """Return why scores are undefined, by metric name, such as the recall of errors without any errors."""
        if "undefined" not in self._computed:
            columns = list(dict.fromkeys(name for record in self.records for name in record.scores))
            computable = present(self.metrics, columns) if self.answered else []
            scores = self.scores()
            self._computed["undefined"] = {
                metric.name: metric.undefined
                for metric in computable
                if metric.name not in scores
                and any(columns_of(metric, record) for record in self.records)
            }
        return dict(self._computed["undefined"])

    def scores_by_group(self, grouping: str) -> dict[str, dict[str, Score]]:
        """Return the scores of each group of a grouping.

        See ``by_group``. Computed once.
        """
        key = f"scores by {grouping}"
        if key not in self._computed:
            metrics = self.metrics if self.answered else ()
            self._computed[key] = {
                group: scores_of(metrics, records)
                for group, records in self.by_group(grouping).items()
            }
        return dict(self._computed[key])

    def deviations(self, score: Score) -> list[str]:
        """Return what distinguishes a score from the official one, in sentences, or [] if it is official.

        The scores of a task without a benchmark are neither official nor unofficial: [].
        """
        if not self.benchmark:
            return []
        sentences = []
        if not (score.metric.official or score.metric.reducer):
            sentences.append("not a score of the benchmark's authors")
        sentences += self._signature_deviations(score.metric)
        if score.metric.group in self.recorded:
            why = self.recorded[score.metric.group]
            sentences.append("as recorded in the log" + (f" ({why})" if why else ""))
        sentences += asked_part(len({record.id for record in self.records}), self.available)
        if (epochs := max((record.epoch for record in self.records), default=1)) > 1:
            sentences.append(f"each question was asked {epochs} times")
        for status in () if self.failures_official else (FAILED, MISSING):
            if count := sum(record.status == status for record in self.records):
                sentences.append(
                    f"{count} of {len(self.records)} questions have no answer ({status})"
                )
        if score.left_out and not score.metric.partial:
            sentences.append(f"{score.left_out} of {len(self.records)} answers are left out")
        if self.status != "success":
            status = "killed, or still running" if self.status == "started" else self.status
            sentences.append(f"the run did not finish ({status})")
        return sentences

    def _signature_deviations(self, metric: Metric) -> list[str]:
        line = self.signatures.get(metric.group)
        if not line:
            return ["the signature is missing"]
        try:
            name = signature_name(line)
            if name in self.declarations:
                return deviations(line, self.declarations[name], metric.needs[0].partition("@")[2])
        except InputError as error:  # a log of another version, or an edited one
            return [str(error)]
        return [
            f"the official values of {name!r} are not known; allowed: {', '.join(self.declarations)}"
        ]

    def as_dict(self, by: Sequence[str] = ()) -> Json:
        """Return the evaluation as JSON data (see ``qabench.evaluation.tables.as_dict``)."""
        return as_dict(self, by)

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame: per record id, epoch, texts, status, scores, groups by grouping, and costs."""
        import pandas as pd

        fields = ("id", "epoch", "question", "reference", "answer", "status", "problem")
        costs = ("input_tokens", "output_tokens", "seconds", "cost")
        return pd.DataFrame(
            [
                {name: getattr(record, name) for name in fields}
                | dict(record.scores)
                | {name: list(groups) for name, groups in record.groups.items()}
                | {name: getattr(record, name) for name in costs}
                for record in self.records
            ]
        )

    def to_markdown(self) -> str:
        """Return the scores as a Markdown table, with the deviations from the official scores below it."""
        return "\n".join(table.formatted("markdown") for table in self.tables())

    def plot(self, scores: Names = None, by: str | None = None, axes: Any = None) -> Any:
        """Plot scores with their 95% intervals by matplotlib, and return the axes.

        Args:
            scores: names of scores or groups, such as ("acc.loose", "rouge"). None for all.
            by: a grouping, such as "category": one row per category, for the first of the scores.
            axes: matplotlib axes to draw on. None for a new figure.

        Raises:
            InputError: a score or grouping that the evaluation does not have.
            MissingExtra: matplotlib is not installed.
        """
        return plot_scores(self, scores, by, axes)

    def tables(self) -> list[Table]:
        """Return the scores as a table, as ``print`` and notebooks show it, with the deviations as notes."""
        table = score_table(self)
        for sentence, names in deviations_by_sentence(self).items():
            table.notes.append(f"not official ({', '.join(names)}): {sentence}")
        undefined = undefined_note({name: score.interval for name, score in self.scores().items()})
        table.notes.extend(filter(None, [undefined]))
        table.notes.extend(undefined_sentences(self))
        return [table]

    def counts(self) -> dict[str, int]:
        """Count the records by status.

        A record that the run should have and does not is missing, too.
        """
        counts = Counter({MISSING: self.expected - len(self.records)})
        counts.update(record.status for record in self.records)
        return {status: counts[status] for status in STATUSES}

    def replies(self) -> dict[str, int]:
        """Return {"all": replies of models, "cached": how many of them came from the cache}, or {} if unknown."""
        counted = [record for record in self.records if record.replies is not None]
        if not counted:
            return {}
        replies = sum(record.replies or 0 for record in counted)
        return {"all": replies, "cached": sum(record.cached for record in counted)}

    def by_id(self) -> dict[str, list[Record]]:
        """Return the records by question id.

        The repetitions of a question by epoch.
        """
        questions: dict[str, list[Record]] = {}
        for record in self.records:
            questions.setdefault(record.id, []).append(record)
        return questions

    def groupings(self) -> list[str]:
        """Return the groupings that have at least one group, such as "category"."""
        return list(
            dict.fromkeys(
                name for record in self.records for name, groups in record.groups.items() if groups
            )
        )

    def by_group(self, grouping: str) -> dict[str, list[Record]]:
        """Return the records of each group of a grouping, the largest first.

        A record may be in several.
        """
        groups: dict[str, list[Record]] = {}
        for record in self.records:
            for group in record.groups.get(grouping, ()):
                groups.setdefault(group, []).append(record)
        return dict(sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])))


def without_superseded(
    evaluations: Sequence[Evaluation],
) -> tuple[list[Evaluation], list[Evaluation]]:
    """Return evaluations without runs that were resumed by others of them, and these superseded runs.

    Of the runs with the same ``Evaluation.origin``, the one with the most answers counts, the
    latest if there are several.
    """
    best = {each.origin: each for each in sorted(evaluations, key=_progress)}
    current = [each for each in evaluations if not each.origin or best[each.origin] is each]
    return current, [each for each in evaluations if each.origin and best[each.origin] is not each]


def _progress(evaluation: Evaluation) -> tuple[int, str]:
    return sum(
        record.status not in (FAILED, MISSING) for record in evaluation.records
    ), evaluation.created
