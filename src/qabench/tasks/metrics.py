"""Metrics over a task's samples, as the benchmarks' scorers compute them."""

from __future__ import annotations

from inspect_ai.scorer import Metric, SampleScore, metric


@metric
def mean() -> Metric:
    """The mean as the official scorers compute it, equal to ``qabench score`` to the last digit.

    It is the built-in sum in the order of the questions, divided by their number (Inspect's mean sums pairwise); 0
    without samples.
    """

    def value(scores: list[SampleScore]) -> float:
        return sum(one.score.as_float() for one in scores) / len(scores) if scores else 0.0

    return value
