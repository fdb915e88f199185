"""The score of Rivers as an ``evaluate`` metric."""

from __future__ import annotations

from typing import Any

import evaluate

from qabench.answers import check_pairs
from qabench.benchmarks.rivers.score import match
from qabench.metric_module import MetricModule, decoded

_DESCRIPTION = """
Share of answers that name the river.
"""
_KWARGS_DESCRIPTION = """
Args:
    predictions: a list with one answer per question; None for an unanswered one, which scores 0.
    references: the dataset's `answer` column.
    ignore_case: whether upper and lower case are the same; the official score ignores case.
    references_format: "json" or "python" says which form the references have; "auto" takes them for JSON when all are.
Returns:
    match: float in [0, 1].
    signature: everything the score depends on, in one line.
    deviations: what distinguishes the score from the official one, in sentences; empty if it is official.
Raises:
    InputError (a ValueError): nothing to score, or lists of different lengths.
Examples:
    >>> import qabench
    >>> metric = qabench.load_metric("river_match")
    >>> metric.compute(predictions=["It is the Seine."], references=["the Seine"])["match"]
    1.0
"""


class RiverMatch(MetricModule, evaluate.Metric):
    """See ``DESCRIPTION`` and ``INPUTS``."""

    BENCHMARK = "rivers"
    DESCRIPTION = _DESCRIPTION
    INPUTS = _KWARGS_DESCRIPTION
    URLS = ("https://example.org/rivers",)

    def _compute(
        self,
        predictions: list[str],
        references: list[str],
        ignore_case: bool = True,
        references_format: str = "auto",
    ) -> dict[str, Any]:
        given, rivers = decoded(predictions, references, references_format)
        check_pairs(rivers, given)
        answers = [answer if isinstance(answer, str) else None for answer in given]
        scores = [match(river, answer, ignore_case) for river, answer in zip(rivers, answers, strict=True)]
        found = {"match": sum(scores) / len(scores)}
        return found | self.provenance(rivers, case="ignored" if ignore_case else "kept")
