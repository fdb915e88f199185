"""Paired tests: whether two systems differ, by their scores on the same items.

Sources: Koehn, Statistical Significance Tests for Machine Translation Evaluation, EMNLP 2004 (paired bootstrap);
Noreen, Computer-Intensive Methods for Testing Hypotheses, 1989, and Fisher, The Design of Experiments, 1935
(randomisation); Phipson and Smyth, Permutation P-values Should Never Be Zero, 2010 (the observed sample counts).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from qabench.errors import InputError
from qabench.stats.bootstrap import Interval, interval
from qabench.stats.resampling import (
    RESAMPLES,
    Array,
    Function,
    Statistics,
    check,
    defined,
    drawn_sums,
    halved_sums,
    mean,
    scores,
    table,
    units,
)

# Sums in another order differ in their last digits: what is as extreme as the observed up to so much counts.
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference of two systems' scores on the same items (first minus second).

    Attributes:
        interval: the difference and its paired bootstrap interval.
        p_value: two-sided; see the test that gave it.
    """

    interval: Interval
    p_value: float

    @property
    def significant(self) -> bool:
        """Whether p is below 1 - confidence."""
        return self.p_value < 1 - self.interval.confidence


def paired_bootstrap(
    first: Sequence[float] | Statistics,
    second: Sequence[float] | Statistics,
    *,
    function: Function | None = None,
    clusters: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Difference:
    """Whether two systems differ on the items both were scored on, by drawing items with replacement.

    The p-value says how often a resampled difference is at least as far from the observed one as that is from zero,
    counting the observed sample: (extreme + 1) / (resamples + 1). On few items it is too small:
    ``paired_randomization`` is not.

    Args:
        first: a score an item; with ``function`` a row of statistics an item.
        second: those of the other system, aligned.
        function: as in ``bootstrap``; by default the mean.
        clusters: as in ``bootstrap``. The rest likewise.

    Raises:
        InputError: the lists differ in length or are empty; and as ``bootstrap``.
    """
    ours, theirs, function = _aligned(first, second, function, clusters)
    observed, values = _differences(ours, theirs, function, confidence, resamples, seed)
    # Under the null hypothesis the differences are centred on zero: shift the resampled ones there.
    extreme = _extreme(values - observed, observed)
    return Difference(interval(observed, values, confidence), (extreme + 1) / (resamples + 1))


def paired_randomization(
    first: Sequence[float] | Statistics,
    second: Sequence[float] | Statistics,
    *,
    function: Function | None = None,
    clusters: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Difference:
    """Whether two systems differ, by swapping their results on an item (or a whole question) at random.

    For a mean this is the sign-flip permutation test. The p-value says how often a swapped difference is at least as
    far from zero as the observed one: exactly, where all ways to swap the items that differ are no more than
    ``resamples``; otherwise over ``resamples`` random ones, counting the observed one: (extreme + 1) /
    (resamples + 1). The test gives no interval; the one in the result is the paired bootstrap's.

    Args: as ``paired_bootstrap``.

    Raises:
        InputError: as ``paired_bootstrap``.
    """
    ours, theirs, function = _aligned(first, second, function, clusters)
    observed, values = _differences(ours, theirs, function, confidence, resamples, seed)
    changes = ours - theirs
    swapped, exact = halved_sums(changes[changes.any(axis=1)], resamples, seed)
    null = defined(
        scores(function, ours.sum(axis=0) - swapped) - scores(function, theirs.sum(axis=0) + swapped), "swapped samples"
    )
    extreme = _extreme(null, observed)
    p_value = extreme / len(null) if exact else (extreme + 1) / (len(null) + 1)
    return Difference(interval(observed, values, confidence), p_value)


def _aligned(
    first: Sequence[float] | Statistics,
    second: Sequence[float] | Statistics,
    function: Function | None,
    clusters: Sequence[Hashable] | None,
) -> tuple[Array, Array, Function]:
    if len(first) != len(second):
        raise InputError(f"paired scores must be aligned: {len(first)} and {len(second)} values")
    if function is None:
        first, second, function = table(first), table(second), mean
    ours, theirs = units(first, clusters), units(second, clusters)
    if ours.shape != theirs.shape:
        raise InputError(f"paired statistics must have as many columns: {ours.shape[1]} and {theirs.shape[1]}")
    return ours, theirs, function


def _differences(
    ours: Array, theirs: Array, function: Function, confidence: float, resamples: int, seed: int
) -> tuple[float, Array]:
    """The observed difference and the resampled ones, both systems on the same draws."""
    check(confidence, resamples)
    width = ours.shape[1]
    both = np.hstack([ours, theirs])

    def difference(sums: Array, what: str) -> Array:
        return defined(scores(function, sums[:, :width]) - scores(function, sums[:, width:]), what)

    observed = float(difference(both.sum(axis=0, keepdims=True), "samples")[0])
    return observed, difference(drawn_sums(both, resamples, seed), "resamples")


def _extreme(null: Array, observed: float) -> int:
    tolerance = ROUNDING * max(abs(observed), float(np.abs(null).max()))
    return int(np.count_nonzero(np.abs(null) >= abs(observed) - tolerance))
