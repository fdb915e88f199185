"""FanOutQA's loose and strict accuracy as an ``evaluate`` metric."""

from __future__ import annotations

from typing import ClassVar

import evaluate

# ``evaluate`` reads the "From:" comments: its error for a missing package shows the address.
from qabench.adapters.metric import MetricModule  # From: git+https://github.com/qabench/qabench
from qabench.benchmarks.fanoutqa import metrics  # From: git+https://github.com/qabench/qabench


class FanoutAcc(MetricModule, evaluate.Metric):
    """How many of a reference's strings an answer contains (FanOutQA's loose and strict accuracy).

    Loose accuracy is the mean share of a reference's strings (keys and values, items, or the
    single value) that occur in the answer, both normalized. Strict accuracy is the share of
    questions with all strings found. Both are fractions, equal to the official FanOutQA
    scorer's to the last digit if its lemmatizer is used.

    Args:
        predictions: a list with the text of the answer to each question, or None for an unanswered
            question, which scores 0.
        references: the dataset's `answer` column (`rows["answer"]`), or the answers as Python
            objects: dict, list, str, int, float, bool.
        lemmatizer: "auto" (spaCy's en_core_web_sm if installed, else simplemma with a warning),
            "spacy", "simplemma", or a custom object. Only spaCy's en_core_web_sm gives official
            scores.
        per_question: also return each question's score and the strings that were not found.
    Returns:
        loose: float in [0, 1].
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

    # ``qabench.adapters.declared.Declarations`` describes these attributes.
    BENCHMARK = "fanoutqa"
    GROUP = "acc"
    KEYS: ClassVar = {"loose": "acc.loose", "strict": "acc.strict"}
    OPTIONS: ClassVar = {"lemmatizer": "lemmatizer"}
    ANSWERS = True
    # Here, an empty reference is an error. When a file or a run is scored, the question with such a
    # reference has no accuracy instead.
    SCORER_OPTIONS: ClassVar = {"leave_out_undefined": False}
    ROW = metrics.row
    QUESTION = metrics.accuracy_of_question
    URLS = ("https://arxiv.org/abs/2402.14116", "https://github.com/zhudotexe/fanoutqa")
