"""Uncertainty of scores: intervals, paired tests of systems, corrections.

Everything here uses *sums of per-item statistics*: a mean is the sum of scores over the sum of
ones, F1 a function of summed true and false positives, BLEU of summed n-gram counts. If one
question gives several items (claims, segments), ``clusters`` names each item's question, and whole
questions are left out, drawn or swapped.

Sources: Clopper and Pearson, The Use of Confidence or Fiducial Limits, 1934 (intervals of 0/1
scores). Korn and Graubard, Confidence Intervals for Proportions with Small Expected Number of
Positive Counts, 1998 (intervals of other fractions). Bonett and Price, Adjusted Wald Confidence
Interval for a Difference of Binomial Proportions Based on Paired Data, 2012 (differences of 0/1
scores). Efron and Tibshirani, An Introduction to the Bootstrap, 1993 (standard errors by the
jackknife). Koehn, Statistical Significance Tests for Machine Translation
Evaluation, EMNLP 2004 (paired bootstrap). Noreen, Computer-Intensive Methods for Testing
Hypotheses, 1989, and Fisher, The Design of Experiments, 1935 (randomization). Phipson and Smyth,
Permutation P-values Should Never Be Zero, 2010 (the observed sample counts).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isclose, isfinite, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from qabench.errors import InputError, unknown_name
from qabench.io.tables import bounds_text
from qabench.stats.arguments import check_whole, numbers_of
from qabench.stats.distributions import CONFIDENCE, clopper_pearson, normal_quantile, student_quantile
from qabench.stats.resampling import drawn_sums, halved_sums, subset_sums

__all__ = [
    "CORRECTIONS",
    "RESAMPLES",
    "Difference",
    "Interval",
    "adjust",
    "mean_interval",
    "paired_test",
    "score_interval",
]

Array = npt.NDArray[np.float64]
Statistics = Sequence[Sequence[float]] | Array
"""One row of numbers per item."""
Values = Sequence[float] | Statistics
"""One score per item, or one row of numbers."""
Clusters = Sequence[Hashable] | None
"""Each item's question, if one question gives several items."""
Function = Callable[..., Array]
"""From summed statistics, one array per column, to scores: ``lambda tp, fp, fn: 2 * tp / (2 * tp + fp + fn)``."""

SIGNIFICANCE = 0.05  # the level of tests. 1 - 0.95 is a little more than 0.05
RESAMPLES = 10_000
SEED = 0
TESTS = ("randomization", "bootstrap")
CORRECTIONS = ("holm", "bh", "none")
# Sums in another order differ in their last digits: differences up to this share of the largest
# count as equal.
ROUNDING = 1e-9
# With fewer units on which two systems differ, a randomization test is never significant: 2 / 2 ** 5
# is more than 0.05.
FEWEST_DIFFERING = 6
Bounds = tuple[float, float] | tuple[None, None]


@dataclass(frozen=True, slots=True)
class Interval:
    """A score with its uncertainty, all in the score's own unit.

    Attributes:
        mean: the score of all items: their mean, or the value of the function of ``score_interval``.
        standard_error: by the jackknife, 0 for a single item.
        low: the interval's lower bound, or None if the items are too few or too equal for an
            interval.
        high: its upper bound. None like ``low``.
        confidence: its level.
        undefined: the share of items without which the score would be undefined. The standard error
            does not know what they add to it.
    """

    mean: float
    standard_error: float
    low: float | None
    high: float | None
    confidence: float = CONFIDENCE
    undefined: float = 0.0

    def bounds(self, form: str = ".4f") -> str:
        """Return the bounds as text.

        See ``bounds_text``.
        """
        return bounds_text(self.low, self.high, form)


def score_interval(statistics: Statistics, function: Function, *, clusters: Clusters = None) -> Interval:
    """Return a score that is a function of summed per-item statistics, with its interval: a ratio, F1, BLEU.

    The standard error and the variance that the bounds use come from the jackknife: the scores
    without one item (or question) at a time. See ``score_bounds``.

    Args:
        statistics: one row of numbers per item, at least one. For F1 true positives, false
            positives and false negatives.
        function: from the summed statistics, one array per column, to an array of scores, such as
            ``lambda tp, fp, fn: 2 * tp / (2 * tp + fp + fn)``.
        clusters: each item's question if one question gives several items: whole questions are
            left out.

    Returns:
        The score of all items and its interval, which has no bounds if the items do not allow them.

    Raises:
        InputError: no items, items with different numbers of statistics, or a score that is
            undefined on the items.
    """
    return interval_of_units(units(statistics, clusters), function)


def mean_interval(values: Sequence[float], *, clusters: Clusters = None) -> Interval:
    """Return the mean of per-item scores with its interval over items, or over questions (``clusters``).

    With clusters it is still the mean over items: a question with more items has more weight.
    ``score_interval`` describes the other arguments and the errors.

    Examples:
        >>> interval = mean_interval([1, 0, 1, 1])
        >>> interval.mean, interval.bounds()
        (0.75, '0.1941 to 0.9937')
    """
    return interval_of_units(units(table(values), clusters), mean)


def interval_of_units(rows: Array, function: Function) -> Interval:
    """Return the score of independent units (see ``units``) with its interval. See ``score_interval``."""
    observed = observed_score(function, rows)
    bounds = score_bounds(rows, function, observed)
    return _interval(observed, bounds, scores_without_one(function, rows))


def scores_without_one(function: Function, rows: Array) -> Array:
    """Return the scores without one row at a time, NaN or infinite where they are undefined."""
    return scores(function, rows.sum(axis=0) - rows)


def _interval(observed: float, bounds: Bounds, left_out: Array) -> Interval:
    """Return an interval with the standard error that follows from the scores without one row at a time."""
    low, high = bounds
    if len(left_out) == 1:
        return Interval(observed, 0.0, low, high)
    finite = left_out[np.isfinite(left_out)]
    error = sqrt(_jackknife_variance(finite)) if len(finite) else 0.0
    return Interval(observed, error, low, high, undefined=1 - len(finite) / len(left_out))


def _jackknife_variance(left_out: Array) -> float:
    """Return the variance of a score from its values without one row at a time."""
    squares = (left_out - left_out.mean()) ** 2
    return float(squares.sum()) * (len(left_out) - 1) / len(left_out)


def score_bounds(rows: Array, function: Function, observed: float) -> Bounds:
    """Return the bounds of a score of independent rows; (None, None) if they do not allow any.

    The mean of 0/1 scores has the exact interval of Clopper and Pearson. Other fractions have the
    same interval at the effective number of rows (Korn and Graubard): as many 0/1 scores as would
    have the variance of this score. Scores that are not fractions have Student's t interval. The
    variance is estimated by the jackknife.

    Two corrections are for few rows. One row with the largest possible variance is added to those
    of a fraction. The degrees of freedom of Student's t follow from the kurtosis, so that they are
    few if few rows make up the variance.
    """
    own = scores(function, rows)
    own = own[np.isfinite(own)]  # a question without claims has no score of its own
    left_out = scores_without_one(function, rows)
    # Balanced accuracy is undefined for a single response: then the scores without one row show
    # what it is.
    values = own if len(own) else left_out[np.isfinite(left_out)]
    fractions = len(values) > 0 and bool(((values >= 0) & (values <= 1)).all())
    if (
        len(own)
        and fractions
        and np.isin(own, (0, 1)).all()
        and isclose(own.mean(), observed, abs_tol=ROUNDING)
    ):
        share = float(round(own.sum()) / len(own))
        # The first error found weighs twice in F1, and the first claim supported may be one of many
        # in its answer.
        size = len(own) if function is mean or 0 < share < 1 else len(own) / 2
        return clopper_pearson(share * size, size)
    squares = (left_out - left_out.mean()) ** 2
    variance = _jackknife_variance(left_out)
    if fractions and observed in (0, 1) and np.isfinite(left_out).all() and variance == 0:
        # perfect in both classes, where no single row has a score: as for rows that do
        return clopper_pearson(observed * len(rows) / 2, len(rows) / 2)
    # equal rows, or a score that one row makes undefined: NaN
    if not variance > (ROUNDING * observed) ** 2:
        return None, None
    t = student_quantile(_degrees_of_freedom(squares))
    if not fractions:
        margin = t * sqrt(variance)
        return observed - margin, observed + margin
    if not 0 < observed < 1:
        return None, None
    # The variance as a share of the variance of 0/1 scores, without and with the added row.
    count = len(values)
    share = variance * count / (observed * (1 - observed))
    share = max(share, (share * (count - 1) + 1) / count)
    z = normal_quantile()
    size = count / share * (z / t) ** 2
    equal_weights = share * (count - 1) <= count * (1 + ROUNDING)
    if function is mean and equal_weights:
        size = max(size, count)  # no mean of fractions varies more than one of 0/1 scores
    return clopper_pearson(observed * size, size)


def _degrees_of_freedom(squares: Array) -> float:
    """Return the degrees of freedom of a variance by its own variance (Satterthwaite), at most n - 1, at least 1."""
    total = float(squares.sum())
    spread = float((squares**2).sum()) - total**2 / len(squares)
    most = len(squares) - 1
    return most if 2 * total**2 >= most * spread else max(1.0, 2 * total**2 / spread)


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

    Both systems have one score per item, aligned. With ``function`` one row of statistics per item.
    ``score_interval`` describes the other arguments and the errors.

    The interval contains 0 exactly if p is 0.05 or more. For a mean it has the differences that the
    randomization test does not exclude (``_inverted_test``). For 0/1 scores it is that of Bonett and
    Price, for other functions Student's t interval with the variance of the jackknife.

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
        InputError: an unknown test, no items or different numbers of items or clusters, anything but one finite
            number (with ``function``, one row of them) per item, fewer than 1 resample, or a function that is undefined
            on the items.
    """
    if test not in TESTS:
        raise unknown_name("unknown test", test, TESTS)
    statistics = [units(values if function else table(values), None) for values in (first, second)]
    if statistics[0].shape != statistics[1].shape:
        counts, numbers = zip(*(rows.shape for rows in statistics), strict=True)
        if counts[0] == counts[1]:
            raise InputError(
                f"paired items have {numbers[0]} and {numbers[1]} statistics; allowed: equally many"
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
        InputError: the function is undefined on the items, or a number of resamples or a seed that is not one.
    """
    check_whole("resamples", resamples, 1)
    check_whole("seed", seed, 0)
    observed = {name: observed_score(function, rows) for name, rows in systems.items()}
    left_out = {name: scores_without_one(function, rows) for name, rows in systems.items()}
    fractions = {
        name: _are_fractions(function, rows, observed[name], left_out[name])
        for name, rows in systems.items()
    }
    is_bootstrap = test == "bootstrap"
    if is_bootstrap:
        tables = list(systems.values())
        sums = np.split(drawn_sums(np.hstack(tables), resamples, seed), len(tables), axis=1)
        drawn = {name: scores(function, own) for name, own in zip(systems, sums, strict=True)}
    else:
        swaps = _swaps(systems, pairs, function, resamples, seed)
    differences = []
    for place, (first, second) in enumerate(pairs):
        difference = observed[first] - observed[second]
        if is_bootstrap:
            # Under the null hypothesis the differences are centered on zero: shift the resampled
            # ones there.
            null, exact = drawn[first] - drawn[second] - difference, False
        else:
            moved, exact = swaps[place]
            null = _swapped_differences(systems[first], systems[second], function, moved)
        distances = np.abs(null[np.isfinite(null)])
        tolerance = ROUNDING * max(abs(difference), float(distances.max(initial=0)))
        extreme = int(np.count_nonzero(distances >= abs(difference) - tolerance))
        p_value = extreme / len(distances) if exact else (extreme + 1) / (len(distances) + 1)
        without_one = left_out[first] - left_out[second]
        limit = 1.0 if fractions[first] and fractions[second] else inf
        if is_bootstrap:
            bounds = _bootstrap_bounds(difference, distances, tolerance)
        elif _are_means(systems[first], systems[second], function):
            own_items = items or {name: _unit_scores(systems[name]) for name in (first, second)}
            bounds = _mean_bounds(
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
            bounds = _student_bounds(difference, without_one)
        if limit == 1 and not _varies(without_one, difference):
            bounds = _bonett_price(max(difference, 0), max(-difference, 0), len(without_one))
        interval = _interval(difference, _agreeing(bounds, difference, p_value, limit), without_one)
        differences.append(Difference(interval, p_value))
    return differences


def _are_fractions(function: Function, rows: Array, observed: float, left_out: Array) -> bool:
    """Return whether a score, and the scores of single rows, are between 0 and 1."""
    own = scores(function, rows)
    own = own[np.isfinite(own)]
    values = np.append(own if len(own) else left_out[np.isfinite(left_out)], observed)
    return bool(((values >= 0) & (values <= 1)).all())


def _varies(left_out: Array, observed: float) -> bool:
    """Return whether the scores without one row differ by more than rounding. Undefined ones count as different."""
    if len(left_out) < 2 or not np.isfinite(left_out).all():
        return True
    return _jackknife_variance(left_out) > (ROUNDING * max(abs(observed), ROUNDING)) ** 2


def _agreeing(bounds: tuple[float, float], difference: float, p_value: float, limit: float) -> Bounds:
    """Return bounds within the range of a difference that have 0 inside exactly if p is not significant.

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


def _mean_bounds(
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
    """Return the bounds of a difference of means from the sums and counts of the units, and the scores of the items."""
    difference = float(first[:, 0].sum() / first[:, 1].sum() - second[:, 0].sum() / second[:, 1].sum())
    if np.isin(first_items, (0, 1)).all() and np.isin(second_items, (0, 1)).all():
        change = first_items - second_items
        shares = float((change == 1).mean()), float((change == -1).mean())
        size = float(len(change))
        if len(first) < size:  # as many independent items as would have the variance of these clusters
            variance = _jackknife_variance(left_out) if len(left_out) > 1 else 0
            size = min(size, (sum(shares) - difference**2) / variance) if variance else float(len(first))
        return _bonett_price(*shares, size)
    low, high = _inverted_test(first, second, moved, exact, resamples, seed)
    if not isfinite(low) and is_fraction:
        return -1, 1
    # The test assumes symmetric differences. For few skewed ones, Student's t is a little wider.
    margins = [_student_bounds(difference, left_out, len(left_out) - 1)]
    if isfinite(low):  # five units allow no finite bounds
        margins.append((low, high))
    change = _unit_scores(first) - _unit_scores(second)
    differing = np.count_nonzero(change)
    if is_fraction and 0 < differing < min(FEWEST_DIFFERING, len(change) / 2):
        # So few differences say little about those that the sample does not have: they are read as
        # 0/1 scores, in units of the largest one.
        largest = float(np.abs(change).max())
        gains = float(change.clip(0).mean()), float((-change).clip(0).mean())
        low, high = _bonett_price(gains[0] / largest, gains[1] / largest, len(change))
        margins.append((largest * low, largest * high))
    lows, highs = zip(*margins, strict=True)
    return min(lows), max(highs)


def _bonett_price(first_only: float, second_only: float, n: float) -> tuple[float, float]:
    """Return the interval of a difference of paired 0/1 scores: one disagreement is added in both directions.

    Args:
        first_only: the share of the items that only the first system has right.
        second_only: the share that only the second one has right.
        n: the number of items.
    """
    first, second = (first_only * n + 1) / (n + 2), (second_only * n + 1) / (n + 2)
    difference = first - second
    margin = normal_quantile() * sqrt((first + second - difference**2) / (n + 2))
    return difference - margin, difference + margin


def _student_bounds(
    difference: float, left_out: Array, freedom: float | None = None
) -> tuple[float, float]:
    """Return Student's t interval from the differences without one unit at a time; infinite if one is undefined.

    Without ``freedom``, the degrees of freedom follow from the kurtosis.
    """
    if len(left_out) < 2 or not np.isfinite(left_out).all():
        return -inf, inf
    squares = (left_out - left_out.mean()) ** 2
    margin = 0.0
    if squares.any():
        freedom = freedom or _degrees_of_freedom(squares)
        margin = student_quantile(freedom) * sqrt(_jackknife_variance(left_out))
    return difference - margin, difference + margin


def _bootstrap_bounds(difference: float, distances: Array, tolerance: float) -> tuple[float, float]:
    """Return the values whose distance from a difference the bootstrap test does not find significant."""
    needed = _fewest_extreme(len(distances), exact=False)
    margin = float(np.partition(distances, len(distances) - needed)[-needed]) if needed else inf
    if margin >= abs(difference) - tolerance:  # equal but for rounding: zero is inside
        margin = max(margin, abs(difference))
    return difference - margin, difference + margin


def _fewest_extreme(draws: int, exact: bool) -> int:
    """Return the smallest number of extreme draws whose p-value is not significant."""
    observed = 0 if exact else 1  # the observed sample counts where the draws are random
    needed = max(0, int(SIGNIFICANCE * (draws + observed)) - observed)
    while (needed + observed) / (draws + observed) < SIGNIFICANCE:
        needed += 1
    return needed


def _inverted_test(
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
        seed: of random flips of units that do not differ.
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


def _unit_scores(rows: Array) -> Array:
    """Return the mean score of each unit, given as a sum and a count."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(rows[:, 0] / rows[:, 1], dtype=np.float64)


def _are_means(first: Array, second: Array, function: Function) -> bool:
    """Return whether the score is a mean over the same numbers of items, so that differences are means, too."""
    return function is mean and bool((first[:, 1] == second[:, 1]).all())


def _swaps(
    systems: Mapping[Any, Array],
    pairs: Sequence[tuple[Any, Any]],
    function: Function,
    resamples: int,
    seed: int,
) -> list[tuple[Array, bool]]:
    """Return for each pair sums over swapped units, and whether these are all possible swaps.

    What is summed is the change by which the statistics of the systems differ. For means it is this
    change and the count of the unit.
    """
    changes, differing = [], []
    for first, second in pairs:
        changed = systems[first] - systems[second]
        differs = changed.any(axis=1)
        if _are_means(systems[first], systems[second], function):
            changed[:, 1] = systems[first][:, 1]
        changes.append(changed)
        differing.append(changed[differs])
    exact = [2 ** len(rows) <= resamples for rows in differing]
    random = [changed for changed, few in zip(changes, exact, strict=True) if not few]
    sampled: Iterator[Array] = iter(())
    if random:
        sums = halved_sums(np.hstack(random), resamples, seed)
        sampled = iter(np.split(sums, len(random), axis=1))
    return [
        (subset_sums(rows) if few else next(sampled), few)
        for rows, few in zip(differing, exact, strict=True)
    ]


def _swapped_differences(first: Array, second: Array, function: Function, moved: Array) -> Array:
    """Return the differences after swaps."""
    totals = first.sum(axis=0), second.sum(axis=0)
    if _are_means(first, second, function):
        moved = moved * [1, 0]
    return scores(function, totals[0] - moved) - scores(function, totals[1] + moved)


def adjust(p_values: Sequence[float], correction: str = "holm") -> list[float]:
    """Correct p-values for their number, in the same order.

    Compare the results with the level directly.

    Args:
        p_values: of all comparisons, in [0, 1].
        correction: "holm" bounds the probability of any false finding (Holm, A Simple Sequentially
            Rejective Multiple Test Procedure, 1979). "bh" the expected share of false findings
            among the findings (Benjamini and Hochberg, Controlling the False Discovery Rate, 1995),
            for independent or positively dependent tests. "none".

    Returns:
        Values in [0, 1], each at least its uncorrected value, or [] for [].

    Raises:
        InputError: an unknown correction, or a p-value that is not a number from 0 to 1.

    Examples:
        >>> adjust([0.25, 0.125, 0.5])
        [0.5, 0.375, 0.5]
    """
    if correction not in CORRECTIONS:
        raise unknown_name("unknown correction", correction, CORRECTIONS)
    p = numbers_of("p-values", p_values, 1)
    outside = p[~((p >= 0) & (p <= 1))]
    if len(outside):
        raise InputError(f"a p-value is {outside[0]}; allowed: numbers from 0 to 1")
    order = np.argsort(p, kind="stable")
    ranks = np.arange(1, len(p) + 1)
    if correction == "holm":
        sorted_p = np.maximum.accumulate(p[order] * (len(p) + 1 - ranks))
    elif correction == "bh":
        sorted_p = np.minimum.accumulate((p[order] * len(p) / ranks)[::-1])[::-1]
    else:
        return [float(value) for value in p]
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(sorted_p, 1)
    return [float(value) for value in adjusted]


def mean(total: Array, count: Array) -> Array:
    """Divide the sum of values by the number of items: the function of ``table``."""
    return total / count


def table(values: Values) -> Array:
    """Return scores as the statistics of ``mean``: one row (value, 1) per item."""
    column = numbers_of("scores", values, 1)
    return np.column_stack([column, np.ones(len(column))])


def units(statistics: Values, clusters: Clusters) -> Array:
    """Return the units of resampling: the items' statistics, or their sums by cluster in first-seen order."""
    items = numbers_of("statistics", statistics, 2)
    if items.size == 0:
        raise InputError("nothing to score: there are no items, so the score is undefined")
    if not np.isfinite(items).all():
        row = int(np.flatnonzero(~np.isfinite(items).all(axis=1))[0])
        raise InputError(f"item {row} has a statistic that is not finite: {items[row].tolist()}")
    if clusters is None:
        return items
    index: dict[Hashable, int] = {}
    try:
        codes = [index.setdefault(cluster, len(index)) for cluster in clusters]
    except TypeError as error:  # not iterable, or a list as the id of a question
        allowed = "the id of each item's question"
        raise InputError(f"clusters are {clusters!r:.60} ({error}); allowed: {allowed}") from None
    if len(codes) != len(items):
        raise InputError(
            f"there are {len(codes)} clusters for {len(items)} items; allowed: one per item"
        )
    return np.column_stack([np.bincount(codes, weights=column) for column in items.T])


def scores(function: Function, sums: Array) -> Array:
    """Return the function's value for each row of sums.

    Nan or infinite if it is undefined.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.asarray(function(*sums.T), dtype=np.float64)
    if values.shape != sums.shape[:1]:
        raise InputError(
            f"the function returned an array of shape {values.shape} for {len(sums)} sums; allowed: one score per sum, "
            "as from NumPy's operators"
        )
    return values


def observed_score(function: Function, rows: Array) -> float:
    """Return the score of all items. Raises InputError if it is undefined."""
    score = float(scores(function, rows.sum(axis=0, keepdims=True))[0])
    if not np.isfinite(score):
        raise InputError(
            "the score of all items is undefined (division by zero?): the function must return a value there, such as 0"
        )
    return score
