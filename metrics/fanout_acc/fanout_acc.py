"""FanOutQA's loose and strict accuracy as an ``evaluate`` metric."""

from __future__ import annotations

from typing import Any

import evaluate

from qabench.adapters.metric import MetricModule
from qabench.benchmarks.fanoutqa.accuracy import accuracy
from qabench.benchmarks.fanoutqa.normalizer import NormalizedTextCache, Normalizer
from qabench.evaluation.score_spec import mean_in_order


class FanoutAcc(MetricModule, evaluate.Metric):
    """Loose accuracy: the mean share of a reference's strings (keys and values, items, or the
    single value) that occur in the answer, both normalized. Strict accuracy: the share of questions
    with all strings found. Both are fractions, equal to the official FanOutQA scorer's to the last
    digit if its lemmatizer is used.

    Args:
        predictions: a list with the text of the answer to each question, or None for an unanswered
            question, which scores
            0.
        references: the dataset's `answer` column (JSON text), or the answers as Python objects:
            dict, list, str, int, float, bool.
        lemmatizer: "auto" (spaCy's en_core_web_sm if installed, else simplemma with a warning),
            "spacy", "simplemma", or an object. Only spaCy's en_core_web_sm gives official scores.
        per_question: also return each question's score and the strings that were not found.
    Returns:
        loose: float, at most 1.
        strict: float in [0, 1].
        per_question: with per_question=True, a list of {"loose", "strict", "missing"} in the order
            of the input.
    Raises:
        InputError (a ValueError): nothing to score, lists of different lengths, a reference that is
            or contains an empty list or dict.
        MissingExtra: lemmatizer="spacy" without spaCy or its model.
    Examples:
        >>> import qabench
        >>> metric = qabench.load_metric("fanout_acc")
        >>> result = metric.compute(
        ...     predictions=["France: Paris. Peru: I forget."],
        ...     references=[{"France": "Paris", "Peru": "Lima"}],
        ...     lemmatizer="simplemma",
        ... )
        >>> result["loose"], result["strict"]
        (0.75, 0.0)
    """

    BENCHMARK = "fanoutqa"
    ANSWERS = True
    URLS = ("https://arxiv.org/abs/2402.14116", "https://github.com/zhudotexe/fanoutqa")

    def score(
        self,
        predictions: list[Any],
        references: list[Any],
        lemmatizer: Any = "auto",
        per_question: bool = False,
    ) -> dict[str, Any]:
        normalizer = Normalizer(lemmatizer, NormalizedTextCache.default())
        questions = accuracy(references, predictions, normalizer.batch)
        result: dict[str, Any] = {
            "loose": mean_in_order([question.loose for question in questions]),
            "strict": mean_in_order([question.strict for question in questions]),
        }
        result |= self.provenance(references, **normalizer.signature())
        if per_question:
            result["per_question"] = [
                {"loose": question.loose, "strict": question.strict, "missing": question.missing}
                for question in questions
            ]
        return result
