"""ExpertQA's AutoAIS, the share of claims that a model labels as attributed, and its agreement with the experts.

Source: Malaviya et al., ExpertQA, NAACL 2024 (https://arxiv.org/abs/2309.07852); ``compute_autoais_score.py`` and
``compute_human_correlation.py`` below ``modeling/auto_attribution`` of its repository.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from qabench.benchmarks.expertqa.agreement import Agreement, JudgedClaim, by_system
from qabench.benchmarks.expertqa.annotations import AUTOAIS_LABEL, Answer, Claim, read_answers
from qabench.errors import InputError

FIELDS = ("evidence", "support", "worthiness")  # the fields of a claim that these scores use
ON_UNLABELED = ("N", "exclude")


@dataclass(frozen=True, slots=True)
class AnswerAutoAIS:
    """The score of one answer.

    Attributes:
        values: for each counted claim, 1 if its label is Y, else 0.
        claims: the number of claims.
        claims_without_evidence: the number of claims without evidence, which are never counted.
        unlabeled: the number of claims that would count, but have no label.
    """

    system: str
    abstains: bool
    values: tuple[int, ...]
    claims: int
    claims_without_evidence: int
    unlabeled: int

    @property
    def mean(self) -> float | None:
        """The share of counted claims with the label Y; None if no claim counts."""
        return _mean(self.values)

    def as_dict(self) -> dict[str, Any]:
        """autoais, counted_claims, system and abstains."""
        return {
            "system": self.system,
            "autoais": self.mean,
            "counted_claims": len(self.values),
            "abstains": self.abstains,
        }


@dataclass(frozen=True, slots=True)
class AutoAIS:
    """Scores of a set of answers, as fractions; None if no claim counts.

    Attributes:
        macro: the mean over answers with counted claims of their share of claims with the label Y.
        micro: the share of claims with the label Y among all counted claims.
        macro_without_abstentions: macro for answers that do not abstain.
        micro_without_abstentions: micro for answers that do not abstain.
        answers: the number of answers.
        abstaining_answers: the number of answers that abstain.
        claims: the number of claims.
        claims_without_evidence: the number of claims without evidence.
        counted_claims: the number of claims in the means.
        unlabeled: the number of claims that would count, but have no label.
    """

    macro: float | None
    micro: float | None
    macro_without_abstentions: float | None
    micro_without_abstentions: float | None
    answers: int
    abstaining_answers: int
    claims: int
    claims_without_evidence: int
    counted_claims: int
    unlabeled: int

    @classmethod
    def of(cls, answers: Sequence[AnswerAutoAIS]) -> AutoAIS:
        """The scores of a list of answers."""
        kept = [answer for answer in answers if not answer.abstains]
        return cls(
            _macro(answers),
            _micro(answers),
            _macro(kept),
            _micro(kept),
            len(answers),
            len(answers) - len(kept),
            sum(answer.claims for answer in answers),
            sum(answer.claims_without_evidence for answer in answers),
            sum(len(answer.values) for answer in answers),
            sum(answer.unlabeled for answer in answers),
        )


@dataclass(frozen=True, slots=True)
class AutoAISScore:
    """The answers of each row, in the order of the input."""

    per_question: tuple[tuple[AnswerAutoAIS, ...], ...]

    def as_dict(self) -> dict[str, Any]:
        """The scores of all answers, and in ``by_system`` those of each system, as the official script prints them."""
        answers = [answer for row in self.per_question for answer in row]
        systems: dict[str, list[AnswerAutoAIS]] = {}
        for answer in answers:
            systems.setdefault(answer.system, []).append(answer)
        return asdict(AutoAIS.of(answers)) | {
            "by_system": {system: asdict(AutoAIS.of(own)) for system, own in systems.items()}
        }


@dataclass(frozen=True, slots=True)
class AutoAISAgreement:
    """The claims of each row with the verdicts of the model and of the experts, in the order of the input."""

    per_question: tuple[tuple[JudgedClaim, ...], ...]

    def as_dict(self) -> dict[str, Any]:
        """accuracy, precision, recall, F1 and support of both classes, counts; ``by_system``: the same by system."""
        return by_system(self.per_question, _agreement)


def autoais(references: Sequence[Any], predictions: Sequence[Any], *, on_unlabeled: str = "N") -> AutoAISScore:
    """AutoAIS of answers: the share of the claims that the experts found fully supported that a model labels Y.

    A claim counts if it has evidence, its support is Complete and its worthiness is Yes. For the system gpt4, claims
    with "http" in their evidence are not counted, as in the official script (whose comment says the opposite).

    Args:
        references: rows of the dataset, with the experts' labels.
        predictions: rows with ``autoais_label`` in their claims, or lists of "Y" and "N"; see ``read_answers``.
        on_unlabeled: "N": a claim without a label counts as N, as upstream; "exclude": it does not count.

    Raises:
        InputError: see ``read_answers``; an unknown option.
    """
    _check_option(on_unlabeled)
    rows = read_answers(references, predictions, AUTOAIS_LABEL, FIELDS)
    return AutoAISScore(tuple(tuple(_score(answer, on_unlabeled) for answer in row) for row in rows))


def autoais_agreement(
    references: Sequence[Any], predictions: Sequence[Any], *, on_unlabeled: str = "N"
) -> AutoAISAgreement:
    """Agreement of AutoAIS labels with the experts: Y against support Complete, on claims whose worthiness is not No.

    The official script prints accuracy, and precision, recall and F1 of both classes. A claim with
    neither evidence nor label counts as N, as in the official labels.

    Args:
        references: as ``autoais``.
        predictions: as ``autoais``.
        on_unlabeled: as ``autoais``.

    Raises:
        InputError: as ``autoais``.
    """
    _check_option(on_unlabeled)
    rows = read_answers(references, predictions, AUTOAIS_LABEL, FIELDS)
    return AutoAISAgreement(
        tuple(
            tuple(_judged(answer.system, claim, on_unlabeled) for answer in row for claim in answer.claims)
            for row in rows
        )
    )


def _score(answer: Answer, on_unlabeled: str) -> AnswerAutoAIS:
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
    found = {"accuracy": counts.accuracy, "complete": counts.of_class(), "not_complete": counts.inverse.of_class()}
    return found | asdict(counts) | {"unlabeled": sum(claim.unlabeled for claim in claims)}


def _macro(answers: Iterable[AnswerAutoAIS]) -> float | None:
    return _mean([answer.mean for answer in answers if answer.mean is not None])


def _micro(answers: Iterable[AnswerAutoAIS]) -> float | None:
    return _mean([value for answer in answers for value in answer.values])


def _mean(values: Sequence[float]) -> float | None:
    # NumPy's mean, as in the official script: the last digit depends on the order of additions.
    return float(np.mean(values)) if values else None


def _check_option(on_unlabeled: object) -> None:
    if on_unlabeled not in ON_UNLABELED:
        raise InputError(f"unknown on_unlabeled {on_unlabeled!r}; allowed: {', '.join(ON_UNLABELED)}")
