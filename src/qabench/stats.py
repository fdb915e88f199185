"""Uncertainty of scores: bootstrap confidence intervals of a mean, and the paired bootstrap of a difference.

Source: Efron and Tibshirani, An Introduction to the Bootstrap, 1993; Koehn, Statistical Significance Tests for
Machine Translation Evaluation, EMNLP 2004, for the paired form.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from qabench.errors import InputError

RESAMPLES = 10_000
CELLS_AT_ONCE = 4_000_000


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean, its bootstrap standard error, and the bounds of its percentile interval, in the values' own unit."""

    mean: float
    standard_error: float
    low: float
    high: float
    confidence: float


@dataclass(frozen=True, slots=True)
class Difference:
    """The mean difference of two systems on the same questions (first minus second).

    Attributes:
        interval: the difference and its interval.
        p_value: two-sided; how often a resampled difference is at least as far from the observed one as that is from
            zero, counting the observed sample itself.
    """

    interval: Interval
    p_value: float

    @property
    def significant(self) -> bool:
        """Whether p is below 1 - confidence."""
        return self.p_value < 1 - self.interval.confidence


def bootstrap_mean(
    values: Sequence[float], *, confidence: float = 0.95, resamples: int = RESAMPLES, seed: int = 0
) -> Interval:
    """The mean of per-question scores with a percentile bootstrap interval over questions.

    Args:
        values: one score a question; at least one.
        confidence: the interval's level, between 0 and 1.
        resamples: how many samples of the questions, with replacement.
        seed: the same seed gives the same interval.

    Raises:
        InputError: no values, or a level outside (0, 1).
    """
    data = np.asarray(values, dtype=np.float64)
    return _interval(data, _resampled_means(data, resamples, seed), confidence)


def paired_bootstrap(
    first: Sequence[float],
    second: Sequence[float],
    *,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Difference:
    """Whether two systems differ on the questions both were asked, aligned.

    Raises:
        InputError: the lists differ in length or are empty.
    """
    if len(first) != len(second):
        raise InputError(f"paired scores must be aligned: {len(first)} and {len(second)} values")
    differences = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    means = _resampled_means(differences, resamples, seed)
    observed = differences.mean()
    # Under the null hypothesis the differences are centred on zero: shift the bootstrap distribution there.
    extreme = int(np.count_nonzero(np.abs(means - observed) >= abs(observed) - 1e-12))
    return Difference(_interval(differences, means, confidence), (extreme + 1) / (resamples + 1))


def _resampled_means(data: npt.NDArray[np.float64], resamples: int, seed: int) -> npt.NDArray[np.float64]:
    if data.size == 0:
        raise InputError("a mean over no questions is undefined")
    rng = np.random.default_rng(seed)
    means = np.empty(resamples)
    rows = max(1, CELLS_AT_ONCE // data.size)
    for start in range(0, resamples, rows):
        count = min(rows, resamples - start)
        means[start : start + count] = data[rng.integers(data.size, size=(count, data.size))].mean(axis=1)
    return means


def _interval(data: npt.NDArray[np.float64], means: npt.NDArray[np.float64], confidence: float) -> Interval:
    if not 0 < confidence < 1:
        raise InputError(f"the confidence level is {confidence}; allowed: between 0 and 1, such as 0.95")
    low, high = np.quantile(means, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(float(data.mean()), float(means.std(ddof=1)), float(low), float(high), confidence)
