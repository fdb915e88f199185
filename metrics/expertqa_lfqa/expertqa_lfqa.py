"""ROUGE of ExpertQA's long-form answers as an ``evaluate`` metric."""

from __future__ import annotations

from typing import ClassVar

import evaluate

# ``evaluate`` reads the "From:" comments: its error for a missing package shows the address.
from qabench.adapters.metric import MetricModule  # From: git+https://github.com/qabench/qabench
from qabench.benchmarks.expertqa import metrics  # From: git+https://github.com/qabench/qabench


class ExpertqaLfqa(MetricModule, evaluate.Metric):
    """ROUGE F-measures of long-form answers against ExpertQA's revised answers.

    ROUGE-1, ROUGE-2, ROUGE-L and ROUGE-Lsum are computed as in ExpertQA, like evaluate's metric
    "rouge" with its default options, except that the bootstrap has a fixed seed.

    Args:
        predictions: the answers, one string per question, or None for an unanswered question, which
            scores 0.
        references: the `answer` column of config lfqa_random or lfqa_domain: strings.
        seed: the seed of the bootstrap.
        per_question: also return the F-measures of each question.
    Returns:
        rouge1, rouge2, rougeL, rougeLsum: floats in [0, 1], the median of the means of 1,000
            bootstrap samples.
        mean: the means by ROUGE type, which do not depend on the seed.
        interval: the 95% interval [low, high] by ROUGE type.
        unanswered: the number of predictions that are None.
        per_question: with per_question=True, a list of {"rouge1", "rouge2", "rougeL", "rougeLsum"}
            in the input's order.
    Raises:
        InputError (a ValueError): nothing to score, lists of different lengths, an item that is not
            a string.
    Examples:
        >>> import qabench
        >>> metric = qabench.load_metric("expertqa_lfqa")
        >>> result = metric.compute(predictions=["Water boils."], references=["Water freezes."])
        >>> result["rouge1"], result["mean"]["rouge2"]
        (0.5, 0.0)
    """

    # ``qabench.adapters.declared.Declarations`` describes these attributes.
    BENCHMARK = "expertqa"
    GROUP = "rouge"
    # ``KEYS`` is empty because ``TOTALS`` computes the scores, which depend on the seed.
    KEYS: ClassVar = {}
    OPTIONS: ClassVar = {"seed": "seed"}
    ANSWERS = True
    # A reference answer is plain text: even one such as "42" is not read as JSON.
    STRINGS = True
    SCORER = metrics.lfqa_scorer
    ROW = metrics.lfqa_row
    TOTALS = metrics.lfqa_totals
    QUESTION = metrics.rouge_of_question
    URLS = ("https://arxiv.org/abs/2309.07852", "https://github.com/chaitanyamalaviya/ExpertQA")
