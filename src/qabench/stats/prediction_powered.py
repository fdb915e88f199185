"""Scores of a model judge, corrected by people's labels of a random part of the items.

A judge has a verdict on every item, and people labeled a random part of the items. The corrected
mean is an estimate of the mean that people would have given all items: the mean of the verdicts,
plus the mean difference of labels and verdicts on the labeled part. The verdicts get the weight
that minimizes the variance (PPI++), so a useless judge costs nothing: its weight is 0, and the
labels alone count.

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

import numpy as np
import numpy.typing as npt

from qabench.errors import InputError
from qabench.stats.distributions import normal_quantile, student_quantile
from qabench.stats.intervals import Interval
from qabench.stats.units import (
    Array,
    Clusters,
    degrees_of_freedom,
    in_unit_interval,
    numbers_of,
)

# The minimum number of labeled clusters from which a variance can be estimated.
MIN_LABELED = 2
# With few labels, a judge may have made no mistake on them, and their variance would be too small.
# So unseen mistakes are added to the variance: 1.5 if people found no mistake, fewer if they found
# some, and none if they found 5. The numbers come from simulations: with fewer unseen mistakes, the
# intervals for good judges of thousands of items cover less than 93%.
UNSEEN_MISTAKES = 1.5
MISTAKES_ENOUGH = 5
# Up to this variance, numbers differ by rounding only.
NO_VARIANCE = 1e-18
Codes = npt.NDArray[np.int64]
"""The number of each item's cluster."""


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
    """A corrected mean, and what each item adds to its error.

    Attributes:
        value: the corrected mean.
        influences: what each item adds to the error of the mean. If items are independent, the
            variance of the mean is the sum of the squared influences.
        weight: the weight of the verdicts, from 0 to 1.
        verdicts: the mean of all verdicts.
        labels: the mean of the labels.
        labeled: whether each item has a label.
        mistaken: whether each item has a label that is the opposite of the verdict.
        are_fractions: whether all verdicts and labels are between 0 and 1.
        are_shares: whether all labels are 0 or 1, with equal weights.
    """

    value: float
    influences: Array
    weight: float
    verdicts: float
    labels: float
    labeled: npt.NDArray[np.bool_]
    mistaken: npt.NDArray[np.bool_]
    are_fractions: bool
    are_shares: bool

    @property
    def labeled_count(self) -> int:
        """Return the number of labeled items."""
        return int(self.labeled.sum())


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
    if estimate.are_shares and groups == estimate.labeled_count:
        # As in Wilson's interval of labels without a judge: the variance of a share follows from
        # the share, and is not estimated.
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
        verdicts=estimate.verdicts,
        labels=estimate.labels,
        labeled=estimate.labeled_count,
        n=len(estimate.influences),
        weight=estimate.weight,
        effective=size,
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
    # There is one influence per item.
    sizes = [len(estimate.influences) for estimate in estimates]
    if second_clusters is None:
        second_clusters = clusters
    if clusters is None and sizes[0] != sizes[1]:
        raise InputError(f"paired items must be aligned: {sizes[0]} and {sizes[1]} verdicts")
    # One index for both systems, so that a question has the same code in both.
    index: dict[Hashable, int] = {}
    codes = [
        _codes(clusters, sizes[0], index),
        _codes(second_clusters, sizes[1], index),
    ]
    code_count = max(int(numbers.max()) for numbers in codes) + 1
    influences = []
    labeled_codes = []
    groups = []
    label_counts = []
    unseen = 0.0
    for own_codes, estimate in zip(codes, estimates, strict=True):
        influences.append(np.bincount(own_codes, estimate.influences, minlength=code_count))
        groups.append(_labeled_groups(own_codes, estimate.labeled))
        labeled_codes.append(np.unique(own_codes[estimate.labeled]))
        label_counts.append(estimate.labeled_count)
        unseen += _unseen(estimate, own_codes)
    value = estimates[0].value - estimates[1].value
    # A question's errors cancel out where they are equal for both systems: that is the pairing.
    influence = influences[0] - influences[1]
    fewest = min(groups)
    variance = float((influence**2).sum())
    # This adds one question in each direction on which the systems differ, as the interval of
    # Bonett and Price does. Few labels may show no difference even if there is one.
    variance += max(2 / (fewest + 2) ** 2, unseen)
    freedom = float(fewest - 1)
    if fewest < min(label_counts):
        squares: Array = np.square(influence[np.union1d(*labeled_codes)])
        if squares.any():
            freedom = min(freedom, degrees_of_freedom(squares))
    t = student_quantile(freedom)
    if all(estimate.are_fractions for estimate in estimates):
        # The difference is in [-1, 1]. Wilson's interval is for [0, 1].
        low, high, _ = _fraction_bounds((value + 1) / 2, variance / 4, fewest, t)
        low, high = 2 * low - 1, 2 * high - 1
    else:
        margin = t * sqrt(variance)
        low, high = value - margin, value + margin
    return Corrected(
        Interval(value, sqrt(variance), low, high),
        verdicts=estimates[0].verdicts - estimates[1].verdicts,
        labels=estimates[0].labels - estimates[1].labels,
        labeled=min(label_counts),
        n=max(sizes),
        weight=None,
        effective=None,
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
    """Return the expected width of the interval of ``corrected_mean``, to plan the labels.

    Args:
        n: the number of items with a verdict.
        labels: the number of items that people label.
        share: the expected mean label.
        correlation: the correlation of verdicts and labels. 0 for a useless judge, or an unknown
            one.
        quantile: the quantile of the estimate's distribution, by default the normal one.
    """
    if labels < MIN_LABELED:
        raise InputError(f"{labels} labels; an interval needs {MIN_LABELED} or more")
    labels = min(labels, n)
    # The variance of the labels' mean, less what the verdicts on the other items explain. No judge
    # is worth more labels than there are items.
    explained = correlation**2 * (1 - labels / n)
    size = labels / max(1 - explained, labels / n)
    low, high = wilson_interval(share, size, quantile)
    return high - low


def _estimate(
    verdicts: Sequence[float],
    labels: Sequence[float | None],
    weights: Sequence[float] | None,
) -> _Estimate:
    """Return the corrected mean of a system, with what each item adds to its error."""
    # The names f (verdicts), y (labels) and w are those of docs/how-it-works/judges.md.
    all_f, all_y, labeled = _checked(verdicts, labels)
    f, y = all_f[labeled], all_y[labeled]
    items, n = len(all_f), len(y)
    label_weights = _label_weights(weights, labeled)
    shares = label_weights / label_weights.sum()
    label_mean = float(shares @ y)
    covariance = float(shares @ ((y - label_mean) * (f - shares @ f)))
    variance = float(all_f.var(ddof=1)) if items > 1 else 0.0
    # The weight of PPI++, which minimizes the variance. ``variance`` is that of all verdicts.
    w = 0.0
    if variance > 0:
        w = min(max(covariance / variance, 0.0), 1.0)
    residuals = y - w * f
    residual_mean = float(shares @ residuals)
    influences = w * (all_f - all_f.mean()) / items
    # With the root, the squares of equally weighted items sum to their variance (with n - 1)
    # divided by n.
    influences[labeled] += shares * (residuals - residual_mean) * sqrt(n / (n - 1))
    mistaken = labeled.copy()
    mistaken[labeled] = np.abs(y - f) > 0.5
    return _Estimate(
        value=residual_mean + w * float(all_f.mean()),
        influences=influences,
        weight=w,
        verdicts=float(all_f.mean()),
        labels=label_mean,
        labeled=labeled,
        mistaken=mistaken,
        are_fractions=in_unit_interval(all_f) and in_unit_interval(y),
        are_shares=bool(np.isin(y, (0, 1)).all()) and len(np.unique(label_weights)) == 1,
    )


def _checked(
    verdicts: Sequence[float], labels: Sequence[float | None]
) -> tuple[Array, Array, npt.NDArray[np.bool_]]:
    """Return verdicts and labels as arrays, and whether each item has a label.

    Raises:
        InputError: not one verdict and label per item, or fewer than two labels.
    """
    all_f = numbers_of("verdicts", verdicts, 1)
    all_y = numbers_of("labels", [np.nan if label is None else label for label in labels], 1)
    if len(all_f) != len(all_y):
        raise InputError(
            f"there are {len(all_y)} labels for {len(all_f)} verdicts; allowed: one per item"
        )
    is_number = np.isfinite(all_f)
    if not is_number.all():
        place = int(np.flatnonzero(~is_number)[0])
        raise InputError(f"the verdict on item {place} is {all_f[place]}; allowed: a finite number")
    labeled = np.isfinite(all_y)
    n = int(labeled.sum())
    if n < MIN_LABELED:
        raise InputError(
            f"{n} of {len(all_f)} items have a label; a correction needs {MIN_LABELED} or more"
        )
    return all_f, all_y, labeled


def _label_weights(weights: Sequence[float] | None, labeled: npt.NDArray[np.bool_]) -> Array:
    """Return the weights of the labeled items, which are 1 by default."""
    if weights is None:
        return np.ones(int(labeled.sum()))
    all_weights = numbers_of("weights", weights, 1)
    if len(all_weights) != len(labeled):
        raise InputError(f"there are {len(all_weights)} weights for {len(labeled)} items")
    label_weights = all_weights[labeled]
    if not (np.isfinite(label_weights).all() and (label_weights > 0).all()):
        raise InputError(f"a weight is {label_weights.min()}; allowed: numbers above 0")
    return label_weights


def _codes(clusters: Clusters, n: int, index: dict[Hashable, int] | None = None) -> Codes:
    """Return the number of each item's cluster. Without clusters, each item is its own cluster.

    Args:
        clusters: each item's question.
        n: the number of items.
        index: the numbers of the clusters so far. New clusters are added.
    """
    if clusters is None:
        return np.arange(n)
    if index is None:
        index = {}
    codes = [index.setdefault(cluster, len(index)) for cluster in clusters]
    if len(codes) != n:
        raise InputError(f"there are {len(codes)} clusters for {n} items; allowed: one per item")
    return np.array(codes, dtype=np.int64)


def _labeled_groups(codes: Codes, labeled: npt.NDArray[np.bool_]) -> int:
    """Return the number of clusters with a label. Raises InputError if they are too few."""
    groups = len(np.unique(codes[labeled]))
    if groups < MIN_LABELED:
        raise InputError(
            f"all labels are of one question; a correction needs labels of {MIN_LABELED} or more"
        )
    return groups


def _degrees_of_freedom(estimate: _Estimate, codes: Codes, groups: int) -> float:
    """Return the labeled clusters less one, or fewer if few clusters make up most of the variance.

    Questions with many items add more to the variance than others, and items of one question tend
    to be equal. The degrees of freedom are Satterthwaite's, as for other scores.
    """
    if groups == estimate.labeled_count:
        return groups - 1
    labeled_codes = np.unique(codes[estimate.labeled])
    influences = np.bincount(codes, weights=estimate.influences)
    squares: Array = np.square(influences[labeled_codes])
    if not squares.any():
        return groups - 1
    return degrees_of_freedom(squares)


def _variance(influences: Array, codes: Codes) -> float:
    """Return the variance of an estimate by its items' influences, summed over clusters.

    Items of one cluster may depend on each other, so their sum is squared (Liang and Zeger 1986).
    """
    return float((np.bincount(codes, weights=influences) ** 2).sum())


def _unseen(estimate: _Estimate, codes: Codes) -> float:
    """Return the variance from mistakes of the judge that few labels do not show.

    The variance is scaled by the weight of the verdicts, because Wilson's interval already covers
    this for labels without a judge. Several mistakes on one question count once.
    """
    if not estimate.are_fractions:
        return 0.0
    n = estimate.labeled_count
    mistakes = len(np.unique(codes[estimate.mistaken]))
    further = UNSEEN_MISTAKES * max(0.0, 1 - mistakes / MISTAKES_ENOUGH)
    # A mistake changes a residual by the weight, and squared residuals divided by n * (n - 1) are
    # the variance of their mean. Where all items have labels, nothing is unseen.
    return further * estimate.weight**2 / (n * (n - 1)) * (1 - n / len(codes))


def _fraction_bounds(
    value: float, variance: float, groups: int, t: float
) -> tuple[float, float, float]:
    """Return Wilson's bounds at the effective number of labels, and this number."""
    # The estimate may be outside of [0, 1], because verdicts are subtracted from labels.
    share = min(max(value, 0.0), 1.0)
    if variance > NO_VARIANCE:
        size = share * (1 - share) / variance
    else:
        size = inf
    if share in (0, 1) or size == inf:
        # All labels are equal, so their variance says nothing, and the number of labeled clusters
        # counts.
        size = float(groups)
    low, high = wilson_interval(share, max(size, 1.0), t)
    return low, high, size
