"""The agreement of ExpertQA's fact scores with the experts as an ``evaluate`` metric."""

from __future__ import annotations

from typing import Any

import evaluate

from qabench.metric_module import MetricModule, decoded
from qabench.scoring.expertqa import scored_part
from qabench.scoring.factscore import FIELDS, THRESHOLD, factscore_agreement

_DESCRIPTION = """
How well the fact scores of claims, after FActScore, agree with experts: a score of at least 0.5 against Definitely or
Probably correct, as accuracy, micro F1, and precision, recall and F1 of both classes, overall and by system.
"""
_KWARGS_DESCRIPTION = """
Args:
    predictions: for each row its fact scores: the row itself with `fact_score` (a number from 0 to 1, or None) in its
        claims, as config `factscores` has it; or a list of scores, one a claim, over all answers of the row; or None.
    references: rows of the dataset, with `answers` and in their claims claim_string and correctness.
    per_question: also give each claim's two verdicts.
    references_format: "json" or "python" says which form the references have; "auto" takes them for JSON when all are.
Returns:
    accuracy: float in [0, 1]; None where no claim counts. micro_f1: the same number, as the official script prints it.
    correct, not_correct: each {"precision", "recall", "f1", "support"}; None where undefined (the official 0).
    claims: how many are counted. skipped: how many are not, by reason: claims of abstaining answers, without
        correctness, without fact score, and void ones (greetings and the like).
    by_system: the same for each system.
    signature: everything the scores depend on, in one line.
    deviations: what distinguishes the scores from the official ones, in sentences; empty if they are official.
    per_question: with per_question=True, for each row a list of {"predicted", "gold", "skipped"}, one a claim.
Raises:
    InputError (a ValueError): nothing to score, lists of unlike length, a row, claim or score of another shape, no
    score at all.
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


class ExpertqaFactscoreAgreement(MetricModule, evaluate.Metric):
    """See ``DESCRIPTION`` and ``INPUTS``."""

    BENCHMARK = "expertqa"
    DESCRIPTION = _DESCRIPTION
    INPUTS = _KWARGS_DESCRIPTION
    URLS = ("https://arxiv.org/abs/2309.07852", "https://github.com/chaitanyamalaviya/ExpertQA")

    def _compute(
        self,
        predictions: list[str],
        references: list[str],
        per_question: bool = False,
        references_format: str = "auto",
    ) -> dict[str, Any]:
        given, rows = decoded(predictions, references, references_format)
        score = factscore_agreement(rows, given)
        result = score.as_dict()
        result |= self.provenance(scored_part(rows, FIELDS), threshold=THRESHOLD)
        if per_question:
            result["per_question"] = [[claim.as_dict() for claim in row] for row in score.per_question]
        return result
