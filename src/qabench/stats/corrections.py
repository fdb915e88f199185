"""Corrections of p-values for multiple comparisons."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qabench.errors import InputError

CORRECTIONS = ("holm", "bh", "none")


def adjust(p_values: Sequence[float], correction: str = "holm") -> list[float]:
    """P-values corrected for their number, in the order given, to be compared with the level directly.

    Args:
        p_values: of all comparisons, in [0, 1].
        correction: "holm" bounds the probability of any false finding (Holm, A Simple Sequentially Rejective Multiple
            Test Procedure, 1979); "bh" the expected share of false findings among the findings (Benjamini and Hochberg,
            Controlling the False Discovery Rate, 1995), for independent or positively dependent tests; "none".

    Returns:
        Values in [0, 1], none below its uncorrected value; [] for [].

    Raises:
        InputError: an unknown correction, or a p-value outside [0, 1].

    Examples:
        >>> adjust([0.25, 0.125, 0.5])
        [0.5, 0.375, 0.5]
    """
    if correction not in CORRECTIONS:
        raise InputError(f"unknown correction {correction!r}; allowed: {', '.join(CORRECTIONS)}")
    p = np.asarray(p_values, dtype=np.float64)
    if not ((p >= 0) & (p <= 1)).all():
        raise InputError(f"p-values must be between 0 and 1; got {p[~((p >= 0) & (p <= 1))][0]}")
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
