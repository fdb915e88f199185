"""Bounds of the difference of two systems on the same questions."""

from __future__ import annotations

from math import inf, isfinite, sqrt

import numpy as np

from qabench.stats.distributions import normal_quantile, student_quantile
from qabench.stats.intervals import Bounds
from qabench.stats.resampling import halved_sums, subset_sums
from qabench.stats.units import (
    ROUNDING,
    Array,
    Function,
    defined,
    degrees_of_freedom,
    in_unit_interval,
    jackknife_variance,
    mean,
    scores,
)

# The significance level of tests. It is a literal, because 1 - 0.95 is a little more than 0.05.
SIGNIFICANCE = 0.05
# With fewer units on which two systems differ, a randomization test is never significant. Of the
# 2 ** 5 swaps of five units, at least two are as extreme as the data, and 2 / 32 is more than 0.05.
FEWEST_DIFFERING = 6


def agreeing_bounds(
    bounds: tuple[float, float], difference: float, p_value: float, limit: float
) -> Bounds:
    """Adjust bounds so that 0 is inside if and only if the difference is not significant.

    Bounds and a p-value that are computed by different methods contradict each other only if p is close
    to the level. Then the bound next to 0 is moved to 0, or just beyond. If a bound is infinite,
    (None, None) is returned.
    """
    low = max(bounds[0], -limit)
    high = min(bounds[1], limit)
    if p_value >= SIGNIFICANCE:
        low, high = min(low, 0.0), max(high, 0.0)
    elif low <= 0 <= high:
        # The bound is not 0, which would be inside, but a tiny number with the sign of the
        # difference.
        nearest = ROUNDING * difference
        if difference > 0:
            low = nearest
        else:
            high = nearest
    if isfinite(low) and isfinite(high):
        return low, high
    return None, None


def mean_bounds(
    first: Array,
    second: Array,
    first_items: Array,
    second_items: Array,
    moved: Array,
    exact: bool,
    left_out: Array,
    is_fraction: bool,
    resamples: int,
    seed: int,
) -> tuple[float, float]:
    """Return the bounds of a difference of means.

    0/1 scores have the interval of Bonett and Price. For other scores, the bounds are the outermost
    ones of several intervals: the inverted test, Student's t and, for fractions that differ on few
    units, ``_few_changes_bounds``.

    Args:
        first: sum and count of each unit, of the first system.
        second: sum and count of each unit, of the second system.
        first_items: the scores of the first system's items, of which a unit has one or more.
        second_items: the scores of the second system's items.
        moved: for each swap, the sums of differences and counts over the swapped units (see
            ``paired._swaps``).
        exact: whether ``moved`` has all swaps of the units that differ.
        left_out: the leave-one-out differences of the jackknife, one per unit.
        is_fraction: whether both scores are fractions.
        resamples: the number of random swaps.
        seed: the seed of random swaps.

    Returns:
        The bounds, which are infinite if units are too few and the scores have no limits.
    """
    first_mean = first[:, 0].sum() / first[:, 1].sum()
    second_mean = second[:, 0].sum() / second[:, 1].sum()
    difference = float(first_mean - second_mean)
    if np.isin(first_items, (0, 1)).all() and np.isin(second_items, (0, 1)).all():
        item_changes = first_items - second_items
        return _binary_bounds(item_changes, difference, left_out, len(first))
    low, high = inverted_test(first, second, moved, exact, resamples, seed)
    if not isfinite(low) and is_fraction:
        return -1, 1
    # The test assumes symmetric differences. For few skewed ones, Student's t is a little wider.
    intervals = [student_bounds(difference, left_out, len(left_out) - 1)]
    if isfinite(low):
        # The inverted test has no finite bounds for five or fewer units.
        intervals.append((low, high))
    changes = unit_scores(first) - unit_scores(second)
    differing = np.count_nonzero(changes)
    if is_fraction and 0 < differing < min(FEWEST_DIFFERING, len(changes) / 2):
        intervals.append(_few_changes_bounds(changes))
    lows, highs = zip(*intervals, strict=True)
    return min(lows), max(highs)


def _binary_bounds(
    item_changes: Array, difference: float, left_out: Array, unit_count: int
) -> tuple[float, float]:
    """Return the bounds of a difference of 0/1 scores, of which a unit may have several.

    Args:
        item_changes: 1, 0 or -1 for each item.
        difference: the difference of the means.
        left_out: the leave-one-out differences of the jackknife, one per unit.
        unit_count: the number of units.
    """
    first_only = float((item_changes == 1).mean())
    second_only = float((item_changes == -1).mean())
    size = float(len(item_changes))
    if unit_count < size:
        # The number of independent items whose difference would have the variance of these
        # clusters.
        variance = jackknife_variance(left_out) if len(left_out) > 1 else 0
        if variance:
            size = min(size, (first_only + second_only - difference**2) / variance)
        else:
            size = float(unit_count)
    return bonett_price(first_only, second_only, size)


def _few_changes_bounds(changes: Array) -> tuple[float, float]:
    """Return the bounds of a mean difference of fractions that differ on few units.

    A few changes say little about the changes that a larger sample would show. So they are treated
    as differences of 0/1 scores, in units of the largest change.
    """
    largest = float(np.abs(changes).max())
    gain = float(changes.clip(0).mean())
    loss = float((-changes).clip(0).mean())
    low, high = bonett_price(gain / largest, loss / largest, len(changes))
    return largest * low, largest * high


def bonett_price(first_only: float, second_only: float, n: float) -> tuple[float, float]:
    """Return the interval of a difference of paired 0/1 scores (Bonett and Price 2012).

    One disagreement is added in each direction, which keeps the coverage close to 95% for few
    questions.

    Args:
        first_only: the share of the items that only the first system gets right.
        second_only: the share that only the second system gets right.
        n: the number of items, which need not be whole.
    """
    first = (first_only * n + 1) / (n + 2)
    second = (second_only * n + 1) / (n + 2)
    difference = first - second
    margin = normal_quantile() * sqrt((first + second - difference**2) / (n + 2))
    return difference - margin, difference + margin


def student_bounds(
    difference: float, left_out: Array, freedom: float | None = None
) -> tuple[float, float]:
    """Return Student's t interval from the leave-one-out differences of the jackknife.

    The bounds are infinite if there are fewer than two of these differences, or one is undefined.
    Without ``freedom``, the degrees of freedom follow from the kurtosis of the differences.
    """
    if len(left_out) < 2 or not np.isfinite(left_out).all():
        return -inf, inf
    squares = (left_out - left_out.mean()) ** 2
    margin = 0.0
    if squares.any():
        # Squares that are all 0 have neither a variance nor degrees of freedom.
        if freedom is None:
            freedom = degrees_of_freedom(squares)
        margin = student_quantile(freedom) * sqrt(jackknife_variance(left_out))
    return difference - margin, difference + margin


def bootstrap_bounds(difference: float, distances: Array, tolerance: float) -> tuple[float, float]:
    """Return the bounds of the values that the bootstrap test does not reject.

    Args:
        difference: the observed difference.
        distances: the distances of the resampled differences from the observed one.
        tolerance: the largest rounding error of a distance.
    """
    needed = _fewest_extreme(len(distances), exact=False)
    margin = inf
    if needed:
        margin = _order_statistic(distances, len(distances) - needed)
    if margin >= abs(difference) - tolerance:
        # Zero is inside except for rounding errors, so the bounds must contain it.
        margin = max(margin, abs(difference))
    return difference - margin, difference + margin


def inverted_test(
    first: Array, second: Array, moved: Array, exact: bool, resamples: int, seed: int
) -> tuple[float, float]:
    """Return the smallest and the largest difference that the sign-flip test does not reject.

    A shift is tested by flipping the signs of the units' differences minus the shift. A flip of
    some units is as extreme as what was observed if the shift lies between the mean difference of
    these units and that of the others. So the bounds are order statistics of these means.

    Args:
        first: sum and count of each unit.
        second: sum and count of each unit of the other system.
        moved: for each flip, the sums of differences and counts over the flipped units (see
            ``paired._swaps``).
        exact: whether ``moved`` has all flips of the units that differ.
        resamples: the number of random flips.
        seed: the seed of random flips of units that do not differ.
    """
    change, weights = first[:, 0] - second[:, 0], first[:, 1]
    differs = change != 0
    # Random flips include all units. If ``paired._swaps`` enumerates the flips, they include only
    # the units that differ.
    if exact and not differs.all():
        # Flipping a unit without a difference has no effect for a shift of 0, but has one for other
        # shifts.
        if 2 ** len(change) <= resamples:
            moved = subset_sums(np.column_stack([change, weights]))
        else:
            # There are too many flips to enumerate. Each flip of the units that differ is repeated,
            # with random flips of the other units.
            repeats = max(1, resamples // len(moved))
            moved = np.tile(moved, (repeats, 1))
            moved[:, 1] += _halved_weights(weights[~differs], len(moved), seed)
    sums, counts = moved[:, 0], moved[:, 1]
    other_counts = weights.sum() - counts
    with np.errstate(divide="ignore", invalid="ignore"):
        means = sums / counts
        other_means = (change.sum() - sums) / other_counts
    # A flip of no unit, or of all, is as extreme as the data for any shift.
    is_none_or_all = (counts == 0) | (other_counts == 0)
    lows = np.where(is_none_or_all, -inf, np.minimum(means, other_means))
    highs = np.where(is_none_or_all, inf, np.maximum(means, other_means))
    needed = _fewest_extreme(len(moved), exact)
    if not needed:
        return -inf, inf
    return _order_statistic(lows, needed - 1), _order_statistic(highs, len(highs) - needed)


def _order_statistic(values: Array, place: int) -> float:
    """Return the value that would be at a position, counted from 0, if the values were sorted."""
    return float(np.partition(values, place)[place])


def _halved_weights(weights: Array, draws: int, seed: int) -> Array:
    """Return the sum of the weights in each random subset of units."""
    if (weights == weights[0]).all():
        # The number of units in a random subset is binomial, so no subset needs to be drawn.
        numbers = np.random.default_rng(seed).binomial(len(weights), 0.5, draws)
        return np.asarray(numbers * float(weights[0]), dtype=np.float64)
    return np.asarray(halved_sums(weights[:, None], draws, seed)[:, 0], dtype=np.float64)


def _fewest_extreme(draws: int, exact: bool) -> int:
    """Return the smallest number of extreme draws whose p-value is not significant."""
    # If the draws are random, the observed sample counts as one of them, so that no p-value is 0
    # (Phipson and Smyth 2010). If all flips are enumerated, the observed sample is among them.
    observed = 0 if exact else 1
    # Rounded down, the p-value of this number may still be below the level.
    needed = max(0, int(SIGNIFICANCE * (draws + observed)) - observed)
    while (needed + observed) / (draws + observed) < SIGNIFICANCE:
        needed += 1
    return needed


def unit_scores(rows: Array) -> Array:
    """Return the mean score of each unit, given as a sum and a count."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(rows[:, 0] / rows[:, 1], dtype=np.float64)


def are_means(first: Array, second: Array, function: Function) -> bool:
    """Return whether both scores are means, and each unit has the same item count in both systems."""
    return function is mean and bool((first[:, 1] == second[:, 1]).all())


def are_fractions(function: Function, rows: Array, observed: float, left_out: Array) -> bool:
    """Return whether a score, and the scores of single rows, are between 0 and 1."""
    values = defined(scores(function, rows))
    if not len(values):
        # Some scores are undefined for every single row, such as balanced accuracy.
        values = defined(left_out)
    return in_unit_interval(np.append(values, observed))


def varies(left_out: Array, observed: float) -> bool:
    """Return whether leave-one-out scores vary beyond rounding, are undefined, or are fewer than two."""
    if len(left_out) < 2 or not np.isfinite(left_out).all():
        return True
    return jackknife_variance(left_out) > (ROUNDING * max(abs(observed), ROUNDING)) ** 2
