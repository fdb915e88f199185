"""Figures over many records: means of their scores, and functions of their summed counts (F1, shares of claims)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isfinite, nan

import numpy as np

from qabench.benchmarks import benchmark
from qabench.evaluation import Record
from qabench.evaluation.scores import scores_of
from qabench.scoring.answer_components import mean_of
from qabench.stats import RESAMPLES, Interval, bootstrap_mean
from qabench.stats.bootstrap import interval
from qabench.stats.resampling import Array, Function, drawn_sums, scores, units

Figures = dict[str, Interval]

CONFIDENCE = 0.95
SEED = 0
COUNTS = ("tp", "tn", "fp", "fn")  # of FELM, True = factual; see qabench.scoring.felm
OFFICIAL = "official_"
RESPONSES = "responses_"


def means(records: Sequence[Record], left_out: Sequence[str] = ()) -> Figures:
    """The mean of each score over the records that have it, and have a number there."""
    names = dict.fromkeys(name for record in records for name in record.scores if name not in left_out)
    result = {}
    for name in names:
        if having := [record for record in records if isfinite(record.scores.get(name, nan))]:
            values = [record.scores[name] for record in having]
            result[name] = bootstrap_mean(values, clusters=[record.id for record in having])
    return result


def fastbook(records: Sequence[Record]) -> Figures:
    """The means, in the last digit too those of ``qabench retrieve``."""
    return {
        name: replace(
            found, mean=mean_of([value for record in records if isfinite(value := record.scores.get(name, nan))])
        )
        for name, found in means(records).items()
    }


def felm(records: Sequence[Record]) -> Figures:
    """F1, precision and recall of errors, and balanced accuracy, as ``qabench.scoring.felm`` has them.

    Of segments; with the prefix "responses_" of whole responses; with the prefix "official_" of segments where no
    verdict counts as "all true", as upstream has it.
    """
    rows = {prefix: [_counts(record, prefix) for record in records] for prefix in ("", OFFICIAL)}
    rows[RESPONSES] = [_response_counts(record) for record in records]
    result: Figures = {}
    for prefix in ("", RESPONSES, OFFICIAL):
        found = _of_sums(records, rows[prefix], FELM)
        result |= {prefix + name: value for name, value in found.items()}
    return result


def expertqa(records: Sequence[Record]) -> Figures:
    """The metrics that the benchmark's descriptor declares."""
    return {name: score.interval for name, score in scores_of(benchmark("expertqa").metrics, records).items()}


def _of_sums(
    records: Sequence[Record], rows: Sequence[Sequence[float] | None], functions: Mapping[str, Function]
) -> Figures:
    """Functions of the sums of the rows that there are; those that are undefined on the sums are left out.

    Resamples on which a function is undefined, such as F1 without a single error, are passed over.
    """
    pairs = [(record.id, row) for record, row in zip(records, rows, strict=True) if row is not None]
    if not pairs:
        return {}
    drawn_from = units([row for _, row in pairs], [id for id, _ in pairs])
    drawn = drawn_sums(drawn_from, RESAMPLES, SEED)
    result = {}
    for name, function in functions.items():
        observed = float(scores(function, drawn_from.sum(axis=0, keepdims=True))[0])
        if isfinite(observed):
            values = scores(function, drawn)
            result[name] = interval(observed, values[np.isfinite(values)], CONFIDENCE)
    return result


def _numbers(record: Record, names: Sequence[str]) -> list[float] | None:
    values = [record.scores.get(name, nan) for name in names]
    return values if all(map(isfinite, values)) else None


def _counts(record: Record, prefix: str) -> list[float] | None:
    return _numbers(record, [prefix + name for name in COUNTS])


def _response_counts(record: Record) -> list[float] | None:
    segments = record.detail.get("segments") or []
    if not segments or any(segment["verdict"] is None for segment in segments):
        return None
    found, is_true = (all(segment[name] for segment in segments) for name in ("verdict", "label"))
    cells = ((True, True), (False, False), (True, False), (False, True))
    return [float((found, is_true) == cell) for cell in cells]


def _precision(tp: Array, tn: Array, fp: Array, fn: Array) -> Array:
    return tn / (tn + fn)


def _recall(tp: Array, tn: Array, fp: Array, fn: Array) -> Array:
    return tn / (tn + fp)


def _f1(tp: Array, tn: Array, fp: Array, fn: Array) -> Array:
    # Undefined where precision or recall is, and 0 where both are 0.
    precision, recall = _precision(tp, tn, fp, fn), _recall(tp, tn, fp, fn)
    return np.where(precision + recall == 0, 0.0, 2 * recall * precision / (recall + precision))


def _balanced_accuracy(tp: Array, tn: Array, fp: Array, fn: Array) -> Array:
    return (tp / (tp + fn) + _recall(tp, tn, fp, fn)) / 2


FELM: dict[str, Function] = {
    "f1": _f1,
    "precision": _precision,
    "recall": _recall,
    "balanced_accuracy": _balanced_accuracy,
}
