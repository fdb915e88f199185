"""Whether the runs of a section differ, on the questions that all of them have scores for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from qabench.evaluation import Record
from qabench.report.sections import Section
from qabench.runs.corpus import COUNTS, FELM, RATIOS
from qabench.stats import Difference, adjust, compare, paired_randomization

CONFIDENCE = 0.95
Array = npt.NDArray[np.float64]
Scores = Mapping[str, Sequence[float]]
"""A run's numbers by question."""


@dataclass(frozen=True, slots=True)
class Measure:
    """A figure that runs are compared by.

    Attributes:
        columns: the scores that it is made of. function: of their sums; None for the mean of the one.
        won: from questions' rows (one a question, a number a column) what decides who wins each.
    """

    figure: str
    columns: tuple[str, ...]
    function: Callable[..., Array] | None = None
    won: Callable[[Array], Array] = lambda rows: rows[:, 0]


def compare_runs(section: Section) -> list[dict[str, Any]]:
    """Each two runs by each figure: a paired randomisation test, corrected after Holm over the pairs of a figure.

    A question's epochs count as one. Where a figure is one of all segments or claims together, a question is won by
    whoever judged more of its segments as people did, or has the larger share of its claims.

    Returns:
        Rows as ``Analysis.pairs`` has them; none for fewer than two runs or no common questions.
    """
    by_run = {label: section.records(run) for label, run in section.runs.items()}
    if len(by_run) < 2:
        return []
    rows: list[dict[str, Any]] = []
    for measure in _measures(section):
        found = {label: _scores(records, measure.columns) for label, records in by_run.items()}
        first = next(iter(found.values()))
        if ids := [id for id in first if all(id in of for of in found.values())]:
            rows += _pairs(measure, {label: np.array([of[id] for id in ids]) for label, of in found.items()})
    return rows


def _measures(section: Section) -> Iterator[Measure]:
    if section.benchmark == "felm":
        for name in ("f1", "balanced_accuracy"):
            yield Measure(name, COUNTS, _defined(FELM[name]), lambda rows: rows[:, :2].sum(axis=1))
        return
    counted: set[str] = set()
    if section.benchmark == "expertqa":
        counted = {name for counts in RATIOS.values() for name in counts} | set(RATIOS)
        for name, counts in RATIOS.items():
            share = _defined(lambda part, whole: part / whole)
            yield Measure(name, counts, share, lambda rows, share=share: share(*rows.T))  # type: ignore[misc]
    runs = section.runs.values()
    for name in dict.fromkeys(name for run in runs for record in run.records for name in record.scores):
        if name not in counted:
            yield Measure(name, (name,))


def _defined(function: Callable[..., Array]) -> Callable[..., Array]:
    """The function, 0 where it is undefined, such as an F1 without a single error in a resample."""

    def defined(*sums: Array) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.nan_to_num(function(*sums), nan=0.0, posinf=0.0, neginf=0.0)

    return defined


def _scores(records: Mapping[str, Sequence[Record]], columns: Sequence[str]) -> dict[str, list[float]]:
    """Of each question that has all the scores their means over its epochs."""
    found = {}
    for id, of in records.items():
        rows = [[record.scores[name] for name in columns] for record in of if set(columns) <= set(record.scores)]
        if rows and np.isfinite(rows).all():
            found[id] = [float(mean) for mean in np.mean(rows, axis=0)]
    return found


def _pairs(measure: Measure, tables: Mapping[str, Array]) -> list[dict[str, Any]]:
    n = len(next(iter(tables.values())))
    if measure.function is None:
        compared = compare({label: rows[:, 0].tolist() for label, rows in tables.items()}, confidence=CONFIDENCE)
        return [
            _row(measure.figure, pair.first, pair.second, pair.difference, pair.corrected_p)
            | {"wins": pair.wins, "ties": pair.ties, "losses": pair.losses, "n": n}
            for pair in compared.pairs
        ]
    function = measure.function
    totals = {label: float(function(*rows.sum(axis=0))) for label, rows in tables.items()}
    pairs = list(combinations(sorted(totals, key=lambda label: -totals[label]), 2))
    tests = [paired_randomization(tables[a], tables[b], function=function, confidence=CONFIDENCE) for a, b in pairs]
    corrected = adjust([test.p_value for test in tests], "holm")
    rows = []
    for (a, b), test, p in zip(pairs, tests, corrected, strict=True):
        more = np.sign(np.round(measure.won(tables[a]) - measure.won(tables[b]), 9)).tolist()
        counts = {"wins": more.count(1), "ties": more.count(0), "losses": more.count(-1), "n": n}
        rows.append(_row(measure.figure, a, b, test, p) | counts)
    return rows


def _row(figure: str, first: str, second: str, difference: Difference, corrected: float) -> dict[str, Any]:
    found = difference.interval
    return {
        "figure": figure,
        "first": first,
        "second": second,
        "difference": found.mean,
        "low": found.low,
        "high": found.high,
        "p": difference.p_value,
        "corrected_p": corrected,
        "significant": corrected < 1 - CONFIDENCE,
    }
