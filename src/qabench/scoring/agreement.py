"""How well a model's verdicts on claims agree with the experts': ExpertQA's accuracy, precision, recall and F1.

The arithmetic is scikit-learn's, which the official scripts call; a test holds the equality.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class JudgedClaim:
    """A claim as two judged it.

    Attributes:
        system: whose answer it is of.
        predicted: the model's verdict. gold: the experts'. Both None for a claim that is not counted.
        skipped: why it is not counted; None for one that is.
        unlabelled: whether the model should have judged it and did not; it can be counted all the same.
    """

    system: str
    predicted: bool | None = None
    gold: bool | None = None
    skipped: str | None = None
    unlabelled: bool = False

    def as_dict(self) -> dict[str, Any]:
        """predicted, gold and skipped."""
        return {"predicted": self.predicted, "gold": self.gold, "skipped": self.skipped}


@dataclass(frozen=True, slots=True)
class Agreement:
    """Counts of claims by verdict and label.

    Attributes:
        tp: both yes. tn: both no. fp: the model alone says yes. fn: the experts alone do.
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
        """How many claims are counted."""
        return self.tp + self.tn + self.fp + self.fn

    @property
    def positives(self) -> int:
        """How many of them are yes to the experts."""
        return self.tp + self.fn

    @property
    def accuracy(self) -> float | None:
        """The share of claims with equal verdicts; None for no claims."""
        return _ratio(self.tp + self.tn, self.claims)

    @property
    def precision(self) -> float | None:
        """The share of the model's yes that is the experts', too; None where it never says yes."""
        return _ratio(self.tp, self.tp + self.fp)

    @property
    def recall(self) -> float | None:
        """The share of the experts' yes that is the model's, too; None where they never say yes."""
        return _ratio(self.tp, self.positives)

    @property
    def f1(self) -> float | None:
        """2 tp / (2 tp + fp + fn); None where neither ever says yes."""
        return _ratio(2 * self.tp, 2 * self.tp + self.fp + self.fn)

    def of_class(self) -> dict[str, Any]:
        """precision, recall, f1 and support (the number of claims) of yes; None where undefined."""
        return {"precision": self.precision, "recall": self.recall, "f1": self.f1, "support": self.positives}

    @property
    def inverse(self) -> Agreement:
        """The same claims with no for yes: its precision is that of no."""
        return Agreement(self.tn, self.tp, self.fn, self.fp)


def by_system(
    rows: Iterable[Iterable[JudgedClaim]], figures: Callable[[Sequence[JudgedClaim]], dict[str, Any]]
) -> dict[str, Any]:
    """The scores of all claims, and in ``by_system`` those of each system, in the order of first appearance.

    Args:
        rows: the claims of each row.
        figures: computes the scores of claims. The result has in addition claims, the number of counted claims, and
            skipped, the number of the others by reason.
    """
    claims = [claim for row in rows for claim in row]
    systems: dict[str, list[JudgedClaim]] = {}
    for claim in claims:
        systems.setdefault(claim.system, []).append(claim)
    return (
        _counts(claims)
        | figures(claims)
        | {"by_system": {system: _counts(own) | figures(own) for system, own in systems.items()}}
    )


def _counts(claims: Sequence[JudgedClaim]) -> dict[str, Any]:
    skipped = Counter(claim.skipped for claim in claims if claim.skipped is not None)
    return {"claims": len(claims) - skipped.total(), "skipped": dict(skipped)}


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None
