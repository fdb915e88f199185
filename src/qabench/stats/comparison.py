"""Several systems on the same items: the score of each, and a test of every pair."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from qabench.errors import InputError
from qabench.stats.bootstrap import Interval, bootstrap_mean
from qabench.stats.corrections import adjust
from qabench.stats.paired import ROUNDING, Difference, aligned, paired_bootstrap, paired_randomization, paired_tests
from qabench.stats.resampling import RESAMPLES, Array

TESTS = {"randomization": paired_randomization, "bootstrap": paired_bootstrap}


@dataclass(frozen=True, slots=True)
class Pair:
    """Two systems on the questions that both have scores for.

    Attributes:
        first: the name of the system that is better on these questions.
        second: the name of the other system.
        difference: first minus second, with its interval and p-value.
        corrected_p: the p-value corrected for the number of pairs.
        wins: the number of questions on which the first is better.
        ties: the number of questions on which both have the same score.
        losses: the number of questions on which the second is better.
        n: the number of questions.
    """

    first: str
    second: str
    difference: Difference
    corrected_p: float
    wins: int
    ties: int
    losses: int
    n: int

    @property
    def significant(self) -> bool:
        """Whether the corrected p-value is below 1 - confidence: then the first is better than the second."""
        return self.corrected_p < 1 - self.difference.interval.confidence

    def as_dict(self) -> dict[str, Any]:
        """The pair as JSON data."""
        found = self.difference.interval
        return {
            "first": self.first,
            "second": self.second,
            "difference": found.mean,
            "standard_error": found.standard_error,
            "low": found.low,
            "high": found.high,
            "undefined": found.undefined,
            "p": self.difference.p_value,
            "corrected_p": self.corrected_p,
            "significant": self.significant,
            "wins": self.wins,
            "ties": self.ties,
            "losses": self.losses,
            "n": self.n,
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """Systems in the order of their means.

    Attributes:
        systems: name -> mean with its interval, the highest first.
        pairs: all pairs, in that order.
        items: the number of items compared.
        questions: the number of questions that the items belong to.
    """

    systems: dict[str, Interval]
    pairs: tuple[Pair, ...]
    items: int
    questions: int


def compare(
    scores: Mapping[str, Sequence[float]],
    *,
    clusters: Sequence[Hashable] | None = None,
    test: str = "randomization",
    correction: str = "holm",
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Comparison:
    """Which of several systems score higher on the same items, and whether the differences are significant.

    Args:
        scores: one score per item for each system, aligned.
        clusters: each item's question if one question gives several items; wins, ties and losses then count questions.
        test: "randomization" or "bootstrap"; see ``paired_randomization`` and ``paired_bootstrap``.
        correction: over all pairs; see ``adjust``.
        confidence: as ``bootstrap``.
        resamples: as ``bootstrap``.
        seed: as ``bootstrap``.

    Raises:
        InputError: fewer than two systems, lists of different lengths, or an unknown test or correction.
    """
    check_test(test)
    if len(scores) < 2:
        raise InputError(f"nothing to compare: {len(scores)} system; at least two are required")
    intervals = {
        name: bootstrap_mean(values, clusters=clusters, confidence=confidence, resamples=resamples, seed=seed)
        for name, values in scores.items()
    }
    ranked = dict(sorted(intervals.items(), key=lambda item: -item[1].mean))
    rows, function = aligned([scores[name] for name in ranked], None, clusters)
    pairs = list(combinations(range(len(ranked)), 2))
    differences = paired_tests(rows, pairs, function, test, confidence, resamples, seed)
    corrected = adjust([difference.p_value for difference in differences], correction)
    names = list(ranked)
    made = [
        Pair(names[a], names[b], difference, p, *record(rows[a][:, 0] - rows[b][:, 0]), len(rows[a]))
        for (a, b), difference, p in zip(pairs, differences, corrected, strict=True)
    ]
    return Comparison(ranked, tuple(made), len(scores[names[0]]), len(rows[0]))


def check_test(test: str) -> None:
    """Raises InputError for an unknown test."""
    if test not in TESTS:
        raise InputError(f"unknown test {test!r}; allowed: {', '.join(TESTS)}")


def record(differences: Array) -> tuple[int, int, int]:
    """The numbers of positive differences, of ties, and of negative differences."""
    wins, losses = int((differences > ROUNDING).sum()), int((differences < -ROUNDING).sum())
    return wins, len(differences) - wins - losses, losses
