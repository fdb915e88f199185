"""The agreement of ExpertQA's fact scores with the experts as an ``evaluate`` metric."""

from __future__ import annotations

from typing import Any, ClassVar

import evaluate

# ``evaluate`` reads the "From:" comments: its error for a missing package shows the address.
from qabench.adapters.metric import MetricModule  # From: git+https://github.com/qabench/qabench
from qabench.benchmarks.expertqa import metrics  # From: git+https://github.com/qabench/qabench


class ExpertqaFactscoreAgreement(MetricModule, evaluate.Metric):
    """How well fact scores of claims (FActScore) agree with experts.

    A score of at least 0.5 is compared with the labels Definitely correct and Probably correct:
    accuracy, micro F1, and precision, recall and F1 of both classes, overall and by system.

    Args:
        predictions: one of these for each row: the row itself with `fact_score` (a number from 0 to
            1, or None) in its claims, as in the config `factscores`; a list of scores, one for each
            claim of all its answers; or None if it has no scores.
        references: rows of the dataset with `answers`, whose claims have claim_string and
            correctness.
        per_question: also return the verdict of the fact score and of the experts on each claim.
    Returns:
        accuracy: float in [0, 1], or None if no claim counts.
        micro_f1: always equal to the accuracy. The official script prints it, too.
        correct, not_correct: {"precision", "recall", "f1", "support"} of each class. An undefined
            value is None (the official script prints 0).
        claims: the number of counted claims.
        skipped: the number of claims that are not counted, by reason: claims of abstaining answers,
            claims without correctness, claims without a fact score, and void claims (such as
            greetings).
        by_system: these scores and counts for each system.
        per_question: with per_question=True, for each row a list of {"predicted", "gold",
            "skipped"}, one per claim.
    Raises:
        InputError (a ValueError): nothing to score, lists of different lengths, a row, claim or
            score in another format, no score at all.
    Examples:
        >>> import qabench
        >>> metric = qabench.load_metric("expertqa_factscore_agreement")
        >>> claims = [
        ...     {"claim_string": "Water boils at 100 degrees.", "correctness": "Probably correct"},
        ...     {"claim_string": "It freezes at 5 degrees.", "correctness": "Definitely incorrect"},
        ...     {"claim_string": "I hope this helps!", "correctness": "Unsure"},
        ... ]
        >>> row = {"answers": [{"system": "bing_chat", "answer_string": "An answer.", "claims": claims}]}
        >>> result = metric.compute(predictions=[[0.5, 1.0, 1.0]], references=[row])
        >>> result["accuracy"], result["correct"]["precision"], result["skipped"]
        (0.5, 0.5, {'void claim': 1})
    """

    # ``qabench.adapters.declared.Declarations`` describes these attributes.
    BENCHMARK = "expertqa"
    GROUP = "fact_score_agreement"
    KEYS: ClassVar = {
        **metrics.agreement_keys("fact_score_agreement", "correct"),
        # With one label per claim, micro F1 over both classes equals the accuracy.
        "micro_f1": "fact_score_agreement.accuracy",
    }
    OPTIONS: ClassVar = {}
    BY = "system"
    REFERENCE = "answers"
    ROWS = True
    SCORER = metrics.annotation_scorer
    ITEMS = metrics.fact_scored_answers
    SIGNED = metrics.fact_scored_part
    COUNTS = metrics.fact_score_counts
    QUESTION = metrics.claims_of_answer
    TYPES: ClassVar[Any] = {
        "predictions": ["float64"],
        "references": {
            "answers": [
                {
                    "system": "string",
                    "answer_string": "string",
                    "claims": [{"claim_string": "string", "correctness": "string"}],
                }
            ]
        },
    }
    URLS = ("https://arxiv.org/abs/2309.07852", "https://github.com/chaitanyamalaviya/ExpertQA")
