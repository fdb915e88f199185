"""Agreement of a model's verdicts on claims with the experts': ExpertQA's accuracy, precision, recall and F1.

The scores equal those of scikit-learn, which the official scripts use; a test compares them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class JudgedClaim:
    """A claim with the verdicts of the model and of the experts.

    Attributes:
        system: the system that gave the answer.
        predicted: the model's verdict; None if the claim is not counted.
        gold: the experts' verdict; None if the claim is not counted.
        skipped: why the claim is not counted; None if it is.
        unlabeled: whether the model's label is missing; such a claim can still be counted.
    """

    system: str
    predicted: bool | None = None
    gold: bool | None = None
    skipped: str | None = None
    unlabeled: bool = False

    def as_dict(self) -> dict[str, Any]:
        """predicted, gold and skipped."""
        return {"predicted": self.predicted, "gold": self.gold, "skipped": self.skipped}


@dataclass(frozen=True, slots=True)
class Agreement:
    """Counts of claims by the two verdicts.

    Attributes:
        tp: model and experts say yes.
        tn: model and experts say no.
        fp: only the model says yes.
        fn: only the experts say yes.
    """

    tp: int
    tn: int
    fp: int
    fn: int

    @classmethod
    def of(cls, claims: Iterable[JudgedClaim]) -> Agreement:
        """The counts of the claims that are not skipped."""
        count = Counter((claim.predicted, claim.gold) for claim in claims if claim.skipped is None)
        return cls(count[True, True], count[False, False], count[True, False], count[False, True])

    @property
    def claims(self) -> int:
        """The number of counted claims."""
        return self.tp + self.tn + self.fp + self.fn

    @property
    def positives(self) -> int:
        """The number of claims for which the experts say yes."""
        return self.tp + self.fn

    @property
    def accuracy(self) -> float | None:
        """The share of claims with equal verdicts; None for no claims."""
        return _ratio(self.tp + self.tn, self.claims)

    @property
    def precision(self) -> float | None:
        """The share of claims with the model's verdict yes that also have the experts'; None if there are none."""
        return _ratio(self.tp, self.tp + self.fp)

    @property
    def recall(self) -> float | None:
        """The share of claims with the experts' verdict yes that also have the model's; None if there are none."""
        return _ratio(self.tp, self.positives)

    @property
    def f1(self) -> float | None:
        """2 tp / (2 tp + fp + fn); None if no claim has a verdict yes."""
        return _ratio(2 * self.tp, 2 * self.tp + self.fp + self.fn)

    def of_class(self) -> dict[str, Any]:
        """precision, recall, f1 and support (the number of claims) of the class yes; None if undefined."""
        return {"precision": self.precision, "recall": self.recall, "f1": self.f1, "support": self.positives}

    @property
    def inverse(self) -> Agreement:
        """The counts with yes and no exchanged: its precision is that of the class no."""
        return Agreement(self.tn, self.tp, self.fn, self.fp)


def by_system(
    rows: Iterable[Iterable[JudgedClaim]], scores: Callable[[Sequence[JudgedClaim]], dict[str, Any]]
) -> dict[str, Any]:
    """The scores of all claims, and in ``by_system`` those of each system, in the order of first appearance.

    Args:
        rows: the claims of each row.
        scores: computes the scores of claims. The result also has ``claims``, the number of counted claims, and
            ``skipped``, the number of other claims by reason.
    """
    claims = [claim for row in rows for claim in row]
    systems: dict[str, list[JudgedClaim]] = {}
    for claim in claims:
        systems.setdefault(claim.system, []).append(claim)
    return (
        _counts(claims)
        | scores(claims)
        | {"by_system": {system: _counts(own) | scores(own) for system, own in systems.items()}}
    )


def _counts(claims: Sequence[JudgedClaim]) -> dict[str, Any]:
    skipped = Counter(claim.skipped for claim in claims if claim.skipped is not None)
    return {"claims": len(claims) - skipped.total(), "skipped": dict(skipped)}


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None
