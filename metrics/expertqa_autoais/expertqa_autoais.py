"""ExpertQA's AutoAIS as an ``evaluate`` metric."""

from __future__ import annotations

from typing import Any, ClassVar

import evaluate

# ``evaluate`` reads the "From:" comments: its error for a missing package shows the address.
from qabench.adapters.declared import Declarations  # From: git+https://github.com/qabench/qabench
from qabench.adapters.metric import MetricModule  # From: git+https://github.com/qabench/qabench
from qabench.benchmarks.expertqa import metrics  # From: git+https://github.com/qabench/qabench


class WithoutReferences(Declarations):
    """AutoAIS of answers whose claims no expert has judged, so that all claims count."""

    BENCHMARK = "expertqa"
    GROUP = "autoais"
    # ``KEYS`` is empty because ``TOTALS`` returns the scores, together with their intervals.
    KEYS: ClassVar = {}
    OPTIONS: ClassVar = {}
    SCORER = metrics.own_claims_scorer
    ITEMS = metrics.own_answers
    SIGNED = metrics.own_part
    TOTALS = metrics.own_totals
    QUESTION = metrics.own_claims


class ExpertqaAutoais(MetricModule, evaluate.Metric):
    """The share of claims that an entailment model finds supported by their evidence (AutoAIS).

    A claim counts only if it has evidence, needs a citation, and was found fully supported by
    experts. The share is averaged over answers (macro) and over claims (micro), with and without
    answers that abstain, overall and by system, as ExpertQA reports it. Without references, the
    answers can be of any system: the model that QABENCH_NLI_MODEL names (by default the authors'
    model) labels their claims by the evidence, and all claims count. Such scores are never
    official.

    Args:
        predictions: with references, one of these for each row: the row itself with `autoais_label`
            ("Y", "N" or None) in its claims, as in the config `autoais`; a list of labels, one for
            each claim of all its answers; or None if it has no labels. Without references, a list
            of objects with `answer` or `claims`, and `evidence`.
        references: rows of the dataset with `answers`, whose claims have evidence, support and
            worthiness. Default: none.
        on_unlabeled: how a claim that counts but has no label is treated: "N" (official) or
            "exclude".
        per_question: also return the scores of each answer.
    Returns:
        macro, micro, macro_without_abstentions, micro_without_abstentions: floats in [0, 1], or
            None if no claim counts.
        answers, abstaining_answers, claims, claims_without_evidence, counted_claims, unlabeled:
            counts.
        by_system: these scores and counts for each system, as the official script prints them.
        per_question: with per_question=True, for each row a list of {"system", "autoais",
            "counted_claims", "abstains"}, one per answer. Without references, the labeled claims of
            each answer.
        macro_interval, micro_interval, answers_without_claims: only without references: the 95%
            intervals over answers, and the number of answers that are left out because they have no
            claims.
    Raises:
        InputError (a ValueError): nothing to score, lists of different lengths, a row, claim or
            label in another format, no label at all, an unknown option. Without references:
            MissingExtra if a package is not installed, QabenchError if the model cannot be loaded.
    Examples:
        >>> import qabench
        >>> metric = qabench.load_metric("expertqa_autoais")
        >>> claim = {"evidence": ["a page"], "support": "Complete", "worthiness": "Yes"}
        >>> answer = {"system": "bing_chat", "answer_string": "An answer [1].", "claims": [claim, claim]}
        >>> result = metric.compute(
        ...     predictions=[["Y", "N"], ["Y", "Y"]], references=[{"answers": [answer]}] * 2
        ... )
        >>> result["macro"], result["by_system"]["bing_chat"]["counted_claims"]
        (0.75, 4)
    """

    # ``qabench.adapters.declared.Declarations`` describes these attributes.
    BENCHMARK = "expertqa"
    GROUP = "autoais"
    KEYS: ClassVar = {
        "macro": "autoais_macro",
        "micro": "autoais_micro",
        "macro_without_abstentions": "autoais_macro_without_abstentions",
        "micro_without_abstentions": "autoais_micro_without_abstentions",
    }
    OPTIONS: ClassVar = {"on_unlabeled": "on_unlabeled"}
    BY = "system"
    REFERENCE = "answers"
    ROWS = True
    WITHOUT_REFERENCES = WithoutReferences
    SCORER = metrics.annotation_scorer
    ITEMS = metrics.labeled_answers
    SIGNED = metrics.labeled_part
    COUNTS = metrics.autoais_counts
    QUESTION = metrics.autoais_of_answer
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
