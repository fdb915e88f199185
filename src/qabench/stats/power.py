"""What a paired test of two systems can show: the smallest difference, and how many questions it needs.

Source of the normal approximation: Cohen, Statistical Power Analysis for the Behavioral Sciences,
1988. Source of the split of a variance between and within questions: Miller, Adding Error Bars to
Evals, 2024.
"""

from __future__ import annotations

from math import ceil, isfinite, sqrt
from statistics import NormalDist

from qabench.errors import InputError
from qabench.stats.differences import SIGNIFICANCE

# The usual convention: 80% of such studies find the difference.
POWER = 0.8


def detectable(
    standard_error: float, n: int, power: float = POWER, *, is_binary: bool = False
) -> float:
    """Return the smallest difference that a two-sided test at 5% finds with this power.

    It is the sum of two normal quantiles (2.80 for 80%) times the standard error of the paired
    difference. For 0/1 scores, one question is added, because their test has steps of one question.

    Examples:
        >>> round(detectable(0.02, 310), 4)
        0.056
    """
    return _quantiles(power) * standard_error + (1 / n if is_binary else 0.0)


def questions_needed(
    deviation: float, difference: float, power: float = POWER, *, is_binary: bool = False
) -> int:
    """Return the number of questions with which ``difference`` is detectable. See ``detectable``.

    Args:
        deviation: the standard deviation of the questions' differences.
        difference: the difference that the test should find.
        power: the probability to find it.
        is_binary: whether each question scores 0 or 1.

    Examples:
        >>> questions_needed(0.5, 0.05)
        785
    """
    if not (isfinite(difference) and difference > 0):
        raise InputError(f"the difference is {difference}; allowed: a number above 0")
    # The positive root of difference * n - quantiles * deviation * sqrt(n) - step = 0.
    step = 1.0 if is_binary else 0.0
    slope = _quantiles(power) * deviation
    root = (slope + sqrt(slope**2 + 4 * difference * step)) / (2 * difference)
    return max(2, ceil(root**2 - 1e-9))


def paired_deviation(first: float, second: float, correlation: float) -> float:
    """Return the standard deviation of the differences of two 0/1 scores with these means.

    Args:
        first: the share of right answers of one system.
        second: that of the other system.
        correlation: the correlation of the systems over questions, 0 if they are independent.
    """
    variances = first * (1 - first), second * (1 - second)
    covariance = correlation * sqrt(variances[0] * variances[1])
    return sqrt(max(0.0, sum(variances) - 2 * covariance))


def _quantiles(power: float) -> float:
    if not 0 < power < 1:
        raise InputError(f"the power is {power}; allowed: a number between 0 and 1, such as 0.8")
    normal = NormalDist()
    return normal.inv_cdf(1 - SIGNIFICANCE / 2) + normal.inv_cdf(power)
