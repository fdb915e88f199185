"""Metrics over a task's samples, as the benchmarks' scorers compute them."""

from __future__ import annotations

from inspect_ai.scorer import Metric, SampleScore, metric


@metric
def mean() -> Metric:
    """The mean as the official scorers take it, equal to ``qabench score`` to the last digit.

    The builtin sum in the questions' order over their number; Inspect's own mean sums pairwise. 0 for no samples.
    """

    def value(scores: list[SampleScore]) -> float:
        return sum(one.score.as_float() for one in scores) / len(scores) if scores else 0.0

    return value
