"""Intervals of scores: Clopper-Pearson for fractions, Student's t for other scores.

For fractions other than 0/1 scores, the interval is computed for an effective number of items.
``score_bounds`` has the details.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isclose, sqrt

import numpy as np

from qabench.io.tables import bounds_text
from qabench.stats.distributions import (
    CONFIDENCE,
    clopper_pearson,
    normal_quantile,
    student_quantile,
)
from qabench.stats.units import (
    ROUNDING,
    Array,
    Clusters,
    Function,
    Statistics,
    defined,
    degrees_of_freedom,
    in_unit_interval,
    jackknife_variance,
    mean,
    observed_score,
    scores,
    scores_without_one,
    table,
    units,
)

Bounds = tuple[float, float] | tuple[None, None]


@dataclass(frozen=True, slots=True)
class Interval:
    """A score with its uncertainty, all in the score's own unit.

    Attributes:
        mean: the score of all items: their mean, or the value of the function of
            ``score_interval``.
        standard_error: the standard error by the jackknife, 0 for a single item.
        low: the interval's lower bound, or None if the items are too few or too similar for an
            interval.
        high: the interval's upper bound. It is None if ``low`` is None.
        confidence: the level of the interval.
        undefined: the share of items without which the score would be undefined. The standard error
            leaves them out, so it is too small if this is not 0.
    """

    mean: float
    standard_error: float
    low: float | None
    high: float | None
    confidence: float = CONFIDENCE
    undefined: float = 0.0

    def bounds(self, form: str = ".4f") -> str:
        """Return the bounds as text. See ``bounds_text``."""
        return bounds_text(self.low, self.high, form)


def score_interval(
    statistics: Statistics, function: Function, *, clusters: Clusters = None
) -> Interval:
    """Return a score with its interval, for functions of summed statistics such as F1 or BLEU.

    The standard error and the variance that the bounds use come from the jackknife: the scores
    without one item (or question) at a time. See ``score_bounds``.

    Args:
        statistics: one row of numbers per item, at least one. For F1 true positives, false
            positives and false negatives.
        function: maps the summed statistics, one array per column, to an array of scores, such as
            ``lambda tp, fp, fn: 2 * tp / (2 * tp + fp + fn)``.
        clusters: each item's question if one question gives several items. The jackknife then
            leaves out whole questions.

    Returns:
        The score of all items and its interval, which has no bounds if the items do not allow them.

    Raises:
        InputError: no items, items with different numbers of statistics, or a score that is
            undefined on the items.
    """
    return interval_of_units(units(statistics, clusters), function)


def mean_interval(values: Sequence[float], *, clusters: Clusters = None) -> Interval:
    """Return the mean of per-item scores with its interval over items or ``clusters``.

    With clusters it is still the mean over items: a question with more items has more weight.
    ``score_interval`` describes the other arguments and the errors.

    Examples:
        >>> interval = mean_interval([1, 0, 1, 1])
        >>> interval.mean, interval.bounds()
        (0.75, '0.1941 to 0.9937')
    """
    return interval_of_units(units(table(values), clusters), mean)


def interval_of_units(rows: Array, function: Function) -> Interval:
    """Return the score of independent units with its interval. See ``score_interval``."""
    observed = observed_score(function, rows)
    left_out = scores_without_one(function, rows)
    bounds = score_bounds(rows, function, observed, left_out)
    return interval_from(observed, bounds, left_out)


def interval_from(observed: float, bounds: Bounds, left_out: Array) -> Interval:
    """Return an interval with the standard error of the jackknife."""
    low, high = bounds
    if len(left_out) == 1:
        return Interval(observed, 0.0, low, high)
    finite = defined(left_out)
    error = 0.0
    if len(finite):
        error = sqrt(jackknife_variance(finite))
    return Interval(observed, error, low, high, undefined=1 - len(finite) / len(left_out))


def score_bounds(rows: Array, function: Function, observed: float, left_out: Array) -> Bounds:
    """Return the bounds of a score of independent rows, or (None, None) if the rows allow none.

    ``left_out`` are the scores without one row at a time, as ``scores_without_one`` returns them.

    The mean of 0/1 scores has the exact interval of Clopper and Pearson. Other fractions have the
    same interval at the effective number of rows (Korn and Graubard), which is the number of 0/1
    scores that would have the variance of this score. Scores that are not fractions have Student's
    t interval. The variance is estimated by the jackknife.

    Two corrections matter for few rows. For fractions, the variance is estimated as if there were
    one more row, with the largest possible variance. The degrees of freedom of Student's t follow
    from the kurtosis, so there are few if most of the variance comes from a few rows.
    """
    # The score of each row alone. A question without claims, for example, has none.
    row_scores = defined(scores(function, rows))
    # Some scores are undefined for every single row, such as balanced accuracy. Then the scores
    # without one row show whether the score is a fraction.
    values = row_scores if len(row_scores) else defined(left_out)
    is_fraction = len(values) > 0 and in_unit_interval(values)
    if is_fraction and _is_mean_of_zeros_and_ones(row_scores, observed):
        return _binary_bounds(row_scores, function)
    variance = jackknife_variance(left_out)
    if is_fraction and observed in (0, 1) and np.isfinite(left_out).all() and variance == 0:
        # All rows are right (or wrong), but the score of a single row is undefined. Only half of
        # the rows are counted, as in ``_binary_bounds``.
        half = len(rows) / 2
        return clopper_pearson(observed * half, half)
    # The rows are equal, or the variance is NaN because the score is undefined without one of them.
    if not variance > (ROUNDING * observed) ** 2:
        return None, None
    squares = (left_out - left_out.mean()) ** 2
    t = student_quantile(degrees_of_freedom(squares))
    if not is_fraction:
        margin = t * sqrt(variance)
        return observed - margin, observed + margin
    if not 0 < observed < 1:
        return None, None
    size = _effective_size(observed, variance, len(values), t, function)
    return clopper_pearson(observed * size, size)


def _is_mean_of_zeros_and_ones(row_scores: Array, observed: float) -> bool:
    """Return whether a score is the mean of its rows' scores, each 0 or 1."""
    # If each row has an F1 of 0 or 1, the F1 of all rows is the mean of these only if it is 0 or 1.
    if not len(row_scores) or not np.isin(row_scores, (0, 1)).all():
        return False
    return isclose(row_scores.mean(), observed, abs_tol=ROUNDING)


def _binary_bounds(row_scores: Array, function: Function) -> Bounds:
    """Return the exact interval of a score that is the mean of 0/1 scores."""
    count = len(row_scores)
    # The sum of 0/1 scores is a whole number, so rounding it removes floating-point errors.
    share = float(round(row_scores.sum()) / count)
    size = float(count)
    if function is not mean and share in (0, 1):
        # At 0 and 1, one row may change other scores more than it would change a mean: F1 counts a
        # true positive twice, and a row may have many claims. So only half of the rows are counted.
        size = count / 2
    return clopper_pearson(share * size, size)


def _effective_size(
    observed: float, variance: float, count: int, t: float, function: Function
) -> float:
    """Return how many 0/1 scores would have a mean with this variance (Korn and Graubard 1998).

    Args:
        observed: the score, between 0 and 1.
        variance: its variance by the jackknife, above 0.
        count: the number of rows with a score.
        t: the quantile of Student's t, at the degrees of freedom of the variance.
        function: the score's function.
    """
    # The variance as a share of the variance of 0/1 scores, without and with the added row.
    share = variance * count / (observed * (1 - observed))
    with_added_row = (share * (count - 1) + 1) / count
    share = max(share, with_added_row)
    z = normal_quantile()
    size = count / share * (z / t) ** 2
    # Fractions of equal weight have a share of at most count / (count - 1).
    equal_weights = share * (count - 1) <= count * (1 + ROUNDING)
    if function is mean and equal_weights:
        # No mean of fractions varies more than the mean of as many 0/1 scores.
        return max(size, count)
    return size
