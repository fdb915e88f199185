"""ExpertQA's AutoAIS as an ``evaluate`` metric."""

from __future__ import annotations

from typing import Any

import evaluate

from qabench.metric_module import MetricModule, decoded
from qabench.scoring.autoais import FIELDS, autoais
from qabench.scoring.expertqa import scored_part

_DESCRIPTION = """
AutoAIS: of the claims of a system's answers that experts found fully supported by their evidence, the share that a
model of entailment finds supported, too; the mean over answers (macro) and over claims (micro), with and without the
answers that abstain, by system, as ExpertQA reports it.
"""
_KWARGS_DESCRIPTION = """
Args:
    predictions: for each row its labels: the row itself with `autoais_label` ("Y", "N" or None) in its claims, as
        config `autoais` has it; or a list of labels, one a claim, over all answers of the row; or None: no labels.
    references: rows of the dataset, with `answers` and in their claims evidence, support and worthiness.
    on_unlabelled: how a claim that counts but has no label is treated: "N" (official) or "exclude".
    per_question: also give each answer's scores.
    references_format: "json" or "python" says which form the references have; "auto" takes them for JSON when all are.
Returns:
    macro, micro, macro_without_abstentions, micro_without_abstentions: floats in [0, 1]; None where no claim counts.
    answers, abstaining_answers, claims, claims_without_evidence, counted_claims, unlabelled: counts.
    by_system: the same for each system, which is what the official script prints.
    signature: everything the scores depend on, in one line.
    deviations: what distinguishes the scores from the official ones, in sentences; empty if they are official.
    per_question: with per_question=True, for each row a list of {"system", "autoais", "counted_claims", "abstains"},
        one an answer.
Raises:
    InputError (a ValueError): nothing to score, lists of unlike length, a row, claim or label of another shape, no
    label at all, an unknown option.
Examples:
    >>> import qabench
    >>> metric = qabench.load_metric("expertqa_autoais")
    >>> claim = {"evidence": ["a page"], "support": "Complete", "worthiness": "Yes"}
    >>> answer = {"system": "bing_chat", "answer_string": "An answer [1].", "claims": [claim, claim]}
    >>> result = metric.compute(predictions=[["Y", "N"], ["Y", "Y"]], references=[{"answers": [answer]}] * 2)
    >>> result["macro"], result["by_system"]["bing_chat"]["counted_claims"]
    (0.75, 4)
"""


class ExpertqaAutoais(MetricModule, evaluate.Metric):
    """See ``DESCRIPTION`` and ``INPUTS``."""

    BENCHMARK = "expertqa"
    DESCRIPTION = _DESCRIPTION
    INPUTS = _KWARGS_DESCRIPTION
    URLS = ("https://arxiv.org/abs/2309.07852", "https://github.com/chaitanyamalaviya/ExpertQA")

    def _compute(
        self,
        predictions: list[str],
        references: list[str],
        on_unlabelled: str = "N",
        per_question: bool = False,
        references_format: str = "auto",
    ) -> dict[str, Any]:
        given, rows = decoded(predictions, references, references_format)
        score = autoais(rows, given, on_unlabelled=on_unlabelled)
        result = score.as_dict()
        result |= self.provenance(scored_part(rows, FIELDS), unlabelled=on_unlabelled)
        if per_question:
            result["per_question"] = [[answer.as_dict() for answer in row] for row in score.per_question]
        return result
