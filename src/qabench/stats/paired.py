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
        interval: the difference and its interval, which has 0 inside exactly if p is not below
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

    Both systems have one score per item, aligned, or with ``function`` one row of statistics.
    ``score_interval`` describes the other arguments and the errors.

    The interval contains 0 exactly if p is 0.05 or more. For a mean it has the differences that the
    randomization test does not exclude (``inverted_test``). For 0/1 scores it is that of Bonett
    and Price, for other functions Student's t interval with the variance of the jackknife.

    Args:
        test: "randomization" swaps the results of the systems on items (or whole questions) at
            random. For a mean this is the sign-flip permutation test. The p-value is the share of
            swapped differences that are at least as far from zero as the observed one: exact if
            there are at most ``resamples`` ways to swap the items that differ. Otherwise over
            ``resamples`` random swaps, counting the observed sample: (extreme + 1) /
            (resamples + 1). "bootstrap" draws items with replacement. The p-value is the share of
            resampled differences whose distance from the observed difference is at least the
            distance of the observed difference from zero, counting the observed sample. It is too
            small for few items, and so are its intervals.
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
        statistics.append(units(values if function else table(values), None))
    if statistics[0].shape != statistics[1].shape:
        counts, numbers = zip(*(rows.shape for rows in statistics), strict=True)
        if counts[0] == counts[1]:
            raise InputError(
                f"paired items have {numbers[0]} and {numbers[1]} statistics; allowed: the same number"
            )
        raise InputError(f"paired scores must be aligned: {counts[0]} and {counts[1]} values")
    rows = [units(values, clusters) for values in statistics]
    items: dict[Any, Array] = {}
    if function is None:
        items = {place: values[:, 0] for place, values in enumerate(statistics)}
    (difference,) = paired_tests(
        dict(enumerate(rows)), [(0, 1)], function or mean, test, resamples, seed, items=items
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
    """Return the differences of pairs of systems by name, aligned arrays (units, columns).

    All pairs use the same draws. Resamples and swaps in which the function is undefined are left
    out.

    Args:
        systems: the statistics of the units by name. Those of ``mean`` are a sum and a count.
        pairs: the names of two systems each.
        function: see ``score_interval``.
        test: see ``paired_test``.
        resamples: see ``paired_test``.
        seed: see ``paired_test``.
        items: the scores of the items by name if the units of ``mean`` are clusters of items.

    Raises:
        InputError: the function is undefined on the items, or a number of resamples or a seed that
            is not one.
    """
    _check_whole("resamples", resamples, 1)
    _check_whole("seed", seed, 0)
    observed = {name: observed_score(function, rows) for name, rows in systems.items()}
    left_out = {name: scores_without_one(function, rows) for name, rows in systems.items()}
    fractions = {}
    for name, rows in systems.items():
        fractions[name] = are_fractions(function, rows, observed[name], left_out[name])
    is_bootstrap = test == "bootstrap"
    if is_bootstrap:
        # One draw for all systems keeps the pairing of their items.
        tables = list(systems.values())
        sums = np.split(drawn_sums(np.hstack(tables), resamples, seed), len(tables), axis=1)
        drawn = {name: scores(function, own) for name, own in zip(systems, sums, strict=True)}
    else:
        swaps = _swaps(systems, pairs, function, resamples, seed)
    differences = []
    for first, second in pairs:
        difference = observed[first] - observed[second]
        if is_bootstrap:
            # Under the null hypothesis the differences are centered on zero: shift the resampled
            # ones there.
            null, exact = drawn[first] - drawn[second] - difference, False
        else:
            moved, exact = next(swaps)
            null = _swapped_differences(systems[first], systems[second], function, moved)
        distances = np.abs(null[np.isfinite(null)])
        # Differences that are equal in exact arithmetic may differ in their last digits.
        tolerance = ROUNDING * max(abs(difference), float(distances.max(initial=0)))
        extreme = int(np.count_nonzero(distances >= abs(difference) - tolerance))
        p_value = extreme / len(distances) if exact else (extreme + 1) / (len(distances) + 1)
        without_one = left_out[first] - left_out[second]
        limit = 1.0 if fractions[first] and fractions[second] else inf
        if is_bootstrap:
            bounds = bootstrap_bounds(difference, distances, tolerance)
        elif are_means(systems[first], systems[second], function):
            own_items = items or {name: unit_scores(systems[name]) for name in (first, second)}
            bounds = mean_bounds(
                systems[first],
                systems[second],
                own_items[first],
                own_items[second],
                moved,
                exact,
                without_one,
                limit == 1,
                resamples,
                seed,
            )
        else:
            bounds = student_bounds(difference, without_one)
        # If no unit changes the difference, its variance is 0, but the true one need not be.
        if limit == 1 and not varies(without_one, difference):
            bounds = bonett_price(max(difference, 0), max(-difference, 0), len(without_one))
        interval = interval_from(
            difference, agreeing_bounds(bounds, difference, p_value, limit), without_one
        )
        differences.append(Difference(interval, p_value))
    return differences


def _swaps(
    systems: Mapping[Any, Array],
    pairs: Sequence[tuple[Any, Any]],
    function: Function,
    resamples: int,
    seed: int,
) -> Iterator[tuple[Array, bool]]:
    """Yield for each pair sums over swapped units, and whether these are all possible swaps.

    What is summed is the change by which the statistics of the systems differ. For means it is this
    change and the count of the unit. All pairs have the same random swaps, because each chunk of
    pairs starts from the seed.
    """
    for start in range(0, len(pairs), PAIRS_AT_ONCE):
        # Chunks bound the memory. Their results do not depend on their size.
        chunk = pairs[start : start + PAIRS_AT_ONCE]
        yield from _swaps_of_chunk(systems, chunk, function, resamples, seed)


def _swaps_of_chunk(
    systems: Mapping[Any, Array],
    pairs: Sequence[tuple[Any, Any]],
    function: Function,
    resamples: int,
    seed: int,
) -> list[tuple[Array, bool]]:
    changes, differing = [], []
    for first, second in pairs:
        changed = systems[first] - systems[second]
        differs = changed.any(axis=1)
        if are_means(systems[first], systems[second], function):
            # The counts of both systems are equal, so their difference would be 0.
            changed[:, 1] = systems[first][:, 1]
        changes.append(changed)
        differing.append(changed[differs])
    exact = [2 ** len(rows) <= resamples for rows in differing]
    random = [changed for changed, few in zip(changes, exact, strict=True) if not few]
    sampled: Iterator[Array] = iter(())
    if random:
        sums = halved_sums(np.hstack(random), resamples, seed)
        sampled = iter(np.split(sums, len(random), axis=1))
    sums_of_pairs = []
    for rows, few in zip(differing, exact, strict=True):
        # All swaps of few rows are fewer than the resamples, and their p-value is exact.
        sums_of_pair = subset_sums(rows) if few else next(sampled)
        sums_of_pairs.append((sums_of_pair, few))
    return sums_of_pairs


def _swapped_differences(first: Array, second: Array, function: Function, moved: Array) -> Array:
    """Return the differences after swaps."""
    first_total, second_total = first.sum(axis=0), second.sum(axis=0)
    if are_means(first, second, function):
        # The numbers of items do not change, so the values alone are swapped.
        moved = moved * [1, 0]
    return scores(function, first_total - moved) - scores(function, second_total + moved)


def _check_whole(name: str, value: Any, least: int) -> None:
    """Raise InputError unless a value is a whole number that is large enough."""
    is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not is_whole or value < least:
        raise InputError(f"{name} is {value!r:.60}; allowed: a whole number, {least} or more")
