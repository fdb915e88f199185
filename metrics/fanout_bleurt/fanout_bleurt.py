"""FanOutQA's BLEURT as an ``evaluate`` metric."""

from __future__ import annotations

from typing import ClassVar

import evaluate

# ``evaluate`` reads the "From:" comments: its error for a missing package shows the address.
from qabench.adapters.metric import MetricModule  # From: git+https://github.com/qabench/qabench
from qabench.benchmarks.fanoutqa import metrics  # From: git+https://github.com/qabench/qabench


class FanoutBleurt(MetricModule, evaluate.Metric):
    """How well answers convey the meaning of reference answers (BLEURT-20, a learned metric).

    The score is a mean over questions. References of other types than str are compared as text.

    Args:
        predictions: a list with the text of the answer to each question, or None for an unanswered
            question, which is scored as the empty string.
        references: the dataset's `answer` column (`rows["answer"]`), or the answers as Python
            objects: dict, list, str, int, float, bool. A list is compared as its items, one per
            line, a dict as lines "key - value", and a bool as yes or no.
        model: a folder, or a name on the Hub, optionally with a revision ("NAME@main").
            lucadiliello/BLEURT-20 if neither this nor QABENCH_BLEURT_MODEL is given.
        per_question: also return each question's score.
    Returns:
        bleurt: a float, about 0 for unrelated answers and about 1 for answers with the same
            meaning. It can be below 0 or above 1.
        per_question: with per_question=True, a list of floats in the order of the input.
    Raises:
        InputError (a ValueError): nothing to score, or lists of different lengths.
        MissingExtra: torch, transformers or sentencepiece is not installed.
        QabenchError: the model cannot be loaded.
    Examples:
        >>> import qabench
        >>> metric = qabench.load_metric("fanout_bleurt")
        >>> result = metric.compute(predictions=["Paris, Rome"], references=[["Paris", "Lima"]])
        >>> sorted(result)
        ['bleurt', 'deviations', 'signature']
    """

    # ``qabench.adapters.declared.Declarations`` describes these attributes.
    BENCHMARK = "fanoutqa"
    GROUP = "bleurt"
    KEYS: ClassVar = {"bleurt": "bleurt"}
    OPTIONS: ClassVar = {"model": "bleurt_model"}
    ANSWERS = True
    # A learned score can be below 0 or above 1.
    BOUNDED = False
    ROW = metrics.row
    QUESTION = metrics.bleurt_of_question
    URLS = ("https://arxiv.org/abs/2402.14116", "https://github.com/google-research/bleurt")
    CITATION = """
@inproceedings{sellam-etal-2020-bleurt,
  title = {{BLEURT}: Learning Robust Metrics for Text Generation},
  author = {Sellam, Thibault and Das, Dipanjan and Parikh, Ankur},
  booktitle = {Proceedings of the 58th Annual Meeting of the Association for Computational Linguistics},
  year = {2020},
  url = {https://aclanthology.org/2020.acl-main.704},
}
"""
