"""FanOutQA's ROUGE-1, ROUGE-2 and ROUGE-L as an ``evaluate`` metric."""

from __future__ import annotations

from typing import ClassVar

import evaluate

# ``evaluate`` reads the "From:" comments: its error for a missing package shows the address.
from qabench.adapters.metric import MetricModule  # From: git+https://github.com/qabench/qabench
from qabench.benchmarks.fanoutqa import metrics  # From: git+https://github.com/qabench/qabench
from qabench.text.rouge import COLUMNS  # From: git+https://github.com/qabench/qabench


class FanoutRouge(MetricModule, evaluate.Metric):
    """ROUGE-1, ROUGE-2 and ROUGE-L of answers against reference answers written as text.

    Precision, recall and F-measure are means over questions, computed with the Porter stemmer.
    They equal the official FanOutQA scorer's to the last digit.

    Args:
        predictions: a list with the text of the answer to each question, or None for an unanswered
            question, which scores 0.
        references: the dataset's `answer` column (`rows["answer"]`), or the answers as Python
            objects: dict, list, str, int, float, bool. A list is compared as its items, one per
            line, a dict as lines "key - value", and a bool as yes or no.
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

    # ``qabench.adapters.declared.Declarations`` describes these attributes.
    BENCHMARK = "fanoutqa"
    GROUP = "rouge"
    # The keys are the scores' names: "rouge1.recall" is the key "recall" of the dict "rouge1".
    KEYS: ClassVar = dict(zip(COLUMNS, COLUMNS, strict=True))
    OPTIONS: ClassVar = {}
    ANSWERS = True
    ROW = metrics.row
    URLS = (
        "https://arxiv.org/abs/2402.14116",
        "https://github.com/google-research/google-research",
    )
    CITATION = """
@inproceedings{lin-2004-rouge,
  title = {{ROUGE}: A Package for Automatic Evaluation of Summaries},
  author = {Lin, Chin-Yew},
  booktitle = {Text Summarization Branches Out},
  year = {2004},
  url = {https://aclanthology.org/W04-1013},
}
"""
