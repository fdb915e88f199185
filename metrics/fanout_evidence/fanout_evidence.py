"""Recall and precision of FanOutQA's evidence pages as an ``evaluate`` metric."""

from __future__ import annotations

from typing import Any, ClassVar

import evaluate

# ``evaluate`` reads the "From:" comments: its error for a missing package shows the address.
from qabench.adapters.metric import MetricModule  # From: git+https://github.com/qabench/qabench
from qabench.benchmarks.fanoutqa import metrics  # From: git+https://github.com/qabench/qabench


class FanoutEvidence(MetricModule, evaluate.Metric):
    """Recall and precision of the Wikipedia pages that a system read or retrieved.

    Recall is the mean share of a question's necessary pages that were read. Precision is the
    mean share of the pages read that are necessary. FanOutQA's dataset lists the necessary
    pages of each question. The authors report neither score.

    Args:
        predictions: a list with the pages read for each question: titles, URLs, page ids, or
            objects with "title", "url" and "pageid". None for a question for which nothing was
            searched. A page that was read several times counts once.
        references: the dataset's `necessary_evidence` column: a list of pages for each question.
        k: for rankings, count only the first k different pages of a question. None for all pages.
        per_question: also return each question's scores.
    Returns:
        recall: float in [0, 1], the mean over all questions. A question for which no page was read
            has a recall of 0.
        precision: float in [0, 1], the mean over the questions for which pages were read, or None
            if there is no such question.
        without_pages: the number of questions for which no page was read. They have no precision.
        per_question: with per_question=True, a list of {"recall", "precision", "missing"}, where
            "missing" lists the necessary pages that were not read.
    Raises:
        InputError (a ValueError): nothing to score, lists of different lengths, a question without
            necessary pages, or something that does not identify a page.
    Examples:
        >>> import qabench
        >>> metric = qabench.load_metric("fanout_evidence")
        >>> result = metric.compute(
        ...     predictions=[["Saturn", "https://en.wikipedia.org/wiki/Giant_planet", "Moon"], None],
        ...     references=[
        ...         [{"title": "Giant planet"}, {"title": "Saturn"}],
        ...         [{"title": "Lima", "pageid": 18091}],
        ...     ],
        ... )
        >>> result["recall"], result["precision"], result["without_pages"]
        (0.5, 0.6666666666666666, 1)
    """

    # ``qabench.adapters.declared.Declarations`` describes these attributes.
    BENCHMARK = "fanoutqa"
    GROUP = "evidence"
    KEYS: ClassVar = {"recall": "evidence.recall", "precision": "evidence.precision"}
    OPTIONS: ClassVar = {"k": "evidence_k"}
    REFERENCE = "necessary_evidence"
    PREDICTION = "pages"
    # If nothing was searched for a question, no page was read, and its recall is 0.
    MISSING: ClassVar = {"pages": None}
    UNOFFICIAL = "not a score of the benchmark's authors"
    COUNTS = metrics.evidence_counts
    QUESTION = metrics.evidence_of_question
    TYPES: ClassVar[Any] = {
        "predictions": ["string"],
        "references": [{"pageid": "int64", "revid": "int64", "title": "string", "url": "string"}],
    }
    URLS = ("https://arxiv.org/abs/2402.14116", "https://github.com/zhudotexe/fanoutqa")
