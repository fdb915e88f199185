"""Paired tests: whether two systems differ, by their scores on the same items. Corrections for several tests.

Sources: Koehn, Statistical Significance Tests for Machine Translation Evaluation, EMNLP 2004 (paired bootstrap);
Noreen, Computer-Intensive Methods for Testing Hypotheses, 1989, and Fisher, The Design of Experiments, 1935
(randomization); Phipson and Smyth, Permutation P-values Should Never Be Zero, 2010 (the observed sample counts).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from qabench.errors import InputError
from qabench.stats.bootstrap import Interval, interval
from qabench.stats.resampling import (
    RESAMPLES,
    SEED,
    Array,
    Function,
    Statistics,
    drawn_sums,
    halved_sums,
    mean,
    observed_score,
    scores,
    subset_sums,
    table,
    units,
)

CORRECTIONS = ("holm", "bh", "none")
# Sums in another order differ in their last digits: differences up to this share of the largest count as equal.
ROUNDING = 1e-9
PAIRS_AT_ONCE = 512  # bounds the memory of swapped sums


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference of two systems' scores on the same items (first minus second).

    Attributes:
        interval: the difference and its paired bootstrap interval.
        p_value: two-sided; see the test that computed it.
    """

    interval: Interval
    p_value: float

    @property
    def significant(self) -> bool:
        """Return whether p is below 1 - confidence."""
        return self.p_value < 1 - self.interval.confidence


def paired_bootstrap(
    first: Sequence[float] | Statistics,
    second: Sequence[float] | Statistics,
    *,
    function: Function | None = None,
    clusters: Sequence[Hashable] | None = None,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Difference:
    """Test whether two systems differ on the same items, by drawing items with replacement.

    The p-value is the share of resampled differences whose distance from the observed difference is at least that of
    the observed difference from zero, counting the observed sample: (extreme + 1) / (resamples + 1). It is too small
    for few items; that of ``paired_randomization`` is not.

    Args:
        first: one score per item; with ``function`` one row of statistics per item.
        second: the scores of the other system, aligned.
        function: as in ``bootstrap``; by default the mean.
        clusters: as in ``bootstrap``.
        resamples: as in ``bootstrap``.
        seed: as in ``bootstrap``.

    Raises:
        InputError: the lists differ in length or are empty; and as ``bootstrap``.
    """
    rows = _aligned(first, second, function, clusters)
    return paired_tests(rows, [(0, 1)], function or mean, "bootstrap", resamples, seed)[0]


def paired_randomization(
    first: Sequence[float] | Statistics,
    second: Sequence[float] | Statistics,
    *,
    function: Function | None = None,
    clusters: Sequence[Hashable] | None = None,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Difference:
    """Test whether two systems differ, by swapping their results on items (or whole questions) at random.

    For a mean this is the sign-flip permutation test. The p-value is the share of swapped differences that are at
    least as far from zero as the observed one: exact if there are at most ``resamples`` ways to swap the items that
    differ; otherwise over ``resamples`` random swaps, counting the observed sample: (extreme + 1) / (resamples + 1).
    The interval in the result is that of the paired bootstrap, because this test does not provide one.
    The arguments and errors are those of ``paired_bootstrap``.
    """
    rows = _aligned(first, second, function, clusters)
    return paired_tests(rows, [(0, 1)], function or mean, "randomization", resamples, seed)[0]


def _aligned(
    first: Sequence[float] | Statistics,
    second: Sequence[float] | Statistics,
    function: Function | None,
    clusters: Sequence[Hashable] | None,
) -> list[Array]:
    if len(first) != len(second):
        raise InputError(f"paired scores must be aligned: {len(first)} and {len(second)} values")
    rows = [units(system if function else table(system), clusters) for system in (first, second)]
    widths = [table.shape[1] for table in rows]
    if widths[0] != widths[1]:
        raise InputError(f"paired statistics must have the same number of columns: {widths[0]} and {widths[1]}")
    return rows


def paired_tests(
    systems: Sequence[Array],
    pairs: Sequence[tuple[int, int]],
    function: Function,
    test: str,
    resamples: int,
    seed: int,
) -> list[Difference]:
    """Return the differences of pairs of systems. All pairs use the same draws.

    Args:
        systems: one array (units, columns) per system, aligned.
        pairs: positions in ``systems``.
        function: from sums to scores.
        test: "randomization" or "bootstrap".
        resamples: as ``bootstrap``.
        seed: as ``bootstrap``.

    Raises:
        InputError: the function is undefined on the items. Resamples and swaps in which it is undefined are left out.
    """
    observed = [observed_score(function, rows) for rows in systems]
    drawn = [scores(function, drawn_sums(rows, resamples, seed)) for rows in systems]
    swapped = _swapped(systems, pairs, function, resamples, seed) if test == "randomization" else None
    differences = []
    for first, second in pairs:
        difference, values = observed[first] - observed[second], drawn[first] - drawn[second]
        # Under the null hypothesis the differences are centered on zero: shift the resampled ones there.
        null, exact = (values - difference, False) if swapped is None else next(swapped)
        null = null[np.isfinite(null)]
        extreme = _extreme(null, difference)
        p_value = extreme / len(null) if exact else (extreme + 1) / (len(null) + 1)
        differences.append(Difference(interval(difference, values), p_value))
    return differences


def _swapped(
    systems: Sequence[Array], pairs: Sequence[tuple[int, int]], function: Function, resamples: int, seed: int
) -> Iterator[tuple[Array, bool]]:
    """Yield for each pair the differences after swapping units, and whether these are all possible swaps."""
    width = systems[0].shape[1]
    totals = [rows.sum(axis=0) for rows in systems]
    for start in range(0, len(pairs), PAIRS_AT_ONCE):
        some = pairs[start : start + PAIRS_AT_ONCE]
        changes = [systems[first] - systems[second] for first, second in some]
        differing = [changed[changed.any(axis=1)] for changed in changes]
        random = [i for i, changed in enumerate(differing) if 2 ** len(changed) > resamples]
        sums = halved_sums(np.hstack([changes[i] for i in random]), resamples, seed) if random else np.empty(0)
        places = {i: place * width for place, i in enumerate(random)}
        for i, (first, second) in enumerate(some):
            exact = i not in places
            moved = subset_sums(differing[i]) if exact else sums[:, places[i] : places[i] + width]
            yield scores(function, totals[first] - moved) - scores(function, totals[second] + moved), exact


def _extreme(null: Array, observed: float) -> int:
    tolerance = ROUNDING * max(abs(observed), float(np.abs(null).max(initial=0)))
    return int(np.count_nonzero(np.abs(null) >= abs(observed) - tolerance))


def adjust(p_values: Sequence[float], correction: str = "holm") -> list[float]:
    """Correct p-values for their number, in the same order; compare the results with the level directly.

    Args:
        p_values: of all comparisons, in [0, 1].
        correction: "holm" bounds the probability of any false finding (Holm, A Simple Sequentially Rejective Multiple
            Test Procedure, 1979); "bh" the expected share of false findings among the findings (Benjamini and Hochberg,
            Controlling the False Discovery Rate, 1995), for independent or positively dependent tests; "none".

    Returns:
        Values in [0, 1], each at least its uncorrected value; [] for [].

    Raises:
        InputError: an unknown correction, or a p-value outside [0, 1].

    Examples:
        >>> adjust([0.25, 0.125, 0.5])
        [0.5, 0.375, 0.5]
    """
    if correction not in CORRECTIONS:
        raise InputError(f"unknown correction {correction!r}; allowed: {', '.join(CORRECTIONS)}")
    p = np.asarray(p_values, dtype=np.float64)
    if not ((p >= 0) & (p <= 1)).all():
        raise InputError(f"p-values must be between 0 and 1; got {p[~((p >= 0) & (p <= 1))][0]}")
    order = np.argsort(p, kind="stable")
    ranks = np.arange(1, len(p) + 1)
    if correction == "holm":
        sorted_p = np.maximum.accumulate(p[order] * (len(p) + 1 - ranks))
    elif correction == "bh":
        sorted_p = np.minimum.accumulate((p[order] * len(p) / ranks)[::-1])[::-1]
    else:
        return list(p_values)
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(sorted_p, 1)
    return [float(value) for value in adjusted]
