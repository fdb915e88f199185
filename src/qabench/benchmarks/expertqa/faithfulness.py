"""Faithfulness of answers to reference answers: the share of an answer's claims that the reference answer entails.

This project's own score. The authors of ExpertQA used QAFactEval for long-form answers: its package needs torch 1.6,
which cannot be installed any more. See ``qabench.models.entailment`` for the labels of claims.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from qabench.benchmarks.expertqa.factscore import CORRECT
from qabench.errors import InputError
from qabench.stats import Interval, bootstrap

MINIMUM = 3  # claims; a correlation of fewer is not computed
WORD = re.compile(r"\w+")
Labels = Sequence[Sequence[str]]
"""The labels of each answer's claims, "Y" or "N"."""


@dataclass(frozen=True, slots=True)
class Faithfulness:
    """The labels of answers' claims, and their scores with 95% intervals from whole answers drawn with replacement.

    Attributes:
        per_answer: (entailed claims, claims) of each answer, in the order of the input.
    """

    per_answer: tuple[tuple[int, int], ...]

    @property
    def claims(self) -> int:
        """Return the number of claims of all answers."""
        return sum(n for _, n in self.per_answer)

    def shares(self) -> list[float]:
        """Return the share of entailed claims of each answer, in [0, 1]; 0 for an answer without claims."""
        return [entailed / n if n else 0.0 for entailed, n in self.per_answer]

    def macro(self) -> Interval:
        """Return the mean of the shares over answers."""
        return bootstrap(np.array([[share, 1.0] for share in self.shares()]), _ratio)

    def micro(self) -> Interval | None:
        """Return the share of all claims that are entailed; None without claims."""
        return bootstrap(np.array(self.per_answer, dtype=float), _ratio) if self.claims else None


def faithfulness(labels: Labels) -> Faithfulness:
    """Score answers whose claims are labeled Y if the reference answer entails them, else N.

    Args:
        labels: one list per answer; [] for an answer without claims, such as an unanswered question.

    Raises:
        InputError: there are no answers.
    """
    if not labels:
        raise InputError("nothing to score: no answers")
    return Faithfulness(tuple((list(own).count("Y"), len(own)) for own in labels))


def correlation(labels: Labels, correctness: Sequence[Sequence[str | None]]) -> Interval | None:
    """Correlate (Pearson, phi) the label Y with the experts' judgment that a claim is correct, over claims.

    Correct is Definitely or Probably correct, as in the agreement of fact scores; claims without a judgment are left
    out. The interval is from whole answers drawn with replacement. None if there are fewer than 3 judged claims, or all
    of them have the same label or the same judgment.

    Args:
        labels: one list per answer.
        correctness: the experts' ``correctness`` of the same claims.
    """
    rows, clusters = [], []
    for answer, pairs in enumerate(zip(labels, correctness, strict=True)):
        for label, judged in zip(*pairs, strict=True):
            if judged is not None:
                x, y = float(label == "Y"), float(judged in CORRECT)
                rows.append([1.0, x, y, x * x, y * y, x * y])
                clusters.append(answer)
    if len(rows) < MINIMUM or not np.ptp(np.array(rows)[:, 1:3], axis=0).all():
        return None
    return bootstrap(np.array(rows), _pearson, clusters=clusters)


def contains(reference: str, claim: str) -> bool:
    """Tell whether a reference contains all words of a claim next to each other; case and punctuation are ignored."""
    return f" {_words(claim)} " in f" {_words(reference)} "


def _words(text: str) -> str:
    return " ".join(WORD.findall(text.lower()))


def _ratio(part: Any, whole: Any) -> Any:
    return np.where(whole > 0, part / np.maximum(whole, 1), 0.0)


def _pearson(n: Any, x: Any, y: Any, xx: Any, yy: Any, xy: Any) -> Any:
    """Return the correlation; 0 where one of the variables is constant, as in some resamples."""
    square = (n * xx - x * x) * (n * yy - y * y)
    return np.where(square > 0, (n * xy - x * y) / np.sqrt(np.maximum(square, 1e-12)), 0.0)
