"""Metrics over a task's samples, as the benchmarks' scorers compute them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isnan

import numpy as np
from inspect_ai.scorer import Metric, SampleScore, Value, metric

from qabench.evaluation.metric import mean_in_order


@metric
def means() -> Metric:
    """Return the mean of each column of the scores, and its standard error as "COLUMN_stderr"."""

    def value(scores: list[SampleScore]) -> Value:
        return column_means(scores, lambda column: mean_in_order)

    return value


def column_means(scores: Sequence[SampleScore], mean_of: Callable[[str], Callable[[Sequence[float]], float]]) -> Value:
    """Return the means of the columns, in one pass: Inspect's metrics of single columns copy every score for each.

    Args:
        scores: their values are {column: number}; columns that are NaN, and scores without columns, are left out.
        mean_of: returns the function that computes the mean of a column.
    """
    columns: dict[str, list[float]] = {}
    for sample_score in scores:
        if isinstance(sample_score.score.value, dict):
            for column, number in sample_score.score.value.items():
                numbers = columns.setdefault(column, [])
                if not isnan(value := float(number or 0)):
                    numbers.append(value)
    values: dict[str, float] = {}
    for column, numbers in columns.items():
        if numbers:
            error = np.std(numbers, ddof=1) / len(numbers) ** 0.5 if len(numbers) > 1 else 0.0
            values |= {column: mean_of(column)(numbers), f"{column}_stderr": float(error)}
    return dict(values)
