"""FELM's scores as functions of counts, which are numbers or NumPy arrays. See ``scores``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

# The counts as the official script names them: "positive" means judged factual.
COUNTS = ("tp", "tn", "fp", "fn")
# The names of these counts as columns of records. Here, the positive class is the error, so F1 of
# these columns is the reported F1.
COLUMNS = ("error_tn", "error_tp", "error_fn", "error_fp")
# Prefixes of columns and metrics.
RESPONSES, READABLE = "responses_", "readable_"


def precision(tp: Any, tn: Any, fp: Any, fn: Any) -> Any:
    """Return the share of the segments judged wrong that are wrong."""
    return tn / (tn + fn)


def recall(tp: Any, tn: Any, fp: Any, fn: Any) -> Any:
    """Return the share of the wrong segments that were judged wrong."""
    return tn / (tn + fp)


def f1(tp: Any, tn: Any, fp: Any, fn: Any) -> Any:
    """Return the harmonic mean of precision and recall, or 0 if both are 0."""
    # NumPy is imported here, because the benchmark's class imports this module and must be fast to
    # import.
    import numpy as np

    p, r = precision(tp, tn, fp, fn), recall(tp, tn, fp, fn)
    # The formula and the order of its factors are the official script's, because
    # 2 tn / (2 tn + fn + fp) differs in the last digit. If precision and recall are both 0, the
    # script divides by zero.
    return np.where(p + r == 0, 0.0, 2 * r * p / (r + p))


def f1_of_counts(tp: Any, tn: Any, fp: Any, fn: Any) -> Any:
    """Return F1 as 2 tn / (2 tn + fn + fp), for resamples."""
    # In a resample in which no segment was judged wrong, precision is undefined, but this is 0.
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
