"""FELM's metrics: functions of summed counts of segments, and of whole responses."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from qabench.benchmarks.felm.counts import COUNTS, FUNCTIONS, f1_of_counts
from qabench.evaluation.metric import Metric

if TYPE_CHECKING:
    from qabench.benchmarks.felm.scores import ResponseScore

RESPONSES, READABLE = "responses_", "readable_"  # prefixes of columns and metrics


def columns(score: ResponseScore) -> dict[str, float]:
    """Return the columns of ``Record.scores`` of one response.

    Returns:
        ``tp``, ``tn``, ``fp``, ``fn``: the official counts of segments; with the prefix ``responses_`` the counts of
        the whole response (one of the four is 1); with the prefix ``readable_`` the counts of segments by the readable
        replies, absent if no reply is readable.
    """
    counts = asdict(score.segments) | {RESPONSES + name: n for name, n in asdict(score.response).items()}
    if score.readable_segments is not None:
        counts |= {READABLE + name: n for name, n in asdict(score.readable_segments).items()}
    return {name: float(n) for name, n in counts.items()}


def _size(tp: float, tn: float, fp: float, fn: float) -> float:
    return tp + tn + fp + fn


def _judged_right(tp: float, tn: float, fp: float, fn: float) -> float:
    return (tp + tn) / _size(tp, tn, fp, fn)


_SHOWN = {
    "f1": ("F1 (errors)", "Harmonic mean of precision and recall; the positive class is the error."),
    "precision": ("Precision (errors)", "Share of the {unit} judged wrong that are wrong."),
    "recall": ("Recall (errors)", "Share of the wrong {unit} that were judged wrong."),
    "balanced_accuracy": ("Balanced accuracy", "Mean of the recall of factual {unit} and of wrong {unit}."),
}


def _metrics(prefix: str, before: str, unit: str, family: str = "felm", official: bool = True) -> list[Metric]:
    return [
        Metric(
            prefix + name,
            before + title,
            about.format(unit=unit),
            family,
            unit=unit,
            columns=tuple(prefix + count for count in COUNTS),
            function=FUNCTIONS[name],
            resampled=f1_of_counts if name == "f1" else None,
            size=_size,
            item=_judged_right,
            item_title=f"{unit} judged right",
            readable=READABLE + name if official else "",
            official=official,
            main=official and (not prefix or name in ("f1", "balanced_accuracy")),
        )
        for name, (title, about) in _SHOWN.items()
    ]


METRICS = (
    *_metrics("", "", "segments"),
    *_metrics(RESPONSES, "Responses: ", "responses"),
    *_metrics(READABLE, "Readable replies only: ", "segments", "felm_readable", official=False),
)
