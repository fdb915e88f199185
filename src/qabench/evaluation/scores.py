"""Scores of records with confidence intervals: one function for tables, reports and published entries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite, nan

from qabench.evaluation.metric import Metric, present
from qabench.evaluation.record import Record
from qabench.stats import Interval, bootstrap, bootstrap_mean, scores, units


@dataclass(frozen=True, slots=True)
class Score:
    """The value of a metric with its 95% bootstrap interval over questions.

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
        Metric name -> score, in the order of ``metrics``. A metric that is undefined on these records, such as the
        recall of errors without any errors, is left out.
    """
    columns = list(dict.fromkeys(name for record in records for name in record.scores))
    scores_by_name = {}
    for metric in present(metrics, columns):
        if (score := _score(metric, records)) is not None:
            scores_by_name[metric.name] = score
    return scores_by_name


def columns_of(metric: Metric, record: Record) -> list[float] | None:
    """Return the values of the metric's columns in a record; None if one is missing or not finite."""
    values = [record.scores.get(name, nan) for name in metric.needs]
    return values if all(map(isfinite, values)) else None


def item_score(metric: Metric, record: Record) -> float | None:
    """Return the record's score by a metric, or None."""
    values = columns_of(metric, record)
    if values is None:
        return None
    value = metric.item(*values) if metric.item else values[0]
    return value if isfinite(value) else None


def _score(metric: Metric, records: Sequence[Record]) -> Score | None:
    usable = [(record.id, row) for record in records if (row := columns_of(metric, record)) is not None]
    if not usable:
        return None
    ids, rows = [id for id, _ in usable], [row for _, row in usable]
    n = sum(int(metric.size(*row)) for row in rows) if metric.size else len(rows)
    if metric.function is None:
        values = [row[0] for row in rows]
        interval = bootstrap_mean(values, clusters=ids)
        mean = metric.mean(values) if metric.mean else interval.mean
    else:
        mean = float(scores(metric.function, units(rows, ids).sum(axis=0, keepdims=True))[0])
        if not isfinite(mean):
            return None
        interval = bootstrap(rows, metric.resampled or metric.function, clusters=ids)
    return Score(metric, replace(interval, mean=mean), n, len(records) - len(rows))
