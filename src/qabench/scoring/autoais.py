"""ExpertQA's AutoAIS, the share of claims that a model finds attributed, and its agreement with the experts.

Source: Malaviya et al., ExpertQA, NAACL 2024 (https://arxiv.org/abs/2309.07852); ``compute_autoais_score.py`` and
``compute_human_correlation.py`` below ``modeling/auto_attribution`` of its repository.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from qabench.errors import InputError
from qabench.scoring.agreement import Agreement, JudgedClaim, by_system
from qabench.scoring.expertqa import AUTOAIS_LABEL, Answer, Claim, read_answers

FIELDS = ("evidence", "support", "worthiness")  # of a claim, what the scores here use
ON_UNLABELLED = ("N", "exclude")


@dataclass(frozen=True, slots=True)
class AnswerAutoAIS:
    """One answer.

    Attributes:
        values: 1 for each counted claim with the label Y, 0 for the others.
        claims: all its claims. claims_without_evidence: those that have none, which are never counted.
        unlabelled: claims that would count, but have no label.
    """

    system: str
    abstains: bool
    values: tuple[int, ...]
    claims: int
    claims_without_evidence: int
    unlabelled: int

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
        macro: the mean over answers of their share of claims with the label Y, answers without a counted claim left
            out. micro: the share over all counted claims.
        macro_without_abstentions, micro_without_abstentions: the same for answers that do not abstain.
        answers, abstaining_answers, claims, claims_without_evidence: counts.
        counted_claims: how many claims are in the means. unlabelled: how many claims that should be have no label.
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
    unlabelled: int

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
            sum(answer.unlabelled for answer in answers),
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
    """The claims of each row as the model and the experts judged them, in the order of the input."""

    per_question: tuple[tuple[JudgedClaim, ...], ...]

    def as_dict(self) -> dict[str, Any]:
        """accuracy, precision, recall, F1 and support of both classes, counts; ``by_system``: the same by system."""
        return by_system(self.per_question, _agreement)


def autoais(references: Sequence[Any], predictions: Sequence[Any], *, on_unlabelled: str = "N") -> AutoAISScore:
    """AutoAIS of answers: of the claims that the experts found fully supported, how many a model finds so, too.

    A claim counts when it has evidence, its support is Complete and its worthiness Yes. Of the system gpt4, claims
    with "http" in their evidence are passed over, as in the official script (whose comment says the opposite).

    Args:
        references: rows of the dataset, with the experts' labels.
        predictions: rows with ``autoais_label`` in their claims, or lists of "Y" and "N"; see ``read_answers``.
        on_unlabelled: how a counted claim without a label counts: as "N", as upstream, or not at all ("exclude").

    Raises:
        InputError: see ``read_answers``; an unknown option.
    """
    _check_option(on_unlabelled)
    rows = read_answers(references, predictions, AUTOAIS_LABEL, FIELDS)
    return AutoAISScore(tuple(tuple(_score(answer, on_unlabelled) for answer in row) for row in rows))


def autoais_agreement(
    references: Sequence[Any], predictions: Sequence[Any], *, on_unlabelled: str = "N"
) -> AutoAISAgreement:
    """Agreement of AutoAIS labels with the experts: Y against support Complete, over claims with worthiness not No.

    The official script prints accuracy, and precision, recall and F1 of both classes. A claim without evidence and
    without label counts as N, as the official labels have it.

    Args, Raises: as of ``autoais``.
    """
    _check_option(on_unlabelled)
    rows = read_answers(references, predictions, AUTOAIS_LABEL, FIELDS)
    return AutoAISAgreement(
        tuple(
            tuple(_judged(answer.system, claim, on_unlabelled) for answer in row for claim in answer.claims)
            for row in rows
        )
    )


def _score(answer: Answer, on_unlabelled: str) -> AnswerAutoAIS:
    with_evidence = [claim for claim in answer.claims if claim.fields["evidence"]]
    counted = [claim for claim in with_evidence if _counts(claim, answer.system)]
    labelled = [claim for claim in counted if claim.verdict is not None]
    scored = labelled if on_unlabelled == "exclude" else counted
    return AnswerAutoAIS(
        answer.system,
        answer.abstains,
        tuple(int(claim.verdict == "Y") for claim in scored),
        len(answer.claims),
        len(answer.claims) - len(with_evidence),
        len(counted) - len(labelled),
    )


def _counts(claim: Claim, system: str) -> bool:
    if system == "gpt4" and any("http" in text for text in claim.fields["evidence"]):
        return False
    return bool(claim.fields["support"] == "Complete" and claim.fields["worthiness"] == "Yes")


def _judged(system: str, claim: Claim, on_unlabelled: str) -> JudgedClaim:
    if claim.fields["worthiness"] == "No":
        return JudgedClaim(system, skipped="not worth a citation")
    unlabelled = claim.verdict is None and bool(claim.fields["evidence"])
    if unlabelled and on_unlabelled == "exclude":
        return JudgedClaim(system, skipped="unlabelled", unlabelled=True)
    return JudgedClaim(system, claim.verdict == "Y", claim.fields["support"] == "Complete", unlabelled=unlabelled)


def _agreement(claims: Sequence[JudgedClaim]) -> dict[str, Any]:
    counts = Agreement.of(claims)
    found = {"accuracy": counts.accuracy, "complete": counts.of_class(), "not_complete": counts.inverse.of_class()}
    return found | asdict(counts) | {"unlabelled": sum(claim.unlabelled for claim in claims)}


def _macro(answers: Iterable[AnswerAutoAIS]) -> float | None:
    return _mean([answer.mean for answer in answers if answer.mean is not None])


def _micro(answers: Iterable[AnswerAutoAIS]) -> float | None:
    return _mean([value for answer in answers for value in answer.values])


def _mean(values: Sequence[float]) -> float | None:
    # NumPy's, as in the official script: the last digit depends on how the sum is made.
    return float(np.mean(values)) if values else None


def _check_option(on_unlabelled: object) -> None:
    if on_unlabelled not in ON_UNLABELLED:
        raise InputError(f"unknown on_unlabelled {on_unlabelled!r}; allowed: {', '.join(ON_UNLABELLED)}")
