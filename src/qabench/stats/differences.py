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
    degrees_of_freedom,
    jackknife_variance,
    mean,
    scores,
)

# The level of tests, as a literal: 1 - 0.95 is a little more than 0.05.
SIGNIFICANCE = 0.05
# With fewer units on which two systems differ, a randomization test is never significant: 2 / 2 **
# 5 is more than 0.05.
FEWEST_DIFFERING = 6


def agreeing_bounds(
    bounds: tuple[float, float], difference: float, p_value: float, limit: float
) -> Bounds:
    """Return bounds that have 0 inside exactly if p is not significant.

    Bounds that come from another method than the test disagree with it only close to the level:
    then the bound next to 0 is moved to 0. Infinite bounds of a score without limits are None.
    """
    low, high = max(bounds[0], -limit), min(bounds[1], limit)
    if p_value >= SIGNIFICANCE:
        low, high = min(low, 0.0), max(high, 0.0)
    elif low <= 0 <= high:
        nearest = ROUNDING * difference
        low, high = (nearest, high) if difference > 0 else (low, nearest)
    return (low, high) if isfinite(low) and isfinite(high) else (None, None)


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
    """Return the bounds of a difference of means."""
    difference = float(
        first[:, 0].sum() / first[:, 1].sum() - second[:, 0].sum() / second[:, 1].sum()
    )
    if np.isin(first_items, (0, 1)).all() and np.isin(second_items, (0, 1)).all():
        change = first_items - second_items
        shares = float((change == 1).mean()), float((change == -1).mean())
        size = float(len(change))
        if len(first) < size:
            # As many independent items as would have the variance of these clusters.
            variance = jackknife_variance(left_out) if len(left_out) > 1 else 0
            if variance:
                size = min(size, (sum(shares) - difference**2) / variance)
            else:
                size = float(len(first))
        return bonett_price(*shares, size)
    low, high = inverted_test(first, second, moved, exact, resamples, seed)
    if not isfinite(low) and is_fraction:
        return -1, 1
    # The test assumes symmetric differences. For few skewed ones, Student's t is a little wider.
    margins = [student_bounds(difference, left_out, len(left_out) - 1)]
    if isfinite(low):
        # Five units allow no finite bounds.
        margins.append((low, high))
    change = unit_scores(first) - unit_scores(second)
    differing = np.count_nonzero(change)
    if is_fraction and 0 < differing < min(FEWEST_DIFFERING, len(change) / 2):
        # So few differences say little about those that the sample does not have: they are read as
        # 0/1 scores, in units of the largest one.
        largest = float(np.abs(change).max())
        gains = float(change.clip(0).mean()), float((-change).clip(0).mean())
        low, high = bonett_price(gains[0] / largest, gains[1] / largest, len(change))
        margins.append((largest * low, largest * high))
    lows, highs = zip(*margins, strict=True)
    return min(lows), max(highs)


def bonett_price(first_only: float, second_only: float, n: float) -> tuple[float, float]:
    """Return the interval of a difference of paired 0/1 scores.

    It adds one disagreement in both directions, which keeps its coverage close to 95% for few
    questions.

    Args:
        first_only: the share of the items that only the first system has right.
        second_only: the share that only the second one has right.
        n: the number of items.
    """
    first, second = (first_only * n + 1) / (n + 2), (second_only * n + 1) / (n + 2)
    difference = first - second
    margin = normal_quantile() * sqrt((first + second - difference**2) / (n + 2))
    return difference - margin, difference + margin


def student_bounds(
    difference: float, left_out: Array, freedom: float | None = None
) -> tuple[float, float]:
    """Return Student's t interval from the differences without one unit at a time.

    It is infinite if one is undefined. Without ``freedom``, the degrees of freedom follow from the
    kurtosis.
    """
    if len(left_out) < 2 or not np.isfinite(left_out).all():
        return -inf, inf
    squares = (left_out - left_out.mean()) ** 2
    margin = 0.0
    if squares.any():
        freedom = freedom or degrees_of_freedom(squares)
        margin = student_quantile(freedom) * sqrt(jackknife_variance(left_out))
    return difference - margin, difference + margin


def bootstrap_bounds(difference: float, distances: Array, tolerance: float) -> tuple[float, float]:
    """Return the values around a difference that the bootstrap test does not exclude."""
    needed = _fewest_extreme(len(distances), exact=False)
    margin = float(np.partition(distances, len(distances) - needed)[-needed]) if needed else inf
    if margin >= abs(difference) - tolerance:
        # The two are equal except for rounding, so zero is inside.
        margin = max(margin, abs(difference))
    return difference - margin, difference + margin


def inverted_test(
    first: Array, second: Array, moved: Array, exact: bool, resamples: int, seed: int
) -> tuple[float, float]:
    """Return the smallest and the largest difference that the sign-flip test does not exclude.

    A shift is tested by flipping the signs of the units' differences minus the shift. A flip of
    some units is as extreme as what was observed if the shift lies between the mean difference of
    these units and that of the others. So the bounds are order statistics of these means.

    Args:
        first: sum and count of each unit.
        second: the same of the other system.
        moved: sums of differences and counts over the flipped units. See ``_swaps``.
        exact: whether these are all flips of the units that differ.
        resamples: the number of random flips.
        seed: the seed of random flips of units that do not differ.
    """
    change, weights = first[:, 0] - second[:, 0], first[:, 1]
    differs = change != 0
    if exact and not differs.all():
        # Flips of units without a difference change nothing for a shift of 0, but for others.
        if 2 ** len(change) <= resamples:
            moved = subset_sums(np.column_stack([change, weights]))
        else:
            moved = np.tile(moved, (max(1, resamples // len(moved)), 1))
            moved[:, 1] += _halved_weights(weights[~differs], len(moved), seed)
    sums, counts = moved[:, 0], moved[:, 1]
    other_counts = weights.sum() - counts
    with np.errstate(divide="ignore", invalid="ignore"):
        means = sums / counts, (change.sum() - sums) / other_counts
    is_all = (counts == 0) | (other_counts == 0)
    lows = np.where(is_all, -inf, np.minimum(*means))
    highs = np.where(is_all, inf, np.maximum(*means))
    needed = _fewest_extreme(len(moved), exact)
    if not needed:
        return -inf, inf
    low = float(np.partition(lows, needed - 1)[needed - 1])
    return low, float(np.partition(highs, len(highs) - needed)[-needed])


def _halved_weights(weights: Array, draws: int, seed: int) -> Array:
    """Return sums of the weights of random subsets."""
    if (weights == weights[0]).all():
        numbers = np.random.default_rng(seed).binomial(len(weights), 0.5, draws)
        return np.asarray(numbers * float(weights[0]), dtype=np.float64)
    return np.asarray(halved_sums(weights[:, None], draws, seed)[:, 0], dtype=np.float64)


def _fewest_extreme(draws: int, exact: bool) -> int:
    """Return the smallest number of extreme draws whose p-value is not significant."""
    # If the draws are random, the observed sample counts as one of them: no p-value is 0.
    observed = 0 if exact else 1
    needed = max(0, int(SIGNIFICANCE * (draws + observed)) - observed)
    while (needed + observed) / (draws + observed) < SIGNIFICANCE:
        needed += 1
    return needed


def unit_scores(rows: Array) -> Array:
    """Return the mean score of each unit, given as a sum and a count."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(rows[:, 0] / rows[:, 1], dtype=np.float64)


def are_means(first: Array, second: Array, function: Function) -> bool:
    """Return whether both scores are means over equal numbers of items, and so their difference."""
    return function is mean and bool((first[:, 1] == second[:, 1]).all())


def are_fractions(function: Function, rows: Array, observed: float, left_out: Array) -> bool:
    """Return whether a score, and the scores of single rows, are between 0 and 1."""
    own = scores(function, rows)
    own = own[np.isfinite(own)]
    values = np.append(own if len(own) else left_out[np.isfinite(left_out)], observed)
    return bool(((values >= 0) & (values <= 1)).all())


def varies(left_out: Array, observed: float) -> bool:
    """Return whether the scores without one row differ by more than rounding, or are undefined."""
    if len(left_out) < 2 or not np.isfinite(left_out).all():
        return True
    return jackknife_variance(left_out) > (ROUNDING * max(abs(observed), ROUNDING)) ** 2
