"""FELM's scores as functions of counts: numbers or NumPy arrays.

See ``qabench.benchmarks.felm.scores``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

COUNTS = ("tp", "tn", "fp", "fn")
RESPONSES, READABLE = "responses_", "readable_"  # prefixes of columns and metrics


def precision(tp: Any, tn: Any, fp: Any, fn: Any) -> Any:
    """Return the share of the segments judged wrong that are wrong."""
    return tn / (tn + fn)


def recall(tp: Any, tn: Any, fp: Any, fn: Any) -> Any:
    """Return the share of the wrong segments that were judged wrong."""
    return tn / (tn + fp)


def f1(tp: Any, tn: Any, fp: Any, fn: Any) -> Any:
    """Return the harmonic mean of precision and recall.

    0 if both are 0, where the official script divides by zero.
    """
    import numpy as np  # imported on use: a benchmark's class must be cheap to import

    p, r = precision(tp, tn, fp, fn), recall(tp, tn, fp, fn)
    # The official script's form and order: 2 tn / (2 tn + fn + fp) differs in the last digit.
    return np.where(p + r == 0, 0.0, 2 * r * p / (r + p))


def f1_of_counts(tp: Any, tn: Any, fp: Any, fn: Any) -> Any:
    """Return F1 as 2 tn / (2 tn + fn + fp), for resamples: 0 if no segment is judged wrong and some are."""
    return 2 * tn / (2 * tn + fn + fp)


def balanced_accuracy(tp: Any, tn: Any, fp: Any, fn: Any) -> Any:
    """Return the mean of the recall of factual segments and the recall of wrong ones."""
    return (tp / (tp + fn) + recall(tp, tn, fp, fn)) / 2


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "f1": f1,
    "precision": precision,
    "recall": recall,
    "balanced_accuracy": balanced_accuracy,
}
