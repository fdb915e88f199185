"""The columns of ``Record.scores``, written for runs and files of predictions, from which the metrics are computed.

- claims, claims_with_evidence: counts over an answer's claims. abstains: 1 or 0.
- claims_counted, claims_supported: the number of claims that AutoAIS counts, and of those with the label Y.
- autoais_macro: claims_supported / claims_counted; absent if no claim counts.
- the same three with the suffix _without_abstentions: absent for an answer that abstains.
- autoais_agreement.tp, .tn, .fp, .fn: label Y or N against support Complete or not; the same for fact_score_agreement.
- fact_score_sum, claims_with_fact_score: the sum of the claims' fact scores, and the number of claims that have one.
- rouge1, rouge2, rougeL, rougeLsum: F-measures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from qabench.benchmarks.expertqa.agreement import Agreement, JudgedClaim
from qabench.benchmarks.expertqa.annotations import abstains
from qabench.benchmarks.expertqa.autoais import AnswerAutoAIS

WITHOUT_ABSTENTIONS = "_without_abstentions"


def of_answer(answer: str, claims: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """claims, claims_with_evidence and abstains of an answer and its claims with a field ``evidence``."""
    with_evidence = sum(bool(claim["evidence"]) for claim in claims)
    return {"claims": len(claims), "claims_with_evidence": with_evidence, "abstains": int(abstains(answer))}


def of_autoais(answer: AnswerAutoAIS) -> dict[str, float]:
    """claims_counted, claims_supported and autoais_macro, with and without abstentions."""
    found: dict[str, float] = {"claims_counted": len(answer.values), "claims_supported": sum(answer.values)}
    if answer.mean is not None:
        found["autoais_macro"] = answer.mean
    return found if answer.abstains else found | {name + WITHOUT_ABSTENTIONS: value for name, value in found.items()}


def of_agreement(family: str, claims: Sequence[JudgedClaim]) -> dict[str, float]:
    """The four counts of claims, with the family's name as the prefix."""
    return {f"{family}.{name}": count for name, count in asdict(Agreement.of(claims)).items()}


def of_fact_scores(claims: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """fact_score_sum and claims_with_fact_score of claims with a field ``fact_score``, which may be None."""
    values = [claim["fact_score"] for claim in claims if claim.get("fact_score") is not None]
    return {"fact_score_sum": sum(values), "claims_with_fact_score": len(values)}


def as_row(answer: str, claims: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """An answer without experts' labels as a row for ``autoais``, in which all claims count."""
    judged = [
        {
            "claim_string": claim["claim_string"],
            "evidence": claim["evidence"],
            "support": "Complete",
            "worthiness": "Yes",
        }
        for claim in claims
    ]
    return {"answers": [{"system": "model", "answer_string": answer, "claims": judged}]}
