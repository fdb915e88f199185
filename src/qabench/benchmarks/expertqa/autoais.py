"""ExpertQA's AutoAIS, the share of claims that a model labels as attributed, and its agreement with the experts.

Source: Malaviya et al., ExpertQA, NAACL 2024 (https://arxiv.org/abs/2309.07852); ``compute_autoais_score.py`` and
``compute_human_correlation.py`` below ``modeling/auto_attribution`` of its repository.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from qabench.benchmarks.expertqa.agreement import (
    AUTOAIS_LABEL,
    Agreement,
    AgreementScore,
    Answer,
    Claim,
    JudgedClaim,
    abstains,
    read_answers,
    with_systems,
)
from qabench.errors import InputError

FIELDS = ("evidence", "support", "worthiness")  # the fields of a claim that these scores use
ON_UNLABELED = ("N", "exclude")


@dataclass(frozen=True, slots=True)
class AnswerAutoAIS:
    """The score of one answer: for each counted claim 1 if its label is Y, else 0; and numbers of claims.

    Claims without evidence are never counted; ``unlabeled`` ones would count, but have no label.
    """

    system: str
    abstains: bool
    values: tuple[int, ...]
    claims: int
    claims_without_evidence: int
    unlabeled: int

    @property
    def mean(self) -> float | None:
        """Return the share of counted claims with the label Y; None if no claim counts."""
        return _mean(self.values)

    def as_dict(self) -> dict[str, Any]:
        """Return autoais, counted_claims, system and abstains."""
        return {
            "system": self.system,
            "autoais": self.mean,
            "counted_claims": len(self.values),
            "abstains": self.abstains,
        }


@dataclass(frozen=True, slots=True)
class AutoAISScore:
    """The answers of each row, in the order of the input."""

    per_question: tuple[tuple[AnswerAutoAIS, ...], ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the scores of all answers, and in ``by_system`` those of each system; see ``summary``."""
        return with_systems([answer for row in self.per_question for answer in row], summary)


def summary(answers: Sequence[AnswerAutoAIS]) -> dict[str, Any]:
    """Return the scores of answers, as the official script prints them.

    Returns:
        macro: the mean over answers with counted claims of their share of claims with the label Y.
        micro: the share of claims with the label Y among all counted claims.
        macro_without_abstentions, micro_without_abstentions: the same for answers that do not abstain.
        answers, abstaining_answers, claims, claims_without_evidence, counted_claims, unlabeled: counts.
        The scores are fractions, or None if no claim counts.
    """
    answering = [answer for answer in answers if not answer.abstains]
    return {
        **_means(answers),
        **{f"{name}_without_abstentions": mean for name, mean in _means(answering).items()},
        "answers": len(answers),
        "abstaining_answers": len(answers) - len(answering),
        "claims": sum(answer.claims for answer in answers),
        "claims_without_evidence": sum(answer.claims_without_evidence for answer in answers),
        "counted_claims": sum(len(answer.values) for answer in answers),
        "unlabeled": sum(answer.unlabeled for answer in answers),
    }


def autoais(references: Sequence[Any], predictions: Sequence[Any], *, on_unlabeled: str = "N") -> AutoAISScore:
    """Compute AutoAIS: the share of the claims that the experts found fully supported that a model labels Y.

    Args:
        references: rows of the dataset, with the experts' labels.
        predictions: rows with ``autoais_label`` in their claims, or lists of "Y" and "N"; see ``read_answers``.
        on_unlabeled: "N": a claim without a label counts as N, as upstream; "exclude": it does not count.

    Raises:
        InputError: see ``read_answers``; an unknown option.
    """
    rows = _labeled(references, predictions, on_unlabeled)
    return AutoAISScore(tuple(tuple(score_answer(answer, on_unlabeled) for answer in row) for row in rows))


def autoais_agreement(
    references: Sequence[Any], predictions: Sequence[Any], *, on_unlabeled: str = "N"
) -> AgreementScore:
    """Compare AutoAIS labels with the experts: Y against support Complete, on claims whose worthiness is not No.

    The official script prints accuracy, and precision, recall and F1 of both classes. A claim with
    neither evidence nor label counts as N, as in the official labels. Arguments and errors are those of ``autoais``.
    """
    rows = _labeled(references, predictions, on_unlabeled)
    judged = [[_judged(each.system, claim, on_unlabeled) for each in row for claim in each.claims] for row in rows]
    return AgreementScore(judged, _agreement)


def score_answer(answer: Answer, on_unlabeled: str = "N") -> AnswerAutoAIS:
    """Score one answer.

    A claim counts if it has evidence, its support is Complete and its worthiness is Yes. For the system gpt4, claims
    with "http" in their evidence are not counted, as in the official script (whose comment says the opposite).
    """
    with_evidence = [claim for claim in answer.claims if claim.fields["evidence"]]
    counted = [claim for claim in with_evidence if _counts(claim, answer.system)]
    labeled = [claim for claim in counted if claim.verdict is not None]
    scored = labeled if on_unlabeled == "exclude" else counted
    return AnswerAutoAIS(
        answer.system,
        answer.abstains,
        tuple(int(claim.verdict == "Y") for claim in scored),
        len(answer.claims),
        len(answer.claims) - len(with_evidence),
        len(counted) - len(labeled),
    )


def unjudged_answer(text: str, claims: Sequence[Mapping[str, Any]], labels: Sequence[str | None]) -> Answer:
    """Return an answer without experts' labels for ``score_answer``: all of its claims with evidence count."""
    full = {"support": "Complete", "worthiness": "Yes"}
    judged = zip(claims, labels, strict=True)
    return Answer(
        "model", abstains(text), tuple(Claim(full | {"evidence": claim["evidence"]}, label) for claim, label in judged)
    )


def _labeled(references: Sequence[Any], predictions: Sequence[Any], on_unlabeled: object) -> list[list[Answer]]:
    if on_unlabeled not in ON_UNLABELED:
        raise InputError(f"unknown on_unlabeled {on_unlabeled!r}; allowed: {', '.join(ON_UNLABELED)}")
    return read_answers(references, predictions, AUTOAIS_LABEL, FIELDS)


def _counts(claim: Claim, system: str) -> bool:
    if system == "gpt4" and any("http" in text for text in claim.fields["evidence"]):
        return False
    return bool(claim.fields["support"] == "Complete" and claim.fields["worthiness"] == "Yes")


def _judged(system: str, claim: Claim, on_unlabeled: str) -> JudgedClaim:
    if claim.fields["worthiness"] == "No":
        return JudgedClaim(system, skipped="not worth a citation")
    unlabeled = claim.verdict is None and bool(claim.fields["evidence"])
    if unlabeled and on_unlabeled == "exclude":
        return JudgedClaim(system, skipped="unlabeled", unlabeled=True)
    return JudgedClaim(system, claim.verdict == "Y", claim.fields["support"] == "Complete", unlabeled=unlabeled)


def _agreement(claims: Sequence[JudgedClaim]) -> dict[str, Any]:
    counts = Agreement.of(claims)
    classes = {"complete": counts.of_class(), "not_complete": counts.inverse.of_class()}
    unlabeled = sum(claim.unlabeled for claim in claims)
    return {"accuracy": counts.accuracy, **classes, **asdict(counts), "unlabeled": unlabeled}


def _means(answers: Sequence[AnswerAutoAIS]) -> dict[str, float | None]:
    return {
        "macro": _mean([answer.mean for answer in answers if answer.mean is not None]),
        "micro": _mean([value for answer in answers for value in answer.values]),
    }


def _mean(values: Sequence[float]) -> float | None:
    # NumPy's mean, as in the official script: the last digit depends on the order of additions.
    return float(np.mean(values)) if values else None
