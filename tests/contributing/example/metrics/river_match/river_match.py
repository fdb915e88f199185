"""The score of Rivers as an ``evaluate`` metric."""

from __future__ import annotations

from typing import Any

import evaluate

from qabench.answers import check_pairs
from qabench.benchmarks.rivers import match
from qabench.metric_module import MetricModule, decoded


class RiverMatch(MetricModule, evaluate.Metric):
    """Share of answers that name the river.

    Args:
        predictions: a list with one answer per question; None for an unanswered one, which scores 0.
        references: the dataset's `answer` column.
        ignore_case: whether upper and lower case are the same; the official score ignores case.
        references_format: "json", "python" or "auto": the form of the references.
    Returns:
        match: float in [0, 1].
        signature: everything the score depends on, in one line.
        deviations: what distinguishes the score from the official one, in sentences; empty if it is official.
    Examples:
        >>> import qabench
        >>> metric = qabench.load_metric("river_match")
        >>> metric.compute(predictions=["It is the Seine."], references=["the Seine"])["match"]
        1.0
    """

    BENCHMARK = "rivers"
    URLS = ("https://example.org/rivers",)

    def _compute(
        self, predictions: list[str], references: list[str], ignore_case: bool = True, references_format: str = "auto"
    ) -> dict[str, Any]:
        answers, rivers = decoded(predictions, references, references_format)
        check_pairs(rivers, answers)
        texts = [answer if isinstance(answer, str) else None for answer in answers]
        scores = [match(river, text, ignore_case) for river, text in zip(rivers, texts, strict=True)]
        provenance = self.provenance(rivers, case="ignored" if ignore_case else "kept")
        return {"match": sum(scores) / len(scores)} | provenance
