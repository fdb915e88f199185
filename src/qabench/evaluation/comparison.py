"""Comparison of evaluations: paired tests of every pair by one metric, with a correction over the pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from qabench.errors import InputError
from qabench.evaluation.evaluation import Evaluation
from qabench.evaluation.metric import Metric
from qabench.evaluation.record import FAILED, MISSING
from qabench.evaluation.scores import Score, columns_of, scores_of
from qabench.io.tables import Displayed, Table
from qabench.stats import RESAMPLES, Difference, adjust
from qabench.stats.comparison import Pair, check_test, record
from qabench.stats.paired import paired_tests
from qabench.stats.resampling import Array
from qabench.stats.resampling import scores as scores_of_sums

TEST = "randomization"
CORRECTION = "holm"
CONFIDENCE = 0.95
SEED = 0


@dataclass(frozen=True, slots=True, repr=False)
class Comparison(Displayed):
    """Systems on the same questions.

    Attributes:
        metric: the metric by which they are compared.
        systems: label -> score on all of the system's answers, the best first; only systems that have the metric.
        pairs: all pairs with common questions on which both have a score, in the order of ``systems``.
        test: "randomization" or "bootstrap".
        correction: of p-values over the pairs.
        resamples: of intervals and tests.
        seed: of intervals and tests.
    """

    metric: Metric
    systems: Mapping[str, Score]
    pairs: tuple[Pair, ...]
    test: str = TEST
    correction: str = CORRECTION
    resamples: int = RESAMPLES
    seed: int = SEED

    def tables(self) -> list[Table]:
        """The scores of the systems, and the pairs, as ``print`` and notebooks show them."""
        from qabench.evaluation.display import comparison_tables

        return comparison_tables(self)

    def plot(self, axes: Any = None) -> Any:
        """Plots the paired differences with their 95% intervals. Needs matplotlib.

        Args:
            axes: matplotlib axes to draw on; None for a new figure.

        Returns:
            The axes.

        Raises:
            MissingExtra: matplotlib is not installed.
        """
        from qabench.evaluation.plot import plot_comparison

        return plot_comparison(self, axes)

    def about(self) -> str:
        """How the pairs were tested, in one sentence."""
        words = {"holm": "Holm", "bh": "Benjamini and Hochberg"}
        corrected = f", corrected over all pairs ({words[self.correction]})" if self.correction in words else ""
        return (
            f"p: paired {self.test} test, two-sided, {self.resamples:,} resamples, seed {self.seed}{corrected}; "
            "intervals: 95% bootstrap over questions, not corrected"
        )

    def as_dict(self) -> dict[str, Any]:
        """The comparison as JSON data."""
        return {
            "metric": self.metric.name,
            "test": self.test,
            "correction": self.correction,
            "resamples": self.resamples,
            "seed": self.seed,
            "systems": [
                {"system": label, **asdict(one.interval), "n": one.n, "left_out": one.left_out}
                for label, one in self.systems.items()
            ],
            "pairs": [pair.as_dict() for pair in self.pairs],
        }


def compare(
    evaluations: Mapping[str, Evaluation],
    metric: Metric,
    *,
    test: str = TEST,
    correction: str = CORRECTION,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Comparison:
    """Compares systems by a metric; every pair on the questions for which both have scores.

    The epochs of a question count as one question, with the mean of its statistics. A metric that is a function of
    sums (F1, shares of claims) is computed from the sums over the questions. Resamples in which the difference is
    undefined are left out; ``Interval.undefined`` is their share.

    Args:
        evaluations: by label, all on the same config; see ``without_superseded`` for resumed runs.
        metric: a metric of the benchmark.
        test: "randomization" or "bootstrap"; see ``qabench.stats``.
        correction: "holm", "bh" or "none"; see ``qabench.stats.adjust``.
        resamples: of intervals and tests.
        seed: of intervals and tests.

    Raises:
        InputError: an unknown test or correction, or evaluations of several benchmarks or configs.
    """
    check_test(test)
    adjust([], correction)
    if len(configs := {(one.benchmark, one.config) for one in evaluations.values()}) > 1:
        named = ", ".join(sorted(" ".join(config) for config in configs))
        raise InputError(f"systems must be compared on one config; these are on {named}")
    scored = {label: found[metric.name] for label, one in evaluations.items() if (found := _scored(one, metric))}
    sign = 1 if metric.higher_is_better else -1
    systems = dict(sorted(scored.items(), key=lambda item: -sign * item[1].interval.mean))
    tables = {label: _questions(evaluations[label], metric) for label in systems}
    pairs = _pairs(tables, metric, test, resamples, seed)
    corrected = adjust([difference.p_value for *_, difference, _, _ in pairs], correction)
    made = []
    for (first, second, difference, counts, n), p in zip(pairs, corrected, strict=True):
        if sign * difference.interval.mean < 0:
            first, second, difference, counts = second, first, _reversed(difference), counts[::-1]
        made.append(Pair(first, second, difference, p, *counts, n))
    return Comparison(metric, systems, tuple(made), test, correction, resamples, seed)


def without_superseded(evaluations: Sequence[Evaluation]) -> tuple[list[Evaluation], list[Evaluation]]:
    """Evaluations without runs that were resumed by others of them, and these superseded runs.

    Of the runs with the same ``Evaluation.origin``, the one with the most answers counts, the latest if there are
    several.
    """
    best: dict[str, Evaluation] = {}
    for one in evaluations:
        known = best.get(one.origin)
        if one.origin and (known is None or _progress(one) >= _progress(known)):
            best[one.origin] = one
    kept = [one for one in evaluations if not one.origin or best[one.origin] is one]
    return kept, [one for one in evaluations if one.origin and best[one.origin] is not one]


def _progress(evaluation: Evaluation) -> tuple[int, str]:
    return sum(record.status not in (FAILED, MISSING) for record in evaluation.records), evaluation.created


def _scored(evaluation: Evaluation, metric: Metric) -> dict[str, Score]:
    return scores_of([metric], evaluation.records) if evaluation.answered else {}


def _questions(evaluation: Evaluation, metric: Metric) -> dict[str, list[float]]:
    """The values of the metric's columns by question, means over its epochs; without questions that lack one."""
    found = {}
    for id, records in evaluation.by_id().items():
        rows = [row for record in records if (row := columns_of(metric, record)) is not None]
        if rows:
            found[id] = rows[0] if len(rows) == 1 else [float(value) for value in np.mean(rows, axis=0)]
    return found


_Tested = tuple[str, str, Difference, tuple[int, int, int], int]


def _pairs(
    tables: Mapping[str, Mapping[str, list[float]]], metric: Metric, test: str, resamples: int, seed: int
) -> list[_Tested]:
    """Each pair with its test, in order. Pairs with the same common questions share their draws."""
    labels = list(tables)
    together: dict[tuple[str, ...], list[tuple[str, str]]] = {}
    for first, second in combinations(labels, 2):
        if common := tuple(id for id in tables[first] if id in tables[second]):
            together.setdefault(common, []).append((first, second))
    found: list[_Tested] = []
    for ids, pairs in together.items():
        function = metric.resampled or metric.function or partial(_mean, len(ids))
        rows = {label: np.array([tables[label][id] for id in ids]) for pair in pairs for label in pair}
        totals = {label: of.sum(axis=0, keepdims=True) for label, of in rows.items()}
        rows = {label: of for label, of in rows.items() if np.isfinite(scores_of_sums(function, totals[label]))}
        used = list(rows)
        pairs = [pair for pair in pairs if rows.keys() >= set(pair)]
        items = {label: _items(metric, of) for label, of in rows.items()}
        places = [(used.index(first), used.index(second)) for first, second in pairs]
        tests = paired_tests(list(rows.values()), places, function, test, CONFIDENCE, resamples, seed)
        for (first, second), difference in zip(pairs, tests, strict=True):
            found.append((first, second, difference, record(_gain(metric, items, first, second)), len(ids)))
    return sorted(found, key=lambda one: (labels.index(one[0]), labels.index(one[1])))


def _mean(n: int, total: Array) -> Array:
    return total / n


def _items(metric: Metric, rows: Array) -> Array:
    """The score of each question, NaN where it is undefined."""
    if metric.item is None:
        return rows[:, 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(metric.item(*rows.T), dtype=np.float64)


def _gain(metric: Metric, items: Mapping[str, Array], first: str, second: str) -> Array:
    # A question without a score, such as an answer without claims, is a tie.
    gain = np.nan_to_num(items[first] - items[second], nan=0.0, posinf=0.0, neginf=0.0)
    return gain if metric.higher_is_better else -gain


def _reversed(difference: Difference) -> Difference:
    interval = difference.interval
    turned = replace(interval, mean=-interval.mean, low=-interval.high, high=-interval.low)
    return Difference(turned, difference.p_value)
