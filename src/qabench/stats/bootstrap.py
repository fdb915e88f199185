"""Bootstrap standard errors and confidence intervals of a score.

Source: Efron and Tibshirani, An Introduction to the Bootstrap, 1993: the percentile interval (chapter 13).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from qabench.errors import InputError
from qabench.stats.resampling import (
    CONFIDENCE,
    RESAMPLES,
    SEED,
    Array,
    Function,
    Statistics,
    drawn_sums,
    mean,
    observed_score,
    scores,
    table,
    units,
)


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
    confidence: float = CONFIDENCE,
    resamples: int = RESAMPLES,
    seed: int = SEED,
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

    Returns:
        The score of all items and its interval; for a single item (or question) the interval is a point.

    Raises:
        InputError: no items, items with different numbers of statistics, a level outside (0, 1), or a score that is
            undefined on the items or on all resamples.
    """
    if not 0 < confidence < 1:
        raise InputError(f"the confidence level is {confidence}; allowed: between 0 and 1, such as 0.95")
    rows = units(statistics, clusters)
    observed = observed_score(function, rows)
    values = scores(function, drawn_sums(rows, resamples, seed))
    return interval(observed, values, confidence)


def bootstrap_mean(
    values: Sequence[float],
    *,
    clusters: Sequence[Hashable] | None = None,
    confidence: float = CONFIDENCE,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Interval:
    """Return the mean of per-item scores with a bootstrap interval over items, or over questions (``clusters``).

    With clusters it is still the mean over items: a question with more items has more weight.

    Args:
        values: one score per item, at least one.
        clusters: as ``bootstrap``.
        confidence: as ``bootstrap``.
        resamples: as ``bootstrap``.
        seed: as ``bootstrap``.

    Raises:
        InputError: no values, values that are not finite, or a level outside (0, 1).

    Examples:
        >>> interval = bootstrap_mean([1, 0, 1, 1])
        >>> interval.mean, interval.low, interval.high
        (0.75, 0.25, 1.0)
    """
    return bootstrap(table(values), mean, clusters=clusters, confidence=confidence, resamples=resamples, seed=seed)


def interval(observed: float, values: Array, confidence: float = CONFIDENCE) -> Interval:
    """Return the percentile interval of the resampled scores that are defined.

    Raises:
        InputError: fewer than two resampled scores are defined.
    """
    finite = values[np.isfinite(values)]
    if len(finite) < 2:
        raise InputError(
            f"the score is undefined (division by zero?) in all but {len(finite)} of {len(values)} resamples"
        )
    low, high = np.quantile(finite, ((1 - confidence) / 2, (1 + confidence) / 2))
    undefined = 1 - len(finite) / len(values)
    return Interval(observed, float(finite.std(ddof=1)), float(low), float(high), confidence, undefined)
