"""The score of Rivers as an ``evaluate`` metric."""

from __future__ import annotations

from typing import Any

import evaluate

from qabench.adapters.metric import MetricModule
from qabench.answers import check_pairs
from qabench.benchmarks.rivers import match


class RiverMatch(MetricModule, evaluate.Metric):
    """Share of answers that name the river.

    Args:
        predictions: a list with one answer per question; None for an unanswered one, which scores 0.
        references: the dataset's `answer` column.
        ignore_case: whether upper and lower case are the same; the official score ignores case.
    Returns:
        match: float in [0, 1].
    Examples:
        >>> import qabench
        >>> metric = qabench.load_metric("river_match")
        >>> metric.compute(predictions=["It is the Seine."], references=["the Seine"])["match"]
        1.0
    """

    BENCHMARK = "rivers"
    URLS = ("https://example.org/rivers",)

    def score(self, predictions: list[Any], references: list[Any], ignore_case: bool = True) -> dict[str, Any]:
        check_pairs(references, predictions)
        texts = [answer if isinstance(answer, str) else None for answer in predictions]
        scores = [match(river, text, ignore_case) for river, text in zip(references, texts, strict=True)]
        provenance = self.provenance(references, case="ignored" if ignore_case else "kept")
        return {"match": sum(scores) / len(scores)} | provenance
