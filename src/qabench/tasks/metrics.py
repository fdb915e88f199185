"""Metrics over a task's samples, as the benchmarks' scorers compute them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isnan

import numpy as np
from inspect_ai.scorer import Metric, SampleScore, Value, metric

Mean = Callable[[Sequence[float]], float]


@metric
def means() -> Metric:
    """The mean of each column of the scores, and its standard error as "COLUMN_stderr"; see ``column_means``."""

    def value(scores: list[SampleScore]) -> Value:
        return column_means(scores, lambda column: mean_in_order)

    return value


def column_means(scores: Sequence[SampleScore], mean_of: Callable[[str], Mean]) -> Value:
    """The means of the columns, in one pass: Inspect's metrics of single columns copy every score for each of them.

    Args:
        scores: their values are {column: number}; columns that are NaN, and scores without columns, are left out.
        mean_of: which function gives the mean of a column.
    """
    columns: dict[str, list[float]] = {}
    for one in scores:
        if isinstance(one.score.value, dict):
            for column, number in one.score.value.items():
                columns.setdefault(column, []).append(float(number or 0))
    found: dict[str, float] = {}
    for column, numbers in columns.items():
        if known := [number for number in numbers if not isnan(number)]:
            error = np.std(known, ddof=1) / len(known) ** 0.5 if len(known) > 1 else 0.0
            found |= {column: mean_of(column)(known), f"{column}_stderr": float(error)}
    return dict(found)


def mean_in_order(values: Sequence[float]) -> float:
    """The mean as the official scorers compute it, equal to ``qabench score`` to the last digit.

    It is the built-in sum in the order of the questions, divided by their number; Inspect's mean sums pairwise.
    """
    return sum(values) / len(values)
