"""The agreement of ExpertQA's AutoAIS labels with the experts as an ``evaluate`` metric."""

from __future__ import annotations

from typing import Any, ClassVar

import evaluate

# ``evaluate`` reads the "From:" comments: its error for a missing package shows the address.
from qabench.adapters.metric import MetricModule  # From: git+https://github.com/qabench/qabench
from qabench.benchmarks.expertqa import metrics  # From: git+https://github.com/qabench/qabench


class ExpertqaAutoaisAgreement(MetricModule, evaluate.Metric):
    """How well AutoAIS labels of claims agree with experts.

    A model's label Y is compared with the experts' support Complete, on the claims that need a
    citation: accuracy, and precision, recall and F1 of both classes, overall and by system.

    Args:
        predictions: one of these for each row: the row itself with `autoais_label` ("Y", "N" or
            None) in its claims, as in the config `autoais`; a list of labels, one for each claim of
            all its answers; or None if it has no labels.
        references: rows of the dataset with `answers`, whose claims have evidence, support and
            worthiness.
        on_unlabeled: how a claim with evidence but no label is treated: "N" (official) or
            "exclude". A claim with neither evidence nor label is always N.
        per_question: also return the model's and the experts' verdict on each claim.
    Returns:
        accuracy: float in [0, 1], or None if no claim counts.
        complete, not_complete: {"precision", "recall", "f1", "support"} of each class. An undefined
            value is None (the official script prints 0).
        claims: the number of counted claims.
        skipped: the number of claims that are not counted, by reason.
        tp, tn, fp, fn: counts of claims. The positive class is Y for the model, and support Complete
            for the experts.
        unlabeled: the number of claims with evidence and without a label.
        by_system: these scores and counts for each system.
        per_question: with per_question=True, for each row a list of {"predicted", "gold",
            "skipped"}, one per claim.
    Raises:
        InputError (a ValueError): nothing to score, lists of different lengths, a row, claim or
            label in another format, no label at all, an unknown option.
    Examples:
        >>> import qabench
        >>> metric = qabench.load_metric("expertqa_autoais_agreement")
        >>> claims = [
        ...     {"evidence": ["a page"], "support": "Complete", "worthiness": "Yes"},
        ...     {"evidence": ["a page"], "support": "Partial", "worthiness": "Yes"},
        ... ]
        >>> row = {"answers": [{"system": "bing_chat", "answer_string": "An answer [1][2].", "claims": claims}]}
        >>> result = metric.compute(predictions=[["Y", "Y"]], references=[row])
        >>> result["accuracy"], result["complete"]["recall"], result["not_complete"]["recall"]
        (0.5, 1.0, 0.0)
    """

    # ``qabench.adapters.declared.Declarations`` describes these attributes.
    BENCHMARK = "expertqa"
    GROUP = "autoais_agreement"
    KEYS: ClassVar = metrics.agreement_keys("autoais_agreement", "complete")
    OPTIONS: ClassVar = {"on_unlabeled": "on_unlabeled"}
    BY = "system"
    REFERENCE = "answers"
    ROWS = True
    SCORER = metrics.annotation_scorer
    ITEMS = metrics.labeled_answers
    SIGNED = metrics.labeled_part
    COUNTS = metrics.agreement_counts
    QUESTION = metrics.claims_of_answer
    TYPES: ClassVar[Any] = {
        "predictions": ["string"],
        "references": {
            "answers": [
                {
                    "system": "string",
                    "answer_string": "string",
                    "claims": [
                        {
                            "claim_string": "string",
                            "evidence": ["string"],
                            "support": "string",
                            "worthiness": "string",
                        }
                    ],
                }
            ]
        },
    }
    URLS = ("https://arxiv.org/abs/2309.07852", "https://github.com/chaitanyamalaviya/ExpertQA")
