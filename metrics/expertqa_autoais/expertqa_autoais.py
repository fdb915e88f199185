"""ExpertQA's AutoAIS as an ``evaluate`` metric."""

from __future__ import annotations

from typing import Any, ClassVar

import evaluate

from qabench.adapters.metric import MetricModule
from qabench.answers import is_list_of
from qabench.benchmarks.expertqa.agreement import FIELDS, autoais, scored_part
from qabench.benchmarks.expertqa.claims import (
    claimed_items,
    sentence_splitter,
    share_supported,
    with_labels,
)
from qabench.models import entailment


class ExpertqaAutoais(MetricModule, evaluate.Metric):
    """AutoAIS: the share of claims, among those that experts found fully supported by their
    evidence, that an entailment model also finds supported. It is averaged over answers (macro) and
    over claims (micro), with and without answers that abstain, overall and by system, as ExpertQA
    reports it. Without references, the model that QABENCH_NLI_MODEL names (by default the authors')
    labels the claims of any answers by their evidence, and all of them count. This is never official.

    Args:
        predictions: for each row, the row itself with `autoais_label` ("Y", "N" or None) in its
            claims, as in the config `autoais`, or a list of labels, one per claim, over all answers
            of the row, or None if it has no labels. Without references, a list of objects with
            `answer` or `claims`, and `evidence`.
        references: rows of the dataset with `answers`, whose claims have evidence, support and
            worthiness. Default: none.
        on_unlabeled: how a claim that counts but has no label is treated: "N" (official) or
            "exclude".
        per_question: also return the scores of each answer.
    Returns:
        macro, micro, macro_without_abstentions, micro_without_abstentions: floats in [0, 1], or
        None if no claim counts. answers, abstaining_answers, claims, claims_without_evidence,
        counted_claims, unlabeled:
            counts.
        by_system: the same for each system, which is what the official script prints.
        per_question: with per_question=True, for each row a list of {"system", "autoais",
            "counted_claims", "abstains"}, one per answer. Without references, the labeled claims of
            each answer.
        macro_interval, micro_interval, answers_without_claims: only without references: the 95%
            intervals over answers, and the number of answers that are left out.
    Raises:
        InputError (a ValueError): nothing to score, lists of different lengths, a row, claim or
            label in another format, no label at all, an unknown option. Without references:
            MissingExtra if a package is not installed, QabenchError if the model cannot be loaded.
    Examples:
        >>> import qabench
        >>> metric = qabench.load_metric("expertqa_autoais")
        >>> claim = {"evidence": ["a page"], "support": "Complete", "worthiness": "Yes"}
        >>> answer = {"system": "bing_chat", "answer_string": "An answer [1].", "claims": [claim, claim]}
        >>> result = metric.compute(predictions=[["Y", "N"], ["Y", "Y"]], references=[{"answers": [answer]}] * 2)
        >>> result["macro"], result["by_system"]["bing_chat"]["counted_claims"]
        (0.75, 4)
    """

    BENCHMARK = "expertqa"
    ROWS = True
    REFERENCE = "answers"
    OPTIONAL_REFERENCES = True
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

    def compute(self, *, predictions: Any = None, references: Any = None, **kwargs: Any) -> Any:
        """Compute the scores. Without references, score any answers by their evidence."""
        if references is None and is_list_of(predictions, dict):
            references = [None] * len(predictions)
        return super().compute(predictions=predictions, references=references, **kwargs)

    def score(
        self,
        predictions: list[Any],
        references: list[Any],
        on_unlabeled: str = "N",
        per_question: bool = False,
    ) -> dict[str, Any]:
        if not any(references):
            return self._any_answers(predictions, per_question)
        score = autoais(references, predictions, on_unlabeled=on_unlabeled)
        provenance = self.provenance(
            scored_part(references, FIELDS), unlabeled=on_unlabeled, labels="given"
        )
        return score.as_dict(per_question) | provenance

    def _any_answers(self, rows: list[Any], per_question: bool) -> dict[str, Any]:
        items = claimed_items(rows)
        claims = [claim for item in items for claim in item["claims"]]
        if claims and all(claim.get("label") is not None for claim in claims):
            labeled, labels = items, "given"
        else:
            model = entailment.load_entailment()
            labeled, labels = with_labels(items, model), model.name
        result = share_supported(labeled) | self.provenance(
            rows, unlabeled="N", counted="all claims", sentences=sentence_splitter()[0], labels=labels
        )
        if per_question:
            result["per_question"] = [item["claims"] for item in labeled]
        return result
