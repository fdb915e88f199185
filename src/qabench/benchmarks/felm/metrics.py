"""FELM's metrics: functions of summed counts of segments, and of whole responses."""

from __future__ import annotations

from typing import Any

from qabench.evaluation.metric import Metric

COUNTS = ("tp", "tn", "fp", "fn")  # True = factual; tn are the errors found, see qabench.scoring.felm


def precision(tp: Any, tn: Any, fp: Any, fn: Any) -> Any:
    """The share of the segments judged wrong that are wrong."""
    return tn / (tn + fn)


def recall(tp: Any, tn: Any, fp: Any, fn: Any) -> Any:
    """The share of the wrong segments that were judged wrong."""
    return tn / (tn + fp)


def f1(tp: Any, tn: Any, fp: Any, fn: Any) -> Any:
    """The harmonic mean of precision and recall; undefined where one of them is, 0 where both are 0."""
    import numpy as np

    p, r = precision(tp, tn, fp, fn), recall(tp, tn, fp, fn)
    return np.where(p + r == 0, 0.0, 2 * r * p / (r + p))


def balanced_accuracy(tp: Any, tn: Any, fp: Any, fn: Any) -> Any:
    """The mean of the recall of factual segments and of wrong ones."""
    return (tp / (tp + fn) + recall(tp, tn, fp, fn)) / 2


def _size(tp: float, tn: float, fp: float, fn: float) -> float:
    return tp + tn + fp + fn


def _judged_right(tp: float, tn: float, fp: float, fn: float) -> float:
    return (tp + tn) / _size(tp, tn, fp, fn)


_FUNCTIONS = {
    "f1": (f1, "F1 (errors)", "Harmonic mean of precision and recall; the positive class is the error."),
    "precision": (precision, "Precision (errors)", "Share of the segments judged wrong that are wrong."),
    "recall": (recall, "Recall (errors)", "Share of the wrong segments that were judged wrong."),
    "balanced_accuracy": (
        balanced_accuracy,
        "Balanced accuracy",
        "Mean of the recall of factual segments and of wrong ones.",
    ),
}


def _metrics(prefix: str, before: str, unit: str, official: bool) -> list[Metric]:
    return [
        Metric(
            prefix + name,
            before + title,
            about,
            "felm",
            unit=unit,
            columns=tuple(prefix + count for count in COUNTS),
            function=function,
            size=_size,
            item=_judged_right,
            item_title=f"{unit} judged right",
            official=official,
        )
        for name, (function, title, about) in _FUNCTIONS.items()
    ]


METRICS = (
    *_metrics("", "", "segments", True),
    *_metrics("responses_", "Responses: ", "responses", True),
    *_metrics("readable_", "Readable replies only: ", "segments", False),
)
