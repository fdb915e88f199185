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

The intervals of the PPI papers use the normal distribution, and their coverage is too low for rates
near 0 and 1. ``corrected_mean`` has Wilson's interval at the effective number of labels instead:
the number of labels that would give the same variance without a judge. See
docs/how-it-works/judges.md.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import sqrt

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
# With few labels, a judge may have made no mistake on them, and the variance would be too small.
# So unseen mistakes are added to the variance: 1.5 if people found no mistake, fewer if they found
# some, and none if they found 5. The numbers come from simulations: with fewer unseen mistakes, the
# intervals for good judges of thousands of items cover less than 93%.
UNSEEN_MISTAKES = 1.5
MISTAKES_ENOUGH = 5
# Up to this variance, numbers differ by rounding only.
NO_VARIANCE = 1e-18
Codes = npt.NDArray[np.int64]
"""Clusters by number, such as that of each item."""


@dataclass(frozen=True, slots=True)
class Corrected:
    """A judge's mean, corrected by labels of people.

    Attributes:
        interval: the corrected mean (or difference) and its interval.
        verdicts: the mean of the judge's verdicts alone (or their difference).
        labels: the mean of the labels alone (or their difference).
        labeled: the number of labeled items. For a difference, that of the system with fewer.
        n: the number of items. For a difference, that of the system with more.
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
        is_labeled: whether each item has a label.
        is_mistaken: whether each item has a label that is the opposite of the verdict.
        are_fractions: whether all verdicts and labels are between 0 and 1.
        are_shares: whether all labels are 0 or 1, with equal weights.
    """

    value: float
    influences: Array
    weight: float
    verdicts: float
    labels: float
    is_labeled: npt.NDArray[np.bool_]
    is_mistaken: npt.NDArray[np.bool_]
    are_fractions: bool
    are_shares: bool

    @property
    def labeled_count(self) -> int:
        """Return the number of labeled items."""
        return int(self.is_labeled.sum())


@dataclass(frozen=True, slots=True)
class _ClusterSums:
    """What each cluster adds to the error of an estimate.

    Items of one cluster may depend on each other, so the variance is the sum of the squared
    influences of clusters, not of items (Liang and Zeger 1986).

    Attributes:
        influences: the sum of the influences of each cluster's items.
        labeled_codes: the clusters with a label, each once, in ascending order.
        unseen_variance: see ``_unseen_variance``.
    """

    influences: Array
    labeled_codes: Codes
    unseen_variance: float


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
    sums = _cluster_sums(estimate, codes, int(codes.max()) + 1)
    labeled_clusters = len(sums.labeled_codes)
    variance = _variance(sums.influences) + sums.unseen_variance
    if estimate.are_shares and labeled_clusters == estimate.labeled_count:
        # As in Wilson's interval of labels without a judge: the variance of a share follows from
        # the share, and is not estimated.
        quantile = normal_quantile()
    else:
        freedom = _degrees_of_freedom(
            sums.influences, sums.labeled_codes, labeled_clusters, estimate.labeled_count
        )
        quantile = student_quantile(freedom)
    lowest = 0 if estimate.are_fractions else None
    value = estimate.value
    low, high, effective = _bounds(value, variance, quantile, labeled_clusters, lowest)
    return Corrected(
        Interval(value, sqrt(variance), low, high),
        verdicts=estimate.verdicts,
        labels=estimate.labels,
        labeled=estimate.labeled_count,
        n=len(estimate.influences),
        weight=estimate.weight,
        effective=effective,
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
    first_estimate = _estimate(first, first_labels, first_weights)
    second_estimate = _estimate(second, second_labels, second_weights)
    # There is one influence per item.
    first_n, second_n = len(first_estimate.influences), len(second_estimate.influences)
    if second_clusters is None:
        second_clusters = clusters
    if clusters is None and first_n != second_n:
        raise InputError(f"paired items must be aligned: {first_n} and {second_n} verdicts")
    # One index for both systems, so that a question has the same code in both.
    index: dict[Hashable, int] = {}
    first_codes = _codes(clusters, first_n, index)
    second_codes = _codes(second_clusters, second_n, index)
    cluster_count = int(max(first_codes.max(), second_codes.max())) + 1
    first_sums = _cluster_sums(first_estimate, first_codes, cluster_count)
    second_sums = _cluster_sums(second_estimate, second_codes, cluster_count)
    # The system with fewer labels limits what is known about the difference.
    labeled_clusters = min(len(first_sums.labeled_codes), len(second_sums.labeled_codes))
    labeled_count = min(first_estimate.labeled_count, second_estimate.labeled_count)
    # A question's errors cancel out where they are equal for both systems: that is the pairing.
    influences = first_sums.influences - second_sums.influences
    # Both numbers stand for differences that few labels do not show, so the larger one is enough:
    # in simulations, their sum only made the intervals wider.
    unseen = max(
        _bonett_price_variance(labeled_clusters),
        first_sums.unseen_variance + second_sums.unseen_variance,
    )
    variance = _variance(influences) + unseen
    # The variance follows from the questions on which the systems differ, not from the difference.
    # So it is always estimated, also for shares, and the quantile is always Student's.
    labeled_codes = np.union1d(first_sums.labeled_codes, second_sums.labeled_codes)
    quantile = student_quantile(
        _degrees_of_freedom(influences, labeled_codes, labeled_clusters, labeled_count)
    )
    are_fractions = first_estimate.are_fractions and second_estimate.are_fractions
    lowest = -1 if are_fractions else None
    value = first_estimate.value - second_estimate.value
    # The effective number is that of labels of one share, and not defined for a difference.
    low, high, _ = _bounds(value, variance, quantile, labeled_clusters, lowest)
    return Corrected(
        Interval(value, sqrt(variance), low, high),
        verdicts=first_estimate.verdicts - second_estimate.verdicts,
        labels=first_estimate.labels - second_estimate.labels,
        labeled=labeled_count,
        n=max(first_n, second_n),
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
    # In exact arithmetic, the low bound of the share 0 is 0, and the high bound of the share 1 is 1.
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
    # The share of the variance of the labels' mean that the verdicts on the other items explain.
    # The size is at most n, because no judge is worth more labels than there are items.
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
    all_f, all_y, is_labeled = _checked(verdicts, labels)
    f, y = all_f[is_labeled], all_y[is_labeled]
    items, n = len(all_f), len(y)
    label_weights = _label_weights(weights, is_labeled)
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
    influences[is_labeled] += shares * (residuals - residual_mean) * sqrt(n / (n - 1))
    is_mistaken = is_labeled.copy()
    is_mistaken[is_labeled] = np.abs(y - f) > 0.5
    return _Estimate(
        value=residual_mean + w * float(all_f.mean()),
        influences=influences,
        weight=w,
        verdicts=float(all_f.mean()),
        labels=label_mean,
        is_labeled=is_labeled,
        is_mistaken=is_mistaken,
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
    is_labeled = np.isfinite(all_y)
    n = int(is_labeled.sum())
    if n < MIN_LABELED:
        raise InputError(
            f"{n} of {len(all_f)} items have a label; a correction needs {MIN_LABELED} or more"
        )
    return all_f, all_y, is_labeled


def _label_weights(weights: Sequence[float] | None, is_labeled: npt.NDArray[np.bool_]) -> Array:
    """Return the weights of the labeled items, which are 1 by default."""
    if weights is None:
        return np.ones(int(is_labeled.sum()))
    all_weights = numbers_of("weights", weights, 1)
    if len(all_weights) != len(is_labeled):
        raise InputError(f"there are {len(all_weights)} weights for {len(is_labeled)} items")
    label_weights = all_weights[is_labeled]
    is_usable = np.isfinite(label_weights) & (label_weights > 0)
    if not is_usable.all():
        raise InputError(f"a weight is {label_weights[~is_usable][0]}; allowed: numbers above 0")
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
        raise InputError(f"clusters has {len(codes)} entries for {n} items; allowed: one per item")
    return np.array(codes, dtype=np.int64)


def _cluster_sums(estimate: _Estimate, codes: Codes, cluster_count: int) -> _ClusterSums:
    """Return what each cluster adds to the error of an estimate.

    Args:
        estimate: the estimate of one system.
        codes: the cluster of each item.
        cluster_count: the number of clusters, of which the system need not have all.

    Raises:
        InputError: too few clusters have a label.
    """
    labeled_codes = np.unique(codes[estimate.is_labeled])
    if len(labeled_codes) < MIN_LABELED:
        raise InputError(
            f"all labels are of one question; a correction needs labels of {MIN_LABELED} or more"
        )
    sums = np.bincount(codes, weights=estimate.influences, minlength=cluster_count)
    # The sums are floats already, but NumPy's types say that they are whole numbers.
    influences = sums.astype(np.float64)
    return _ClusterSums(influences, labeled_codes, _unseen_variance(estimate, codes))


def _variance(influences: Array) -> float:
    """Return the variance of an estimate or difference by the influences of its clusters."""
    return float((influences**2).sum())


def _degrees_of_freedom(
    influences: Array, labeled_codes: Codes, labeled_clusters: int, labeled_count: int
) -> float:
    """Return the labeled clusters less one, or fewer if few clusters make up most of the variance.

    Questions with many items add more to the variance than others, and items of one question tend
    to be equal. The degrees of freedom are Satterthwaite's, as for other scores.

    Args:
        influences: what each cluster adds to the error of an estimate or difference.
        labeled_codes: the clusters with a label, of one of the two systems if it is a difference.
        labeled_clusters: the number of clusters with a label, of the system with fewer.
        labeled_count: the number of labeled items, of the system with fewer.
    """
    most = labeled_clusters - 1
    if labeled_clusters == labeled_count:
        # No question has several labels.
        return most
    squares: Array = np.square(influences[labeled_codes])
    if not squares.any():
        # A variance of 0 has no degrees of freedom.
        return most
    # A difference may have more clusters with a label of one of the systems than each system has.
    return min(most, degrees_of_freedom(squares))


def _unseen_variance(estimate: _Estimate, codes: Codes) -> float:
    """Return the variance from mistakes of the judge that few labels do not show.

    The variance is scaled by the weight of the verdicts, because Wilson's interval already covers
    this for labels without a judge. Several mistakes on one question count once.
    """
    if not estimate.are_fractions:
        return 0.0
    n = estimate.labeled_count
    mistakes = len(np.unique(codes[estimate.is_mistaken]))
    further = UNSEEN_MISTAKES * max(0.0, 1 - mistakes / MISTAKES_ENOUGH)
    # A mistake changes a residual by the weight, and squared residuals divided by n * (n - 1) are
    # the variance of their mean. Where all items have labels, nothing is unseen.
    return further * estimate.weight**2 / (n * (n - 1)) * (1 - n / len(codes))


def _bonett_price_variance(n: int) -> float:
    """Return the variance of a difference from one more question in each direction.

    Few labels may show no difference of two systems even if there is one. So two questions are
    added on which they differ, one where each is better. Two of n + 2 questions that differ give
    the variance 2 / (n + 2), divided by n + 2 for that of the mean (Bonett and Price 2012).

    Args:
        n: the number of labeled questions.
    """
    return 2 / (n + 2) ** 2


def _bounds(
    value: float, variance: float, quantile: float, labeled_clusters: int, lowest: int | None
) -> tuple[float, float, float | None]:
    """Return the bounds of an estimate or difference, and the effective number of labels.

    Args:
        value: the corrected mean or difference.
        variance: its variance.
        quantile: the quantile of its distribution.
        labeled_clusters: the number of clusters with a label.
        lowest: the lowest possible value: 0 for a mean of fractions, -1 for a difference of such
            means. The highest is 1. None if the scores are not fractions: these have no effective
            number.
    """
    if lowest is None:
        margin = quantile * sqrt(variance)
        return value - margin, value + margin, None
    # Wilson's interval is for [0, 1].
    width = 1 - lowest
    low, high, effective = _fraction_bounds(
        (value - lowest) / width, variance / width**2, quantile, labeled_clusters
    )
    return lowest + width * low, lowest + width * high, effective


def _fraction_bounds(
    value: float, variance: float, quantile: float, labeled_clusters: int
) -> tuple[float, float, float]:
    """Return Wilson's bounds at the effective number of labels, and this number."""
    # The estimate may be outside of [0, 1], because verdicts are subtracted from labels.
    share = min(max(value, 0.0), 1.0)
    if variance > NO_VARIANCE and share not in (0, 1):
        effective = share * (1 - share) / variance
    else:
        # At 0 and 1, also where the estimate was clipped to them, the formula gives 0 labels.
        # Without a variance, it gives infinitely many.
        effective = float(labeled_clusters)
    low, high = wilson_interval(share, max(effective, 1.0), quantile)
    return low, high, effective
