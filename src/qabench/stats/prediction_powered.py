"""Scores of a model judge, corrected by a random part of labels from people.

A judge has a verdict on every item, people labeled a random part. The corrected mean is an estimate
of the mean that people would have given all items: the mean of the verdicts, plus the mean
difference of labels and verdicts on the labeled part. The weight of the verdicts is the one with
the smallest variance (PPI++), so a useless judge costs nothing: its weight is 0, and the labels
alone count.

Sources: Angelopoulos, Bates, Fannjiang, Jordan and Zrnic, Prediction-Powered Inference, Science
2023. Angelopoulos, Duchi and Zrnic, PPI++: Efficient Prediction-Powered Inference, 2023 (the
weight). Wilson, Probable Inference, the Law of Succession, and Statistical Inference, 1927 (the
interval). Korn and Graubard, 1998 (the effective size). Liang and Zeger, 1986 (variances over
clusters).

The intervals of the PPI papers use the normal distribution, which covers too little for rates near
0 and 1. ``corrected_mean`` has Wilson's interval at the effective number of labels instead: as many
labels alone as would have the variance of the estimate. See docs/how-it-works/judges.md.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import inf, sqrt
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from qabench.errors import InputError
from qabench.stats.distributions import normal_quantile, student_quantile
from qabench.stats.intervals import Interval
from qabench.stats.units import degrees_of_freedom, numbers_of

Array: TypeAlias = npt.NDArray[np.float64]
Clusters = Sequence[Hashable] | None
# The number of labeled clusters that a variance needs.
MIN_LABELED = 2
# A judge may have made no mistake on few labels, so their variance says too little about it. Further
# mistakes are added to the variance: 1.5 where people found none, and fewer up to 5 of them. Found by
# simulation: with fewer, intervals of good judges of thousands of items cover less than 93%.
UNSEEN_MISTAKES = 1.5
MISTAKES_ENOUGH = 5
# The smallest variance that counts. Below it, numbers differ by rounding only.
ROUNDING = 1e-18


@dataclass(frozen=True, slots=True)
class Corrected:
    """A judge's mean, corrected by labels of people.

    Attributes:
        interval: the corrected mean (or difference) and its interval.
        verdicts: the mean of the judge's verdicts alone (or their difference).
        labels: the mean of the labels alone (or their difference).
        labeled: the number of labeled items.
        n: the number of items.
        weight: the weight of the verdicts, from 0 (useless) to 1. None for a difference.
        effective: the number of labels that would have this variance without a judge. None if
            unknown.
    """

    interval: Interval
    verdicts: float
    labels: float
    labeled: int
    n: int
    weight: float | None
    effective: float | None


@dataclass(frozen=True, slots=True)
class _Estimate:
    """A corrected mean, and what each item adds to its error."""

    value: float
    influences: Array
    weight: float
    verdicts: float
    labels: float
    labeled: npt.NDArray[np.bool_]
    # The labeled items on which the judge says the opposite.
    mistaken: npt.NDArray[np.bool_]
    are_fractions: bool
    # Whether labels are 0 or 1, with equal weights.
    are_shares: bool


def corrected_mean(
    verdicts: Sequence[float],
    labels: Sequence[float | None],
    *,
    clusters: Clusters = None,
    weights: Sequence[float] | None = None,
) -> Corrected:
    """Return the mean label that people would have given all items, estimated from a labeled part.

    The labeled part must be random. If it was drawn with different probabilities, ``weights`` are
    their inverses.

    Args:
        verdicts: the judge's verdict on each item, such as 1 and 0.
        labels: the label of people for each item, None or NaN where there is none.
        clusters: each item's question, if one question gives several items.
        weights: the weights of the labeled items. Those of other items do not count.

    Raises:
        InputError: not one verdict and label per item, or fewer than two labeled items or clusters.

    Examples:
        >>> verdicts = [1, 1, 1, 0, 1, 0, 1, 1, 0, 1]
        >>> labels = [1, 0, 1, 0, 1, None, None, None, None, None]
        >>> corrected = corrected_mean(verdicts, labels)
        >>> round(corrected.verdicts, 4), round(corrected.interval.mean, 4)
        (0.7, 0.5486)
    """
    estimate = _estimate(verdicts, labels, weights)
    codes = _codes(clusters, len(estimate.influences))
    groups = _labeled_groups(codes, estimate.labeled)
    variance = _variance(estimate.influences, codes) + _unseen(estimate, codes)
    value = estimate.value
    if estimate.are_shares and groups == int(estimate.labeled.sum()):
        # As in Wilson's interval of labels without a judge: the variance of a share follows from it,
        # and is not estimated.
        quantile = normal_quantile()
    else:
        quantile = student_quantile(_degrees_of_freedom(estimate, codes, groups))
    if estimate.are_fractions:
        low, high, size = _fraction_bounds(value, variance, groups, quantile)
    else:
        margin = quantile * sqrt(variance)
        low, high, size = value - margin, value + margin, None
    return Corrected(
        Interval(value, sqrt(variance), low, high),
        estimate.verdicts,
        estimate.labels,
        int(estimate.labeled.sum()),
        len(estimate.influences),
        estimate.weight,
        size,
    )


def corrected_difference(
    first: Sequence[float],
    first_labels: Sequence[float | None],
    second: Sequence[float],
    second_labels: Sequence[float | None],
    *,
    clusters: Clusters = None,
    second_clusters: Clusters = None,
    first_weights: Sequence[float] | None = None,
    second_weights: Sequence[float] | None = None,
) -> Corrected:
    """Return the difference of two systems' corrected means, first minus second, with its interval.

    Questions of both systems are paired by their cluster, so the interval is as narrow as that of
    paired items. Labels of both systems on the same questions make it narrowest.

    Args:
        first: the judge's verdicts on the first system's items.
        first_labels: see ``corrected_mean``.
        second: the verdicts on the second system's items.
        second_labels: see ``corrected_mean``.
        clusters: the question of each of the first system's items. By default items are aligned.
        second_clusters: the questions of the second system's items. By default ``clusters``.
        first_weights: see ``corrected_mean``.
        second_weights: see ``corrected_mean``.
    """
    estimates = (
        _estimate(first, first_labels, first_weights),
        _estimate(second, second_labels, second_weights),
    )
    sizes = [len(estimate.influences) for estimate in estimates]
    if second_clusters is None:
        second_clusters = clusters
    if clusters is None and sizes[0] != sizes[1]:
        raise InputError(f"paired items must be aligned: {sizes[0]} and {sizes[1]} verdicts")
    index: dict[Hashable, int] = {}
    codes = [
        _codes(clusters, sizes[0], index),
        _codes(second_clusters, sizes[1], index),
    ]
    number = max(int(numbers.max()) for numbers in codes) + 1
    sums = []
    groups = []
    labeled = []
    n_labels = []
    unseen = 0.0
    for code, estimate in zip(codes, estimates, strict=True):
        sums.append(np.bincount(code, weights=estimate.influences, minlength=number))
        groups.append(_labeled_groups(code, estimate.labeled))
        labeled.append(np.unique(code[estimate.labeled]))
        n_labels.append(int(estimate.labeled.sum()))
        unseen += _unseen(estimate, code)
    value = estimates[0].value - estimates[1].value
    # One question more on which the systems differ, in both directions, as in the interval of
    # Bonett and Price: few labels may show no difference although there are some.
    fewest = min(groups)
    variance = float(((sums[0] - sums[1]) ** 2).sum())
    variance += max(2 / (fewest + 2) ** 2, unseen)
    freedom = float(fewest - 1)
    if fewest < min(n_labels):
        squares: Array = np.square((sums[0] - sums[1])[np.union1d(*labeled)])
        freedom = min(freedom, degrees_of_freedom(squares)) if squares.any() else freedom
    t = student_quantile(freedom)
    if all(estimate.are_fractions for estimate in estimates):
        # The difference is in [-1, 1]. Wilson's interval is for [0, 1].
        low, high, _ = _fraction_bounds((value + 1) / 2, variance / 4, fewest, t)
        low, high = 2 * low - 1, 2 * high - 1
    else:
        low, high = value - t * sqrt(variance), value + t * sqrt(variance)
    return Corrected(
        Interval(value, sqrt(variance), low, high),
        estimates[0].verdicts - estimates[1].verdicts,
        estimates[0].labels - estimates[1].labels,
        min(n_labels),
        max(sizes),
        None,
        None,
    )


def wilson_interval(share: float, n: float, quantile: float | None = None) -> tuple[float, float]:
    """Return Wilson's 95% interval of a share of ``n`` items, which need not be a whole number.

    Examples:
        >>> low, high = wilson_interval(0.0, 50)
        >>> low, round(high, 4)
        (0.0, 0.0713)
    """
    z = normal_quantile() if quantile is None else quantile
    square = z * z / n
    center = (share + square / 2) / (1 + square)
    margin = z * sqrt(share * (1 - share) / n + square / (4 * n)) / (1 + square)
    # At 0 and 1, center and margin differ by rounding only.
    low = 0.0 if share <= 0 else max(0.0, center - margin)
    high = 1.0 if share >= 1 else min(1.0, center + margin)
    return low, high


def expected_width(
    n: int, labels: int, share: float, correlation: float = 0.0, quantile: float | None = None
) -> float:
    """Return the expected width of the interval of ``corrected_mean``, to plan how many to label.

    Args:
        n: the number of items with a verdict.
        labels: the number that people label.
        share: the expected mean label.
        correlation: the correlation of verdicts and labels. 0 for a useless judge, or an unknown
            one.
        quantile: the quantile of the estimate's distribution, by default the normal one.
    """
    if labels < MIN_LABELED:
        raise InputError(f"{labels} labels; an interval needs {MIN_LABELED} or more")
    labels = min(labels, n)
    # The variance of the labels' mean, less what the verdicts on the other items explain.
    explained = correlation**2 * (1 - labels / n)
    size = labels / max(1 - explained, labels / n)
    low, high = wilson_interval(share, size, quantile)
    return high - low


def _estimate(
    verdicts: Sequence[float],
    labels: Sequence[float | None],
    weights: Sequence[float] | None,
) -> _Estimate:
    f = numbers_of("verdicts", verdicts, 1)
    y = numbers_of("labels", [np.nan if label is None else label for label in labels], 1)
    if len(f) != len(y):
        raise InputError(f"there are {len(y)} labels for {len(f)} verdicts; allowed: one per item")
    if not np.isfinite(f).all():
        place = int(np.flatnonzero(~np.isfinite(f))[0])
        raise InputError(f"the verdict on item {place} is {f[place]}; allowed: a finite number")
    labeled = np.isfinite(y)
    n = int(labeled.sum())
    if n < MIN_LABELED:
        raise InputError(
            f"{n} of {len(f)} items have a label; a correction needs {MIN_LABELED} or more"
        )
    w = np.ones(n)
    if weights is not None:
        all_weights = numbers_of("weights", weights, 1)
        if len(all_weights) != len(f):
            raise InputError(f"there are {len(all_weights)} weights for {len(f)} items")
        w = all_weights[labeled]
        if not (np.isfinite(w).all() and (w > 0).all()):
            raise InputError(f"a weight is {w.min()}; allowed: numbers above 0")
    shares = w / w.sum()
    labels_there, verdicts_there = y[labeled], f[labeled]
    label_mean = float(shares @ labels_there)
    covariance = float(
        shares @ ((labels_there - label_mean) * (verdicts_there - shares @ verdicts_there))
    )
    spread = float(f.var(ddof=1)) if len(f) > 1 else 0.0
    # PPI++: the weight with the smallest variance, if verdicts on all items count.
    weight = min(max(covariance / spread, 0.0), 1.0) if spread > 0 else 0.0
    residuals = labels_there - weight * verdicts_there
    residual_mean = float(shares @ residuals)
    influences = weight * (f - f.mean()) / len(f)
    influences[labeled] += shares * (residuals - residual_mean) * sqrt(n / (n - 1))
    are_fractions = bool(((f >= 0) & (f <= 1)).all())
    are_fractions &= bool(((labels_there >= 0) & (labels_there <= 1)).all())
    are_shares = bool(np.isin(labels_there, (0, 1)).all()) and len(np.unique(w)) == 1
    mistaken = labeled.copy()
    mistaken[labeled] = np.abs(labels_there - verdicts_there) > 0.5
    value = residual_mean + weight * float(f.mean())
    return _Estimate(
        value,
        influences,
        weight,
        float(f.mean()),
        label_mean,
        labeled,
        mistaken,
        are_fractions,
        are_shares,
    )


def _codes(
    clusters: Clusters, n: int, index: dict[Hashable, int] | None = None
) -> npt.NDArray[np.int64]:
    """Return the number of each item's cluster. Without clusters, each item is its own."""
    if clusters is None:
        return np.arange(n)
    numbers = {} if index is None else index
    codes = [numbers.setdefault(cluster, len(numbers)) for cluster in clusters]
    if len(codes) != n:
        raise InputError(f"there are {len(codes)} clusters for {n} items; allowed: one per item")
    return np.array(codes, dtype=np.int64)


def _labeled_groups(codes: npt.NDArray[np.int64], labeled: npt.NDArray[np.bool_]) -> int:
    groups = len(np.unique(codes[labeled]))
    if groups < MIN_LABELED:
        raise InputError(
            f"all labels are of one question; a correction needs labels of {MIN_LABELED} or more"
        )
    return groups


def _degrees_of_freedom(estimate: _Estimate, codes: npt.NDArray[np.int64], groups: int) -> float:
    """Return the number of labeled clusters less one, or fewer if few of them make up the variance.

    Questions with many items vary more than others, and items of one question tend to be equal.
    The number follows from the variance of the variance (Satterthwaite), as for other scores.
    """
    if groups == int(estimate.labeled.sum()):
        return groups - 1
    labeled = np.unique(codes[estimate.labeled])
    squares: Array = np.square(np.bincount(codes, weights=estimate.influences)[labeled])
    return degrees_of_freedom(squares) if squares.any() else groups - 1


def _variance(influences: Array, codes: npt.NDArray[np.int64]) -> float:
    """Return the variance of an estimate by its items' influences, summed over clusters."""
    return float((np.bincount(codes, weights=influences) ** 2).sum())


def _unseen(estimate: _Estimate, codes: npt.NDArray[np.int64]) -> float:
    """Return the variance from mistakes of the judge that few labels do not show.

    It is scaled by the weight of the verdicts: without a judge, Wilson's interval already covers
    this. Mistakes on one question count once.
    """
    if not estimate.are_fractions:
        return 0.0
    n = int(estimate.labeled.sum())
    mistakes = len(np.unique(codes[estimate.mistaken]))
    further = UNSEEN_MISTAKES * max(0.0, 1 - mistakes / MISTAKES_ENOUGH)
    return further * estimate.weight**2 / (n * (n - 1)) * (1 - n / len(codes))


def _fraction_bounds(
    value: float, variance: float, groups: int, t: float
) -> tuple[float, float, float]:
    """Return Wilson's bounds at the effective number of labels, and this number."""
    share = min(max(value, 0.0), 1.0)
    size = share * (1 - share) / variance if variance > ROUNDING else inf
    if share in (0, 1) or size == inf:
        # All labels are equal, so their variance says nothing: then their number counts.
        size = float(groups)
    low, high = wilson_interval(share, max(size, 1.0), t)
    return low, high, size
