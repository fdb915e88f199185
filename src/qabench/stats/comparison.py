"""Several systems on the same items: each one's score, and every pair tested."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from qabench.errors import InputError
from qabench.stats.bootstrap import Interval, bootstrap_mean
from qabench.stats.corrections import adjust
from qabench.stats.paired import ROUNDING, Difference, paired_bootstrap, paired_randomization
from qabench.stats.resampling import RESAMPLES, Array, table, units

TESTS = {"randomization": paired_randomization, "bootstrap": paired_bootstrap}


@dataclass(frozen=True, slots=True)
class Pair:
    """Two systems, the one of higher mean first.

    Attributes:
        first: its name. second: the other's.
        difference: of their means, with its interval and p-value.
        corrected_p: the p-value corrected for the number of pairs.
        wins: on how many questions the first scores more. ties: as much. losses: less.
    """

    first: str
    second: str
    difference: Difference
    corrected_p: float
    wins: int
    ties: int
    losses: int

    @property
    def significant(self) -> bool:
        """Whether the corrected p is below 1 - confidence: then the first is better than the second."""
        return self.corrected_p < 1 - self.difference.interval.confidence


@dataclass(frozen=True, slots=True)
class Comparison:
    """Systems, the best first, and all pairs of them in that order; how many items and questions were compared."""

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
    """Which of several systems score more on the same items, and how surely.

    Args:
        scores: a score an item for each system, aligned.
        clusters: each item's question where one question gives several items; wins, ties and losses are then counted
            in questions.
        test: "randomization" or "bootstrap"; see ``paired_randomization`` and ``paired_bootstrap``.
        correction: over all pairs; see ``adjust``.
        confidence, resamples, seed: as ``bootstrap``.

    Raises:
        InputError: fewer than two systems, lists of unlike length, or an unknown test or correction.
    """
    if test not in TESTS:
        raise InputError(f"unknown test {test!r}; allowed: {', '.join(TESTS)}")
    if len(scores) < 2:
        raise InputError(f"nothing to compare: {len(scores)} system; give two or more")
    intervals = {
        name: bootstrap_mean(values, clusters=clusters, confidence=confidence, resamples=resamples, seed=seed)
        for name, values in scores.items()
    }
    ranked = dict(sorted(intervals.items(), key=lambda item: -item[1].mean))
    pairs = list(combinations(ranked, 2))
    differences = [
        TESTS[test](scores[a], scores[b], clusters=clusters, confidence=confidence, resamples=resamples, seed=seed)
        for a, b in pairs
    ]
    corrected = adjust([difference.p_value for difference in differences], correction)
    rows = {name: units(table(values), clusters)[:, 0] for name, values in scores.items()}
    made = [
        Pair(a, b, difference, p, *_record(rows[a] - rows[b]))
        for (a, b), difference, p in zip(pairs, differences, corrected, strict=True)
    ]
    first = next(iter(scores))
    return Comparison(ranked, tuple(made), len(scores[first]), len(rows[first]))


def _record(differences: Array) -> tuple[int, int, int]:
    wins, losses = int((differences > ROUNDING).sum()), int((differences < -ROUNDING).sum())
    return wins, len(differences) - wins - losses, losses
