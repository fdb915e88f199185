"""Uncertainty of scores: intervals, paired tests of systems, corrections.

Everything here uses *sums of per-item statistics*: a mean is the sum of scores over the sum of
ones, F1 a function of summed true and false positives, BLEU of summed n-gram counts. If one
question gives several items (claims, segments), ``clusters`` names each item's question, and whole
questions are drawn or swapped.

Sources: Clopper and Pearson, The Use of Confidence or Fiducial Limits, 1934 (intervals of 0/1
scores). Korn and Graubard, Confidence Intervals for Proportions with Small Expected Number of
Positive Counts, 1998 (intervals of other fractions). Efron and Tibshirani, An Introduction to the
Bootstrap, 1993 (standard errors). Koehn, Statistical Significance Tests for Machine Translation
Evaluation, EMNLP 2004 (paired bootstrap). Noreen, Computer-Intensive Methods for Testing
Hypotheses, 1989, and Fisher, The Design of Experiments, 1935 (randomization). Phipson and Smyth,
Permutation P-values Should Never Be Zero, 2010 (the observed sample counts).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, exp, isclose, lgamma, log, log1p, sqrt
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from qabench.data.rows import grouped
from qabench.errors import InputError, unknown_name
from qabench.io.tables import bounds_text

__all__ = [
    "CORRECTIONS",
    "RESAMPLES",
    "Difference",
    "Interval",
    "adjust",
    "bootstrap",
    "bootstrap_mean",
    "paired_test",
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

CONFIDENCE = 0.95  # the level of intervals and tests
RESAMPLES = 10_000
SEED = 0
# indices drawn at once: blocks that fit into a core's cache are three times as fast
CELLS_AT_ONCE = 100_000
# Scores of systems, metrics and groups of the same size use the same draws, which are cached up to
# this many bytes.
CACHE_BYTES = 200_000_000
_cached: dict[tuple[int, int, int, int], list[Array]] = {}
TESTS = ("randomization", "bootstrap")
CORRECTIONS = ("holm", "bh", "none")
# Sums in another order differ in their last digits: differences up to this share of the largest
# count as equal.
ROUNDING = 1e-9
# With fewer questions on which two systems differ, a randomization test is never significant: 2 / 2
# ** 5 > 0.05.
FEWEST_DIFFERING = 6
Bounds = tuple[float, float] | tuple[None, None]


@dataclass(frozen=True, slots=True)
class Interval:
    """A score with its uncertainty, all in the score's own unit.

    Attributes:
        mean: the score of all items: their mean, or the value of the function of ``bootstrap``.
        standard_error: the standard deviation of the resampled scores.
        low: the interval's lower bound, or None if the items are too few or too equal for an
            interval.
        high: its upper bound. None like ``low``.
        confidence: its level.
        undefined: the share of resamples in which the score is undefined. They are not in the
            standard error.
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


def bootstrap(
    statistics: Statistics,
    function: Function,
    *,
    clusters: Clusters = None,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Interval:
    """Return a score that is a function of summed per-item statistics, with its interval: a ratio, F1, BLEU.

    The standard error comes from the bootstrap. The bounds do not depend on the resamples. See
    ``score_bounds``.

    Args:
        statistics: one row of numbers per item, at least one. For F1 true positives, false
            positives and false negatives.
        function: from the summed statistics, one array per column, to an array of scores, such as
            ``lambda tp, fp, fn: 2 * tp / (2 * tp + fp + fn)``.
        clusters: each item's question if one question gives several items: whole questions are
            drawn.
        resamples: the number of samples of the items (or questions), with replacement.
        seed: the same seed gives the same interval.

    Returns:
        The score of all items and its interval, which has no bounds if the items do not allow them.

    Raises:
        InputError: no items, items with different numbers of statistics, or a score that is
            undefined on the items or on all resamples.
    """
    return bootstrap_all([(units(statistics, clusters), function)], resamples, seed)[0]


def bootstrap_all(
    samples: Sequence[tuple[Array, Function]], resamples: int = RESAMPLES, seed: int = SEED
) -> list[Interval]:
    """Return the intervals of several scores.

    Samples of the same size are drawn once, which takes most of the time.

    A sample is the statistics of the units of resampling (see ``units``), and the function of their
    sums.
    """
    intervals: dict[int, Interval] = {}
    places_by_size = grouped((len(rows), place) for place, (rows, _) in enumerate(samples))
    for places in places_by_size.values():
        tables = [samples[place][0] for place in places]
        sums = drawn_sums(np.hstack(tables), resamples, seed)
        ends = np.cumsum([rows.shape[1] for rows in tables])
        for place, columns in zip(places, np.split(sums, ends[:-1], axis=1), strict=True):
            rows, function = samples[place]
            observed = observed_score(function, rows)
            bounds = score_bounds(rows, function, observed)
            intervals[place] = _interval(observed, bounds, scores(function, columns))
    return [intervals[place] for place in range(len(samples))]


def bootstrap_mean(
    values: Sequence[float], *, clusters: Clusters = None, resamples: int = RESAMPLES, seed: int = SEED
) -> Interval:
    """Return the mean of per-item scores with its interval over items, or over questions (``clusters``).

    With clusters it is still the mean over items: a question with more items has more weight.
    ``bootstrap`` describes the other arguments and the errors.

    Examples:
        >>> interval = bootstrap_mean([1, 0, 1, 1])
        >>> interval.mean, interval.bounds()
        (0.75, '0.1941 to 0.9937')
    """
    rows = units(table(values), clusters)
    return bootstrap_all([(rows, mean)], resamples, seed)[0]


def _interval(observed: float, bounds: Bounds, values: Array) -> Interval:
    """Return an interval with the standard error of the resampled scores, at least two of which must be defined."""
    finite = values[np.isfinite(values)]
    if len(finite) < 2:
        raise InputError(
            f"the score is undefined (division by zero?) in all but {len(finite)} of {len(values)} resamples"
        )
    low, high = bounds
    undefined = 1 - len(finite) / len(values)
    return Interval(observed, float(finite.std(ddof=1)), low, high, undefined=undefined)


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
    left_out = scores(function, rows.sum(axis=0) - rows)
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
    variance = float(squares.sum()) * (len(rows) - 1) / len(rows)
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
    z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
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


def clopper_pearson(successes: float, n: float) -> tuple[float, float]:
    """Return the exact 95% interval of a proportion (Clopper and Pearson 1934).

    Numbers need not be whole.

    Examples:
        >>> low, high = clopper_pearson(0, 2)
        >>> low, round(high, 4)
        (0.0, 0.8419)
    """
    tail = (1 - CONFIDENCE) / 2
    low = beta_quantile(tail, successes, n - successes + 1) if successes > 0 else 0.0
    high = beta_quantile(1 - tail, successes + 1, n - successes) if successes < n else 1.0
    return low, high


@lru_cache
def student_quantile(freedom: float) -> float:
    """Return the bound between which Student's t is with a probability of 95%."""
    x = beta_quantile(1 - CONFIDENCE, freedom / 2, 0.5)
    return sqrt(freedom * (1 - x) / x)


def beta_quantile(probability: float, a: float, b: float) -> float:
    """Return the quantile of the beta distribution, by Newton's method inside a shrinking bracket."""
    low, high = 0.0, 1.0
    mean = a / (a + b)
    deviation = sqrt(mean * (1 - mean) / (a + b + 1))
    x = mean + NormalDist().inv_cdf(probability) * deviation
    log_beta = lgamma(a) + lgamma(b) - lgamma(a + b)
    for _ in range(100):
        if not low < x < high:
            x = (low + high) / 2
        if not low < x < high:  # adjacent numbers
            break
        excess = beta_probability(x, a, b) - probability
        low, high = (low, x) if excess > 0 else (x, high)
        density = exp((a - 1) * log(x) + (b - 1) * log1p(-x) - log_beta)
        step = excess / max(density, 1e-300)
        x -= step
        if abs(step) <= 1e-10 * x:  # the error is now its square
            break
    return min(max(x, low), high)


def beta_probability(x: float, a: float, b: float) -> float:
    """Return the distribution function of the beta distribution at 0 < x < 1 (https://dlmf.nist.gov/8.17#v)."""
    if x > (a + 1) / (a + b + 2):  # where the continued fraction converges slowly
        return 1 - beta_probability(1 - x, b, a)
    fraction = 1.0
    for m in range(20 + ceil(sqrt(max(a, b))), 0, -1):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        fraction = 1 + even / (1 + odd / fraction)
    fraction = 1 - (a + b) * x / ((a + 1) * fraction)
    log_front = a * log(x) + b * log1p(-x) + lgamma(a + b) - lgamma(a) - lgamma(b)
    return exp(log_front) / (a * fraction)


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference of two systems' scores on the same items (first minus second).

    Attributes:
        interval: the difference and its interval, which has 0 inside if p is not below 1 -
            confidence.
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
    ``bootstrap`` describes the other arguments and the errors.

    Args:
        test: "randomization" swaps the results of the systems on items (or whole questions) at
            random. For a mean this is the sign-flip permutation test. The p-value is the share of
            swapped differences that are at least as far from zero as the observed one: exact if
            there are at most ``resamples`` ways to swap the items that differ. Otherwise over
            ``resamples`` random swaps, counting the observed sample: (extreme + 1) /
            (resamples + 1). "bootstrap" draws items with replacement. The p-value is the share of
            resampled differences whose distance from the observed difference is at least the
            distance of the observed difference from zero, counting the observed sample. It is too
            small for few items.

    Raises:
        InputError: an unknown test, no items or different numbers of items, a number that is not
            finite, or a function that is undefined on the items.
    """
    if test not in TESTS:
        raise unknown_name("unknown test", test, TESTS)
    if len(first) != len(second):
        raise InputError(f"paired scores must be aligned: {len(first)} and {len(second)} values")
    rows = [units(values if function else table(values), clusters) for values in (first, second)]
    (difference,) = paired_tests(
        dict(enumerate(rows)), [(0, 1)], function or mean, test, resamples, seed
    )
    return difference


def paired_tests(
    systems: Mapping[Any, Array],
    pairs: Sequence[tuple[Any, Any]],
    function: Function,
    test: str,
    resamples: int,
    seed: int,
) -> list[Difference]:
    """Return the differences of pairs of systems by name, aligned arrays (units, columns).

    All pairs use the same draws.

    Resamples and swaps in which the function is undefined are left out. The interval of a
    difference has the values whose distance from it the test does not find significant.

    Raises:
        InputError: the function is undefined on the items.
    """
    observed = {name: observed_score(function, rows) for name, rows in systems.items()}
    drawn = {name: scores(function, drawn_sums(rows, resamples, seed)) for name, rows in systems.items()}
    swapped = _swapped(systems, pairs, function, resamples, seed) if test == "randomization" else None
    differences = []
    for first, second in pairs:
        difference, values = observed[first] - observed[second], drawn[first] - drawn[second]
        # Under the null hypothesis the differences are centered on zero: shift the resampled ones
        # there.
        null, exact = (values - difference, False) if swapped is None else next(swapped)
        distances = np.abs(null[np.isfinite(null)])
        tolerance = ROUNDING * max(abs(difference), float(distances.max(initial=0)))
        extreme = int(np.count_nonzero(distances >= abs(difference) - tolerance))
        p_value = extreme / len(distances) if exact else (extreme + 1) / (len(distances) + 1)
        differing = np.count_nonzero((systems[first] != systems[second]).any(axis=1))
        bounds: Bounds = None, None
        if differing >= FEWEST_DIFFERING:
            bounds = _difference_bounds(difference, distances, exact, tolerance)
        differences.append(Difference(_interval(difference, bounds, values), p_value))
    return differences


def _difference_bounds(difference: float, distances: Array, exact: bool, tolerance: float) -> Bounds:
    """Return the values whose distance from a difference is not significant; (None, None) if every distance is.

    The distances are those from zero under the null hypothesis, all possible ones if the test is
    exact.
    """
    size, level = len(distances), 1 - CONFIDENCE
    # as many give p >= level
    needed = ceil(level * size) if exact else ceil(level * (size + 1)) - 1
    margin = float(np.partition(distances, size - needed)[size - needed]) if needed else 0.0
    if not margin > tolerance:
        return None, None
    if margin >= abs(difference) - tolerance:  # equal but for rounding: zero is inside
        margin = max(margin, abs(difference))
    return difference - margin, difference + margin


def _swapped(
    systems: Mapping[Any, Array],
    pairs: Sequence[tuple[Any, Any]],
    function: Function,
    resamples: int,
    seed: int,
) -> Iterator[tuple[Array, bool]]:
    """Yield for each pair the differences after swapping units, and whether these are all possible swaps."""
    totals = {name: rows.sum(axis=0) for name, rows in systems.items()}
    changes = [systems[first] - systems[second] for first, second in pairs]
    differing = [changed[changed.any(axis=1)] for changed in changes]
    exact = [2 ** len(rows) <= resamples for rows in differing]
    random = [changed for changed, few in zip(changes, exact, strict=True) if not few]
    sampled: Iterator[Array] = iter(())
    if random:
        sums = halved_sums(np.hstack(random), resamples, seed)
        sampled = iter(np.split(sums, len(random), axis=1))
    for (first, second), rows, few in zip(pairs, differing, exact, strict=True):
        moved = subset_sums(rows) if few else next(sampled)
        swapped = totals[first] - moved, totals[second] + moved
        yield scores(function, swapped[0]) - scores(function, swapped[1]), few


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
        InputError: an unknown correction.

    Examples:
        >>> adjust([0.25, 0.125, 0.5])
        [0.5, 0.375, 0.5]
    """
    if correction not in CORRECTIONS:
        raise unknown_name("unknown correction", correction, CORRECTIONS)
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    ranks = np.arange(1, len(p) + 1)
    if correction == "holm":
        sorted_p = np.maximum.accumulate(p[order] * (len(p) + 1 - ranks))
    elif correction == "bh":
        sorted_p = np.minimum.accumulate((p[order] * len(p) / ranks)[::-1])[::-1]
    else:
        return list(p_values)
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(sorted_p, 1)
    return [float(value) for value in adjusted]


def mean(total: Array, count: Array) -> Array:
    """Divide the sum of values by the number of items: the function of ``table``."""
    return total / count


def table(values: Values) -> Array:
    """Return scores as the statistics of ``mean``: one row (value, 1) per item."""
    column = np.asarray(values, dtype=np.float64)
    return np.column_stack([column, np.ones(len(column))])


def units(statistics: Values, clusters: Clusters) -> Array:
    """Return the units of resampling: the items' statistics, or their sums by cluster in first-seen order."""
    items = np.asarray(statistics, dtype=np.float64)
    if items.size == 0 or items.ndim != 2:
        raise InputError(
            f"nothing to score: statistics must be one row of numbers per item; their shape is {items.shape}"
        )
    if not np.isfinite(items).all():
        row = int(np.flatnonzero(~np.isfinite(items).all(axis=1))[0])
        raise InputError(f"item {row} has a statistic that is not finite: {items[row].tolist()}")
    if clusters is None:
        return items
    index: dict[Hashable, int] = {}
    codes = [index.setdefault(cluster, len(index)) for cluster in clusters]
    return np.column_stack([np.bincount(codes, weights=column) for column in items.T])


def drawn_sums(rows: Array, resamples: int, seed: int) -> Array:
    """Sum over as many rows as there are, drawn with replacement: an array (resamples, columns).

    The sums are the matrix product of the number of draws of each row and the values of the rows.
    They are computed column by column, so that the last digit of a score does not depend on the
    other columns.
    """
    sums = np.empty((resamples, rows.shape[1]))
    columns = np.asfortranarray(rows, dtype=np.float64)
    ones = (columns == 1).all(axis=0)
    start = 0
    for block in _counts(len(rows), resamples, seed):
        for j in range(columns.shape[1]):
            # The number of draws is the number of rows, so the count of a mean is known.
            sums[start : start + len(block), j] = (
                len(rows) if ones[j] else _product(block, columns[:, j])
            )
        start += len(block)
    return sums


def _counts(size: int, resamples: int, seed: int) -> Iterable[Array]:
    """Return the number of draws of each of ``size`` rows, in blocks of resamples: arrays (resamples, size)."""
    key = (size, resamples, seed, CELLS_AT_ONCE)
    if 8 * size * resamples > CACHE_BYTES:
        return _drawn(size, resamples, seed)
    if key not in _cached:
        cells = sum(n * times for n, times, *_ in [key, *_cached])
        if 8 * cells > CACHE_BYTES:
            _cached.clear()
        _cached[key] = list(_drawn(size, resamples, seed))
    return _cached[key]


def _drawn(size: int, resamples: int, seed: int) -> Iterator[Array]:
    rng = np.random.default_rng(seed)
    for _, count in _blocks(resamples, size):
        drawn = rng.integers(size, size=(count, size))
        # so that one bincount counts each resample separately
        drawn += np.arange(count)[:, None] * size
        counts = np.bincount(drawn.ravel(), minlength=drawn.size)
        yield counts.reshape(drawn.shape).astype(np.float64)


def _product(counts: Array, values: Array) -> Array:
    """Return the matrix product.

    For a single row, BLAS would start threads, which on a busy machine takes 100x.
    """
    return np.einsum("ij,j...->i...", counts, values) if len(counts) == 1 else counts @ values


def subset_sums(rows: Array) -> Array:
    """Sum over all subsets of the rows: an array (2 ** rows, columns)."""
    size = len(rows)
    bits = (np.arange(2**size)[:, None] >> np.arange(size) & 1).astype(np.float64)
    return np.asarray(bits @ rows)


def halved_sums(rows: Array, resamples: int, seed: int) -> Array:
    """Sum over random subsets of the rows, each row with probability 1/2: an array (resamples, columns)."""
    size = len(rows)
    rng = np.random.default_rng(seed)
    sums = np.empty((resamples, rows.shape[1]))
    # whole 32-bit words per resample: the generator discards the rest of a word
    words = -(-size // 32)
    for start, count in _blocks(resamples, size):
        packed = np.frombuffer(rng.bytes(4 * words * count), dtype=np.uint8).reshape(count, -1)
        bits = np.unpackbits(packed, axis=1, count=size).astype(np.float64)
        sums[start : start + count] = _product(bits, rows)
    return sums


def scores(function: Function, sums: Array) -> Array:
    """Return the function's value for each row of sums.

    Nan or infinite if it is undefined.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.asarray(function(*sums.T), dtype=np.float64)
    return values


def observed_score(function: Function, rows: Array) -> float:
    """Return the score of all items. Raises InputError if it is undefined."""
    score = float(scores(function, rows.sum(axis=0, keepdims=True))[0])
    if not np.isfinite(score):
        raise InputError(
            "the score of all items is undefined (division by zero?): the function must return a value there, such as 0"
        )
    return score


def _blocks(resamples: int, size: int) -> Iterator[tuple[int, int]]:
    rows = max(1, CELLS_AT_ONCE // max(1, size))
    for start in range(0, resamples, rows):
        yield start, min(rows, resamples - start)
