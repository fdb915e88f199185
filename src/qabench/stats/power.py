"""The power of a paired test: the smallest difference that it detects, and how many questions it needs.

Source of the normal approximation: Cohen, Statistical Power Analysis for the Behavioral Sciences,
1988. Source of the split of a variance between and within questions, which
``qabench.runs.planning`` makes: Miller, Adding Error Bars to Evals, 2024.
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
    difference. For 0/1 scores, the difference of one question (1 / n) is added, because their
    differences have steps of one question.

    Examples:
        >>> round(detectable(0.02, 310), 4)
        0.056
    """
    step = 1 / n if is_binary else 0.0
    return _quantiles(power) * standard_error + step


def questions_needed(
    deviation: float, difference: float, power: float = POWER, *, is_binary: bool = False
) -> int:
    """Return the number of questions with which ``difference`` is detectable. See ``detectable``.

    Args:
        deviation: the standard deviation of the questions' differences.
        difference: the difference that the test should find.
        power: the probability of finding it.
        is_binary: whether each question scores 0 or 1.

    Examples:
        >>> questions_needed(0.5, 0.05)
        785
    """
    if not (isfinite(difference) and difference > 0):
        raise InputError(f"the difference is {difference}; allowed: a number above 0")
    # With the standard error deviation / sqrt(n), ``detectable`` equals the difference if
    # difference * n - quantiles * deviation * sqrt(n) - step = 0. This is a quadratic equation in
    # sqrt(n), and ``root`` is its positive solution.
    step = 1.0 if is_binary else 0.0
    slope = _quantiles(power) * deviation
    root = (slope + sqrt(slope**2 + 4 * difference * step)) / (2 * difference)
    # Rounding errors must not turn a whole number into the next one. One question has no variance.
    return max(2, ceil(root**2 - 1e-9))


def paired_deviation(first: float, second: float, correlation: float) -> float:
    """Return the standard deviation of the differences of two 0/1 scores with these means.

    Args:
        first: the share of right answers of one system.
        second: the share of right answers of the other system.
        correlation: the correlation of the systems over questions, 0 if they are independent.
    """
    first_variance = first * (1 - first)
    second_variance = second * (1 - second)
    covariance = correlation * sqrt(first_variance * second_variance)
    # A correlation of 1 with equal means has the variance 0, which rounding may put below 0.
    return sqrt(max(0.0, first_variance + second_variance - 2 * covariance))


def _quantiles(power: float) -> float:
    """Return the sum of the normal quantiles of the level and the power."""
    if not 0 < power < 1:
        raise InputError(f"the power is {power}; allowed: a number between 0 and 1, such as 0.8")
    normal = NormalDist()
    return normal.inv_cdf(1 - SIGNIFICANCE / 2) + normal.inv_cdf(power)
