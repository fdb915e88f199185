"""Quantiles of the normal, Student's and the beta distribution, and a proportion's interval.

SciPy has all of these, but is not a dependency of the package. The tests compare them with SciPy's.
"""

from __future__ import annotations

from functools import lru_cache
from math import ceil, exp, lgamma, log, log1p, sqrt
from statistics import NormalDist

# The level of intervals.
CONFIDENCE = 0.95


def normal_quantile() -> float:
    """Return the number z such that a normal variable is in [-z, z] with a probability of 95%."""
    return NormalDist().inv_cdf((1 + CONFIDENCE) / 2)


def clopper_pearson(successes: float, n: float) -> tuple[float, float]:
    """Return the exact 95% interval of a proportion (Clopper and Pearson 1934).

    The numbers need not be whole, because an effective number of items is not.

    Examples:
        >>> low, high = clopper_pearson(0, 2)
        >>> low, round(high, 4)
        (0.0, 0.8419)
    """
    tail = (1 - CONFIDENCE) / 2
    # Without successes, or without failures, a parameter of the beta distribution would be 0.
    low, high = 0.0, 1.0
    if successes > 0:
        low = beta_quantile(tail, successes, n - successes + 1)
    if successes < n:
        high = beta_quantile(1 - tail, successes + 1, n - successes)
    return low, high


@lru_cache
def student_quantile(freedom: float) -> float:
    """Return the number t such that Student's t is in [-t, t] with a probability of 95%.

    Args:
        freedom: the degrees of freedom, above 0. They need not be a whole number.
    """
    # freedom / (freedom + t**2) has the beta distribution with freedom / 2 and 1 / 2.
    x = beta_quantile(1 - CONFIDENCE, freedom / 2, 0.5)
    return sqrt(freedom * (1 - x) / x)


def beta_quantile(probability: float, a: float, b: float) -> float:
    """Return the quantile of the beta distribution, by Newton's method inside a shrinking bracket.

    Args:
        probability: the probability of values up to the quantile, between 0 and 1.
        a: the first parameter, above 0.
        b: the second parameter, above 0.
    """
    low, high = 0.0, 1.0
    mean = a / (a + b)
    deviation = sqrt(mean * (1 - mean) / (a + b + 1))
    # The first guess is the quantile of the normal distribution with this mean and variance.
    x = mean + NormalDist().inv_cdf(probability) * deviation
    log_beta = lgamma(a) + lgamma(b) - lgamma(a + b)
    for _ in range(100):
        if not low < x < high:
            # The first guess or Newton's step is outside of the bracket: halve the bracket.
            x = (low + high) / 2
        if not low < x < high:
            # The bounds are adjacent floats.
            break
        excess = beta_probability(x, a, b) - probability
        if excess > 0:
            high = x
        else:
            low = x
        density = exp((a - 1) * log(x) + (b - 1) * log1p(-x) - log_beta)
        # A density that is too small for a float is 0. The step then leaves the bracket.
        step = excess / max(density, 1e-300)
        x -= step
        if abs(step) <= 1e-10 * x:
            # Newton's method squares the error in each step, so the next step would change nothing.
            break
    return min(max(x, low), high)


def beta_probability(x: float, a: float, b: float) -> float:
    """Return the distribution function of the beta distribution at 0 < x < 1.

    It is the regularized incomplete beta function, computed by its continued fraction (NIST Digital
    Library of Mathematical Functions, 8.17.22 and 8.17.23).
    """
    if x > (a + 1) / (a + b + 2):
        # For such x, the continued fraction converges slowly, but the one for 1 - x converges
        # quickly.
        return 1 - beta_probability(1 - x, b, a)
    # The fraction is computed from its last term to its first. The number of terms that double
    # precision needs grows with the root of the larger parameter.
    terms = 20 + ceil(sqrt(max(a, b)))
    fraction = 1.0
    for m in range(terms, 0, -1):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        fraction = 1 + even / (1 + odd / fraction)
    fraction = 1 - (a + b) * x / ((a + 1) * fraction)
    log_front = a * log(x) + b * log1p(-x) + lgamma(a + b) - lgamma(a) - lgamma(b)
    return exp(log_front) / (a * fraction)
