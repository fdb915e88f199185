"""Bootstrap standard errors and confidence intervals of a score.

Source: Efron and Tibshirani, An Introduction to the Bootstrap, 1993: the percentile interval (chapter 13) and the
bias-corrected and accelerated one, BCa (chapter 14).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from qabench.errors import InputError
from qabench.stats.resampling import (
    RESAMPLES,
    Array,
    Function,
    Statistics,
    check,
    defined,
    drawn_sums,
    mean,
    scores,
    table,
    units,
)

METHODS = ("percentile", "bca")


@dataclass(frozen=True, slots=True)
class Interval:
    """A score with its uncertainty, all in the score's own unit.

    Attributes:
        mean: the score of all items: their mean, or the value of the function of ``bootstrap``.
        standard_error: the standard deviation of the resampled scores.
        low: the interval's lower bound.
        high: its upper bound.
        confidence: its level, between 0 and 1.
        undefined: the share of resamples in which the score is undefined; they are not in the interval.
    """

    mean: float
    standard_error: float
    low: float
    high: float
    confidence: float
    undefined: float = 0.0


def bootstrap(
    statistics: Statistics,
    function: Function,
    *,
    clusters: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
    method: str = "percentile",
) -> Interval:
    """Return a score that is a function of summed per-item statistics, with its interval: a ratio, F1, BLEU.

    Args:
        statistics: one row of numbers per item, at least one; for F1 true positives, false positives and false
            negatives.
        function: from the summed statistics, one array per column, to an array of scores, such as
            ``lambda tp, fp, fn: 2 * tp / (2 * tp + fp + fn)``.
        clusters: each item's question if one question gives several items: whole questions are drawn.
        confidence: the interval's level, between 0 and 1.
        resamples: the number of samples of the items (or questions), with replacement.
        seed: the same seed gives the same interval.
        method: "percentile", or "bca", which corrects for bias and skew and is better for few items and for scores
            near 0 or 1.

    Returns:
        The score of all items and its interval; for a single item (or question) the interval is a point.

    Raises:
        InputError: no items, items with different numbers of statistics, an unknown method, a level outside (0, 1), or
            a score that is undefined on the items or on all resamples.
    """
    if method not in METHODS:
        raise InputError(f"unknown method {method!r}; allowed: {', '.join(METHODS)}")
    check(confidence, resamples)
    rows = units(statistics, clusters)
    observed = float(defined(scores(function, rows.sum(axis=0, keepdims=True)), "samples")[0])
    values = scores(function, drawn_sums(rows, resamples, seed))
    levels = ((1 - confidence) / 2, (1 + confidence) / 2)
    if method == "bca" and len(rows) > 1:
        left_out = defined(scores(function, rows.sum(axis=0) - rows), "samples with one item left out")
        levels = _bca_levels(levels, observed, values[np.isfinite(values)], left_out)
    return interval(observed, values, confidence, levels)


def bootstrap_mean(
    values: Sequence[float],
    *,
    clusters: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
    method: str = "percentile",
) -> Interval:
    """Return the mean of per-item scores with a bootstrap interval over items, or over questions (``clusters``).

    With clusters it is still the mean over items: a question with more items has more weight.

    Args:
        values: one score per item, at least one.
        clusters: as ``bootstrap``.
        confidence: as ``bootstrap``.
        resamples: as ``bootstrap``.
        seed: as ``bootstrap``.
        method: as ``bootstrap``.

    Raises:
        InputError: no values, values that are not finite, an unknown method, or a level outside (0, 1).

    Examples:
        >>> found = bootstrap_mean([1, 0, 1, 1])
        >>> found.mean, found.low, found.high
        (0.75, 0.25, 1.0)
    """
    return bootstrap(
        table(values),
        mean,
        clusters=clusters,
        confidence=confidence,
        resamples=resamples,
        seed=seed,
        method=method,
    )


def interval(observed: float, values: Array, confidence: float, levels: tuple[float, float] | None = None) -> Interval:
    """Return the interval between two quantiles of the resampled scores that are defined.

    The quantiles are those of the percentile method unless ``levels`` has others.

    Raises:
        InputError: fewer than two resampled scores are defined.
    """
    finite = values[np.isfinite(values)]
    if len(finite) < 2:
        raise InputError(
            f"the score is undefined (division by zero?) in all but {len(finite)} of {len(values)} resamples"
        )
    low, high = np.quantile(finite, levels or ((1 - confidence) / 2, (1 + confidence) / 2))
    undefined = 1 - len(finite) / len(values)
    return Interval(observed, float(finite.std(ddof=1)), float(low), float(high), confidence, undefined)


def _bca_levels(levels: tuple[float, float], observed: float, values: Array, left_out: Array) -> tuple[float, float]:
    """Return the quantiles to use instead of ``levels``."""
    normal = NormalDist()
    # A resample equal to the sample counts half as below it. At shares of 0 and 1 the bias would be infinite.
    below = np.count_nonzero(values < observed) + np.count_nonzero(values == observed) / 2
    bias = normal.inv_cdf(float(np.clip(below / len(values), 0.5 / len(values), 1 - 0.5 / len(values))))
    deviations = left_out.mean() - left_out
    spread = float((deviations**2).sum())
    acceleration = float((deviations**3).sum()) / (6 * spread**1.5) if spread > 0 else 0.0

    def corrected(level: float) -> float:
        z = bias + normal.inv_cdf(level)
        return normal.cdf(bias + z / (1 - acceleration * z))

    return corrected(levels[0]), corrected(levels[1])
