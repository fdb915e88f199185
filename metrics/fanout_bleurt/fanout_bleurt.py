"""FanOutQA's BLEURT as an ``evaluate`` metric."""

from __future__ import annotations

from typing import Any

import evaluate

from qabench.adapters.metric import MetricModule
from qabench.evaluation.score_spec import mean_in_order
from qabench.models import bleurt


class FanoutBleurt(MetricModule, evaluate.Metric):
    """Mean BLEURT-20 of answers against reference answers written as text: a learned metric of how
    well an answer conveys the meaning of the reference.

    Args:
        predictions: a list with the text of the answer to each question, or None for an unanswered
            question, which is scored as the empty string.
        references: the dataset's `answer` column (JSON text), or the answers as Python objects:
            dict, list, str, int, float, bool. A list is compared as its items, one per line. A dict
            as lines "key - value". A bool as yes or no.
        model: a folder, or a name on the Hub, perhaps with a revision ("NAME@main").
            lucadiliello/BLEURT-20 if neither this nor QABENCH_BLEURT_MODEL is given.
        per_question: also return each question's score.
    Returns:
        bleurt: a float, about 0 for unrelated answers and about 1 for answers with the same
            meaning, not bounded.
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

    BENCHMARK = "fanoutqa"
    ANSWERS = True
    BOUNDED = False
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

    def score(
        self,
        predictions: list[Any],
        references: list[Any],
        model: str | None = None,
        per_question: bool = False,
    ) -> dict[str, Any]:
        scorer = bleurt.load_bleurt(model)
        scores = bleurt.bleurt(references, predictions, scorer)
        result: dict[str, Any] = {"bleurt": mean_in_order(scores)}
        result |= self.provenance(references, bleurt=scorer.name)
        if per_question:
            result["per_question"] = scores
        return result
