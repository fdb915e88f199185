"""ROUGE of ExpertQA's long-form answers as an ``evaluate`` metric."""

from __future__ import annotations

from typing import Any

import evaluate

from qabench.adapters.metric import MetricModule
from qabench.benchmarks.expertqa.lfqa import lfqa_rouge
from qabench.text.rouge import backend_version


class ExpertqaLfqa(MetricModule, evaluate.Metric):
    """ROUGE-1, ROUGE-2, ROUGE-L and ROUGE-Lsum F-measures of long-form answers against ExpertQA's
    revised answers: the scores of the metric "rouge" of evaluate with its defaults, which ExpertQA
    uses, with a fixed seed.

    Args:
        predictions: the answers, one string per question, or None for an unanswered question, which
            scores 0.
        references: the `answer` column of config lfqa_random or lfqa_domain: strings.
        seed: the seed of the bootstrap.
        per_question: also return the F-measures of each question.
    Returns:
        rouge1, rouge2, rougeL, rougeLsum: floats in [0, 1]: the median over 1,000 bootstrap samples
        of the mean.
        mean: the means by type, which do not depend on the seed.
        interval: the 95% interval [low, high] by type.
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

    BENCHMARK = "expertqa"
    ANSWERS = True
    STRINGS = True
    URLS = ("https://arxiv.org/abs/2309.07852", "https://github.com/chaitanyamalaviya/ExpertQA")

    def score(
        self, predictions: list[Any], references: list[Any], seed: int = 0, per_question: bool = False
    ) -> dict[str, Any]:
        result = lfqa_rouge(references, predictions, seed=seed)
        if not per_question:
            del result["per_question"]
        return result | self.provenance(
            references, rouge=backend_version(), stemmer="none", bootstrap=1000, bootstrap_seed=seed
        )
