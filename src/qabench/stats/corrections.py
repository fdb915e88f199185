"""Corrections of p-values for the number of comparisons."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qabench.errors import InputError, unknown_name
from qabench.stats.units import numbers_of

CORRECTIONS = ("holm", "bh", "none")


def adjust(p_values: Sequence[float], correction: str = "holm") -> list[float]:
    """Correct p-values for the number of comparisons, and return them in the same order.

    Corrected p-values are compared with the significance level itself, such as 0.05.

    Args:
        p_values: the p-values of all comparisons, in [0, 1].
        correction: "holm" bounds the probability of any false finding (Holm, A Simple Sequentially
            Rejective Multiple Test Procedure, 1979). "bh" bounds the expected share of false
            findings among the findings (Benjamini and Hochberg, Controlling the False Discovery
            Rate, 1995), for independent or positively dependent tests. "none" changes nothing.

    Returns:
        Values in [0, 1], each at least its uncorrected value, or [] for [].

    Raises:
        InputError: an unknown correction, or a p-value that is not a number from 0 to 1.

    Examples:
        >>> adjust([0.25, 0.125, 0.5])
        [0.5, 0.375, 0.5]
    """
    if correction not in CORRECTIONS:
        raise unknown_name("unknown correction", correction, CORRECTIONS)
    p = numbers_of("p-values", p_values, 1)
    # NaN is neither below 0 nor above 1, so the condition is that a value is not between them.
    outside = p[~((p >= 0) & (p <= 1))]
    if len(outside):
        raise InputError(f"a p-value is {outside[0]}; allowed: numbers from 0 to 1")
    if correction == "none":
        return [float(value) for value in p]
    tests = len(p)
    order = np.argsort(p, kind="stable")
    ascending = p[order]
    ranks = np.arange(1, tests + 1)
    if correction == "holm":
        # Each p-value is multiplied by the number of hypotheses that are not rejected before it.
        # The running maximum keeps a larger p-value from getting a smaller corrected one.
        corrected = np.maximum.accumulate(ascending * (tests + 1 - ranks))
    else:
        # If a hypothesis is rejected, so are all hypotheses with smaller p-values. So no corrected
        # p-value may exceed that of a larger p-value.
        descending = (ascending * tests / ranks)[::-1]
        corrected = np.minimum.accumulate(descending)[::-1]
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(corrected, 1)
    return [float(value) for value in adjusted]
