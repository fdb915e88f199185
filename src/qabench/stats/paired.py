"""Paired tests: whether two systems differ on the same questions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from qabench.errors import InputError, unknown_name
from qabench.stats.differences import (
    agreeing_bounds,
    are_fractions,
    are_means,
    bonett_price,
    bootstrap_bounds,
    mean_bounds,
    student_bounds,
    unit_scores,
    varies,
)
from qabench.stats.intervals import Interval, interval_from
from qabench.stats.resampling import drawn_sums, halved_sums, subset_sums
from qabench.stats.units import (
    ROUNDING,
    Array,
    Clusters,
    Function,
    Values,
    defined,
    mean,
    observed_score,
    scores,
    scores_without_one,
    table,
    units,
)

# With 10,000 resamples, a p-value near 0.05 is accurate to about 0.004.
RESAMPLES = 10_000
SEED = 0
# The sums of 10,000 swaps of 100 pairs take 16 MB. 60 systems have 1,770 pairs.
PAIRS_AT_ONCE = 100
TESTS = ("randomization", "bootstrap")


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference of two systems' scores on the same items (first minus second).

    Attributes:
        interval: the difference and its interval, which contains 0 if and only if p is not below
            ``SIGNIFICANCE``.
        p_value: two-sided. See the test that computed it.
    """

    interval: Interval
    p_value: float


def paired_test(
    first: Values,
    second: Values,
    *,
    test: str = "randomization",
    function: Function | None = None,
    clusters: Clusters = None,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Difference:
    """Test whether two systems differ on the same items.

    Both systems have one score per item, or one row of statistics per item if there is a
    ``function``, with the items in the same order. ``score_interval`` describes the other arguments
    and the errors.

    The interval contains 0 if and only if p is 0.05 or more. For means of 0/1 scores, it is the
    interval of Bonett and Price. For other means, it covers the differences that the randomization
    test does not reject, and Student's t interval (``mean_bounds``). For other functions, it is
    Student's t interval with the jackknife's variance. The bootstrap's interval has the differences
    that this test does not reject (``bootstrap_bounds``).

    Args:
        test: "randomization" swaps the results of the systems on items (or whole questions) at
            random. For a mean this is the sign-flip permutation test. The p-value is the share of
            swapped differences that are at least as far from zero as the observed one. It is exact
            if there are at most ``resamples`` ways to swap the items that differ. Otherwise, it is
            estimated from ``resamples`` random swaps, counting the observed sample: (extreme + 1) /
            (resamples + 1). "bootstrap" draws items with replacement. The p-value is the share of resampled
            differences whose distance from the observed difference is at least the distance of the
            observed difference from zero, counting the observed sample. For few items, this p-value
            is too small, and the intervals are too narrow.
        resamples: the number of random swaps or resamples.
        seed: the same seed gives the same result.

    Raises:
        InputError: an unknown test, no items or different numbers of items or clusters, anything
            but one finite number (with ``function``, one row of them) per item, fewer than 1
            resample, or a function that is undefined on the items.
    """
    if test not in TESTS:
        raise unknown_name("unknown test", test, TESTS)
    statistics = []
    for values in (first, second):
        rows = values if function else table(values)
        statistics.append(units(rows, None))
    first_rows, second_rows = statistics
    if first_rows.shape != second_rows.shape:
        first_count, first_columns = first_rows.shape
        second_count, second_columns = second_rows.shape
        if first_count == second_count:
            raise InputError(
                f"paired items have {first_columns} and {second_columns} statistics; allowed: the same number"
            )
        raise InputError(f"paired scores must be aligned: {first_count} and {second_count} values")
    systems = {"first": units(first_rows, clusters), "second": units(second_rows, clusters)}
    items = {}
    if function is None:
        # 0/1 scores have other bounds, and the means of clusters do not show whether the items are
        # 0 or 1.
        items = {"first": first_rows[:, 0], "second": second_rows[:, 0]}
    (difference,) = paired_tests(
        systems, [("first", "second")], function or mean, test, resamples, seed, items=items
    )
    return difference


def paired_tests(
    systems: Mapping[Any, Array],
    pairs: Sequence[tuple[Any, Any]],
    function: Function,
    test: str,
    resamples: int,
    seed: int,
    items: Mapping[Any, Array] | None = None,
) -> list[Difference]:
    """Return the tested difference of each pair of systems.

    All pairs use the same draws. Resamples and swaps in which the function is undefined are left
    out.

    Args:
        systems: name -> the statistics of the units, arrays (units, columns) that are aligned
            between the systems. The columns for ``mean`` are a sum and a count.
        pairs: the names of two systems each.
        function: see ``score_interval``.
        test: see ``paired_test``.
        resamples: see ``paired_test``.
        seed: see ``paired_test``.
        items: name -> the scores of the items, if the units of ``mean`` are clusters of items.

    Raises:
        InputError: the function is undefined on the items, or ``resamples`` or ``seed`` is not a
            whole number, or is too small.
    """
    _check_whole("resamples", resamples, 1)
    _check_whole("seed", seed, 0)
    observed: dict[Any, float] = {}
    left_out: dict[Any, Array] = {}
    is_fraction: dict[Any, bool] = {}
    for name, rows in systems.items():
        observed[name] = observed_score(function, rows)
        left_out[name] = scores_without_one(function, rows)
        is_fraction[name] = are_fractions(function, rows, observed[name], left_out[name])
    is_bootstrap = test == "bootstrap"
    if is_bootstrap:
        drawn = _drawn_scores(systems, function, resamples, seed)
    else:
        swaps = _swaps(systems, pairs, function, resamples, seed)
    differences = []
    for first, second in pairs:
        difference = observed[first] - observed[second]
        if is_bootstrap:
            # Under the null hypothesis the differences are centered on zero: shift the resampled
            # ones there.
            null = drawn[first] - drawn[second] - difference
            exact = False
        else:
            moved, exact = next(swaps)
            null = _swapped_differences(systems[first], systems[second], function, moved)
        distances = np.abs(defined(null))
        # Differences that are equal in exact arithmetic may differ in their last digits.
        tolerance = ROUNDING * max(abs(difference), float(distances.max(initial=0)))
        p_value = _p_value(distances, difference, tolerance, exact)
        without_one = left_out[first] - left_out[second]
        are_both_fractions = is_fraction[first] and is_fraction[second]
        if are_both_fractions and not varies(without_one, difference):
            # If no unit changes the difference, its variance is 0, but the true variance need not be.
            gain, loss = max(difference, 0), max(-difference, 0)
            bounds = bonett_price(gain, loss, len(without_one))
        elif is_bootstrap:
            bounds = bootstrap_bounds(difference, distances, tolerance)
        elif are_means(systems[first], systems[second], function):
            item_scores = items or {name: unit_scores(systems[name]) for name in (first, second)}
            bounds = mean_bounds(
                systems[first],
                systems[second],
                item_scores[first],
                item_scores[second],
                moved,
                exact,
                without_one,
                are_both_fractions,
                resamples,
                seed,
            )
        else:
            bounds = student_bounds(difference, without_one)
        # Fractions differ by at most 1.
        limit = 1.0 if are_both_fractions else inf
        agreeing = agreeing_bounds(bounds, difference, p_value, limit)
        differences.append(Difference(interval_from(difference, agreeing, without_one), p_value))
    return differences


def _drawn_scores(
    systems: Mapping[Any, Array], function: Function, resamples: int, seed: int
) -> dict[Any, Array]:
    """Return each system's scores on the resamples."""
    # One draw for all systems keeps the pairing of their items.
    tables = list(systems.values())
    sums = drawn_sums(np.hstack(tables), resamples, seed)
    drawn = {}
    for name, own_sums in zip(systems, np.split(sums, len(tables), axis=1), strict=True):
        drawn[name] = scores(function, own_sums)
    return drawn


def _p_value(distances: Array, difference: float, tolerance: float, exact: bool) -> float:
    """Return the share of differences that are at least as far from 0 as the observed one.

    Args:
        distances: the absolute differences of all swaps, or of random swaps or resamples.
        difference: the observed difference.
        tolerance: the largest rounding error of a distance.
        exact: whether the distances cover all swaps.
    """
    extreme = int(np.count_nonzero(distances >= abs(difference) - tolerance))
    if exact:
        return extreme / len(distances)
    # The observed sample counts as one of the draws, so p is never 0 (Phipson and Smyth 2010).
    return (extreme + 1) / (len(distances) + 1)


def _swaps(
    systems: Mapping[Any, Array],
    pairs: Sequence[tuple[Any, Any]],
    function: Function,
    resamples: int,
    seed: int,
) -> Iterator[tuple[Array, bool]]:
    """Yield for each pair the sums over its swapped units, and whether all swaps were enumerated.

    A swapped unit contributes the difference between the two systems' statistics. For means, it
    contributes the difference of the values, and its number of items. All pairs have the same
    random swaps, because each chunk of pairs starts from the seed.
    """
    for start in range(0, len(pairs), PAIRS_AT_ONCE):
        # Chunks limit the memory. The results do not depend on the size of the chunks.
        chunk = pairs[start : start + PAIRS_AT_ONCE]
        yield from _swaps_of_chunk(systems, chunk, function, resamples, seed)


def _swaps_of_chunk(
    systems: Mapping[Any, Array],
    pairs: Sequence[tuple[Any, Any]],
    function: Function,
    resamples: int,
    seed: int,
) -> list[tuple[Array, bool]]:
    """Return for each pair what ``_swaps`` yields. One matrix product computes all random swaps."""
    # The changes of the units that differ, and of all units for the pairs with random swaps.
    differing, sampled = [], []
    for first, second in pairs:
        changes = systems[first] - systems[second]
        differs = changes.any(axis=1)
        if are_means(systems[first], systems[second], function):
            # The counts of both systems are equal, so their difference would be 0.
            changes[:, 1] = systems[first][:, 1]
        differing.append(changes[differs])
        if not _has_few_swaps(differing[-1], resamples):
            sampled.append(changes)
    sampled_sums: Iterator[Array] = iter(())
    if sampled:
        sums = halved_sums(np.hstack(sampled), resamples, seed)
        sampled_sums = iter(np.split(sums, len(sampled), axis=1))
    sums_of_pairs = []
    for rows in differing:
        exact = _has_few_swaps(rows, resamples)
        sums_of_pair = subset_sums(rows) if exact else next(sampled_sums)
        sums_of_pairs.append((sums_of_pair, exact))
    return sums_of_pairs


def _has_few_swaps(differing: Array, resamples: int) -> bool:
    """Return whether the swaps are few enough to enumerate all of them, so that p is exact."""
    return bool(2 ** len(differing) <= resamples)


def _swapped_differences(first: Array, second: Array, function: Function, moved: Array) -> Array:
    """Return the differences after swaps. A swap moves a change from one sum to the other."""
    first_total, second_total = first.sum(axis=0), second.sum(axis=0)
    if are_means(first, second, function):
        # The numbers of items do not change, so the values alone are swapped.
        moved = moved * [1, 0]
    return scores(function, first_total - moved) - scores(function, second_total + moved)


def _check_whole(name: str, value: Any, least: int) -> None:
    """Raise InputError unless a value is a whole number that is large enough."""
    # True and False are instances of int.
    is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not is_whole or value < least:
        raise InputError(f"{name} is {value!r:.60}; allowed: a whole number, {least} or more")
