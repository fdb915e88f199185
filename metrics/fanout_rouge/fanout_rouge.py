"""FanOutQA's ROUGE-1, ROUGE-2 and ROUGE-L as an ``evaluate`` metric."""

from __future__ import annotations

from typing import Any

import evaluate

from qabench.adapters.metric import MetricModule
from qabench.evaluation.score_spec import mean_in_order
from qabench.text.rouge import COLUMNS, backend_version, by_type, rouge


class FanoutRouge(MetricModule, evaluate.Metric):
    """Mean ROUGE-1, ROUGE-2 and ROUGE-L precision, recall and F-measure of answers against
    reference answers written as text, with the Porter stemmer. Equal to the official FanOutQA
    scorer's to the last digit.

    Args:
        predictions: a list with the text of the answer to each question, or None for an unanswered
            question, which scores
            0.
        references: the dataset's `answer` column (JSON text), or the answers as Python objects:
            dict, list, str, int, float, bool. A list is compared as its items, one per line. A dict
            as lines "key - value". A bool as yes or no.
        per_question: also return each question's scores.
    Returns:
        rouge1, rouge2, rougeL: each {"precision", "recall", "fscore"}, floats in [0, 1].
        per_question: with per_question=True, a list of {"rouge1": {...}, ...} in the order of the
            input.
    Raises:
        InputError (a ValueError): nothing to score, or lists of different lengths.
    Examples:
        >>> import qabench
        >>> metric = qabench.load_metric("fanout_rouge")
        >>> result = metric.compute(predictions=["Paris, Rome"], references=[["Paris", "Lima"]])
        >>> result["rouge1"]
        {'precision': 0.5, 'recall': 0.5, 'fscore': 0.5}
    """

    BENCHMARK = "fanoutqa"
    ANSWERS = True
    URLS = ("https://arxiv.org/abs/2402.14116", "https://github.com/google-research/google-research")
    CITATION = """
@inproceedings{lin-2004-rouge,
  title = {{ROUGE}: A Package for Automatic Evaluation of Summaries},
  author = {Lin, Chin-Yew},
  booktitle = {Text Summarization Branches Out},
  year = {2004},
  url = {https://aclanthology.org/W04-1013},
}
"""

    def score(
        self, predictions: list[Any], references: list[Any], per_question: bool = False
    ) -> dict[str, Any]:
        rows = rouge(references, predictions)
        means = {column: mean_in_order([row[column] for row in rows]) for column in COLUMNS}
        result: dict[str, Any] = by_type(means)
        result |= self.provenance(references, rouge=backend_version(), stemmer="porter")
        if per_question:
            result["per_question"] = list(map(by_type, rows))
        return result
