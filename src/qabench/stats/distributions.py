"""Quantiles of the normal, Student's and the beta distribution, and a proportion's interval."""

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
    """Return the number t such that Student's t is in [-t, t] with a probability of 95%."""
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
        if not low < x < high:
            # The bounds are adjacent numbers.
            break
        excess = beta_probability(x, a, b) - probability
        low, high = (low, x) if excess > 0 else (x, high)
        density = exp((a - 1) * log(x) + (b - 1) * log1p(-x) - log_beta)
        step = excess / max(density, 1e-300)
        x -= step
        if abs(step) <= 1e-10 * x:
            # Newton's method squares the error in each step, so the next step would change nothing.
            break
    return min(max(x, low), high)


def beta_probability(x: float, a: float, b: float) -> float:
    """Return the distribution function of the beta distribution at 0 < x < 1 (DLMF 8.17)."""
    if x > (a + 1) / (a + b + 2):
        # There, the continued fraction converges slowly, and the symmetric one quickly.
        return 1 - beta_probability(1 - x, b, a)
    fraction = 1.0
    for m in range(20 + ceil(sqrt(max(a, b))), 0, -1):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        fraction = 1 + even / (1 + odd / fraction)
    fraction = 1 - (a + b) * x / ((a + 1) * fraction)
    log_front = a * log(x) + b * log1p(-x) + lgamma(a + b) - lgamma(a) - lgamma(b)
    return exp(log_front) / (a * fraction)
