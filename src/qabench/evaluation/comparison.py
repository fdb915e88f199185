"""Comparison of evaluations: paired tests of every pair by one score, with a correction over the pairs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations
from statistics import NormalDist
from typing import Any

import numpy as np

from qabench.data.rows import grouped
from qabench.errors import InputError, unknown_name
from qabench.evaluation.evaluation import Evaluation
from qabench.evaluation.records import Score, reduced, rows_by_question, scores_of
from qabench.evaluation.score_spec import ScoreSpec
from qabench.io.tables import Displayed, Table
from qabench.stats import (
    FEWEST_DIFFERING,
    RESAMPLES,
    ROUNDING,
    SIGNIFICANCE,
    TESTS,
    Array,
    Difference,
    Function,
    Interval,
    adjust,
    mean,
    paired_tests,
    table,
)
from qabench.stats import scores as sums_to_scores

TEST = TESTS[0]
CORRECTION = "holm"
SEED = 0
POWER = 0.8  # of the smallest detectable difference
# fields of a pair
COUNTS = ("wins", "ties", "losses", "n", "answered", "only_first", "only_second", "detectable")
PAIR_COLUMNS = ["pair", "at 5%", "difference", "95% interval", "n", "p", "corrected p", "detectable"]
PAIR_COLUMNS += COUNTS[:3]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two systems on the questions that both have scores for.

    Attributes:
        first: the label of the system that is better on these questions.
        second: the label of the other system.
        difference: first minus second, with its interval and p-value.
        corrected_p: the p-value corrected for the number of pairs.
        wins: the number of questions on which the first is better: with the second's answer to
            the question alone, the first's score would be lower (or for an error rate higher).
        ties: the number of questions whose answers make no difference to the score.
        losses: the number of questions on which the second is better.
        n: the number of questions.
        scores: the scores of the first and the second system on these questions.
        answered: the number of these questions that both systems answered.
        only_first: the number of further questions for which only the first system has a score.
        only_second: the number of further questions for which only the second system has a score.
        unanswered: the number of these questions that the first system did not answer and the
            second did, and the other way around.
        detectable: the smallest difference that these questions would show with a power of 80 %,
            or None if too few of them differ, or all by the same. See ``detectable_difference``.
    """

    first: str
    second: str
    difference: Difference
    corrected_p: float
    wins: int
    ties: int
    losses: int
    n: int
    scores: tuple[float, float]
    answered: int
    only_first: int = 0
    only_second: int = 0
    unanswered: tuple[int, int] = (0, 0)
    detectable: float | None = None

    @property
    def significant(self) -> bool:
        """Return whether the first is better than the second: the corrected p-value is below 5%.

        Systems that answered no common question are not comparable, whatever p is.
        """
        return self.answered > 0 and self.corrected_p < SIGNIFICANCE

    @property
    def is_equal(self) -> bool:
        """Return whether no question makes a difference."""
        return not (self.wins or self.losses) and abs(self.difference.interval.mean) <= ROUNDING

    @property
    def verdict(self) -> str:
        """Return what the test says, and how many questions only one of the systems answered."""
        if not self.answered:
            return "no question was answered by both"
        if self.significant:
            verdict = f"{self.first} is better"
        else:
            verdict = "no difference" if self.is_equal else "no significant difference"
        missing = self.missing()
        return f"{verdict} ({missing})" if missing else verdict

    def missing(self) -> str:
        """Return how many questions only one of the systems answered, in words, or ""."""
        parts = [
            f"{label} has no answer to {count:,}"
            for label, count in zip((self.first, self.second), self.unanswered, strict=True)
            if count
        ]
        return ", ".join(parts)

    def about_questions(self) -> str:
        """Return on which questions the systems are compared if one of them has others, or ""."""
        if not (self.only_first or self.only_second):
            return ""
        first, second = self.scores
        return (
            f"{self.first} and {self.second} are compared on the {self.n:,} questions for which both have a score, "
            f"where they have {first:.4f} and {second:.4f}; the scores above are over "
            f"{self.n + self.only_first:,} questions of {self.first} and {self.n + self.only_second:,} of {self.second}"
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the pair as JSON data."""
        interval = self.difference.interval
        return {
            "first": self.first,
            "second": self.second,
            "difference": interval.mean,
            "standard_error": interval.standard_error,
            "low": interval.low,
            "high": interval.high,
            "undefined": interval.undefined,
            "p": self.difference.p_value,
            "corrected_p": self.corrected_p,
            "significant": self.significant,
            "verdict": self.verdict,
            "first_score": self.scores[0],
            "second_score": self.scores[1],
            "unanswered_first": self.unanswered[0],
            "unanswered_second": self.unanswered[1],
            **{name: getattr(self, name) for name in COUNTS},
        }

    def cells(self) -> list[Any]:
        """Return the row of a table of pairs."""
        interval = self.difference.interval
        return [
            f"{self.first} - {self.second}",
            self.verdict,
            f"{interval.mean:+.4f}",
            interval.bounds("+.4f"),
            self.n,
            f"{self.difference.p_value:.4f}",
            f"{self.corrected_p:.4f}",
            "not enough data" if self.detectable is None else f"{self.detectable:.4f}",
            self.wins,
            self.ties,
            self.losses,
        ]


@dataclass(frozen=True, slots=True, repr=False)
class Comparison(Displayed):
    """Systems on the same questions.

    Attributes:
        spec: the score by which they are compared.
        systems: label -> score on all of the system's answers, the best first. Only systems that
            have the score.
        pairs: all pairs with common questions on which both have a score, in the order of
            ``systems``.
        test: "randomization" or "bootstrap".
        correction: of p-values over the pairs.
        resamples: of intervals and tests.
        seed: of intervals and tests.
        evaluations: label -> what was compared, also systems without the score.
        notes: sentences about systems that are left out.
        others: the comparisons by further scores, if several were selected, and of groups.
        group: the grouping and the group of the questions, or None for all questions.
    """

    spec: ScoreSpec
    systems: Mapping[str, Score]
    pairs: tuple[Pair, ...]
    test: str = TEST
    correction: str = CORRECTION
    resamples: int = RESAMPLES
    seed: int = SEED
    evaluations: Mapping[str, Evaluation] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    others: tuple[Comparison, ...] = ()
    group: tuple[str, str] | None = None

    def to_pandas(self) -> Any:
        """Return the pairs as a pandas DataFrame, with unrounded numbers."""
        import pandas as pd

        return pd.DataFrame([pair.as_dict() for pair in self.pairs])

    def tables(self) -> list[Table]:
        """Return the scores of the systems, and the pairs, as ``print`` and notebooks show them."""
        columns = ["system", self.spec.name, "95% interval", "standard error", "n"]
        title = f"{self.spec.title}, {' '.join(self.group)}" if self.group else self.spec.title
        scores = Table(title, columns, [])
        for label, score in self.systems.items():
            interval = score.interval
            error = f"{interval.standard_error:.4f}"
            scores.rows.append([label, f"{score.value:.4f}", interval.bounds(), error, score.size])
        notes = [note for pair in self.pairs if (note := pair.about_questions())]
        rows = [pair.cells() for pair in self.pairs]
        pairs = Table("Pairs", PAIR_COLUMNS, rows, [*notes, self.about()])
        return [scores, pairs, *(table for other in self.others for table in other.tables())]

    def about(self) -> str:
        """Return how the pairs were tested, in one sentence."""
        return (
            f"p: paired {self.test} test, two-sided, {self.resamples:,} resamples, "
            f"seed {self.seed}, corrected over all pairs{' of all groups' if self.group else ''} ({self.correction}); "
            "intervals: 95%, not corrected; "
            "detectable: the smallest difference that these questions would show with a power of 80%"
        )

    @property
    def same_questions(self) -> bool:
        """Return whether all systems have a score for the same questions, so that their scores can be ranked."""
        number = len(self.systems)
        complete = len(self.pairs) == number * (number - 1) // 2
        return complete and not any(pair.only_first or pair.only_second for pair in self.pairs)

    def as_dict(self) -> dict[str, Any]:
        """Return the comparison as JSON data."""
        systems = [
            {"system": label, **asdict(score.interval), "n": score.n, "left_out": score.left_out}
            for label, score in self.systems.items()
        ]
        group = dict(zip(("grouping", "group"), self.group, strict=True)) if self.group else {}
        return {
            "metric": self.spec.name,
            **group,
            "test": self.test,
            "correction": self.correction,
            "resamples": self.resamples,
            "seed": self.seed,
            "systems": systems,
            "pairs": [pair.as_dict() for pair in self.pairs],
        }


def compare(
    evaluations: Mapping[str, Evaluation],
    spec: ScoreSpec,
    *,
    test: str = TEST,
    correction: str = CORRECTION,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Comparison:
    """Compare systems by a score.

    Every pair on the questions for which both have scores.

    The epochs of a question count as one question, with the mean of its statistics. A score that
    is a function of sums (F1, shares of claims) is computed from the sums over the questions.
    Swaps and resamples in which the difference is undefined are left out.

    Args:
        evaluations: by label, all on the same config. See ``without_superseded`` for resumed runs.
        spec: a score of the benchmark.
        test: "randomization" or "bootstrap". See ``qabench.stats``.
        correction: "holm", "bh" or "none". See ``qabench.stats.adjust``.
        resamples: of intervals and tests.
        seed: of intervals and tests.

    Raises:
        InputError: an unknown test or correction, or evaluations of several benchmarks or configs.
    """
    if test not in TESTS:
        raise unknown_name("unknown test", test, TESTS)
    adjust([], correction)  # checks the name before the work
    configs = {each.questions for each in evaluations.values()}
    if len(configs) > 1:
        raise InputError(
            f"systems must be compared on one config; these are on {', '.join(sorted(configs))}"
        )
    scores: dict[str, Score] = {}
    for label, evaluation in evaluations.items():
        computed = evaluation.scores()
        is_answered = evaluation.answered and spec.group not in evaluation.unanswered_groups()
        if spec.name not in computed and is_answered and not spec.reducer:
            computed = scores_of([spec], evaluation.records)
        if spec.name in computed:
            scores[label] = computed[spec.name]
    sign = 1 if spec.higher_is_better else -1
    systems = dict(sorted(scores.items(), key=lambda item: -sign * item[1].value))
    tables = {label: _questions(evaluations[label], spec) for label in systems}
    answered = {label: evaluations[label].answered_ids() for label in systems}
    tested = _tested_pairs(tables, answered, spec, test, resamples, seed)
    corrected = adjust([pair.difference.p_value for pair in tested], correction)
    pairs = tuple(replace(pair, corrected_p=p) for pair, p in zip(tested, corrected, strict=True))
    return Comparison(spec, systems, pairs, test, correction, resamples, seed, dict(evaluations))


def compare_groups(
    evaluations: Mapping[str, Evaluation],
    spec: ScoreSpec,
    grouping: str,
    *,
    correction: str = CORRECTION,
    **testing: Any,
) -> list[Comparison]:
    """Compare systems on each group of a grouping, the largest first, without groups that have no pair.

    See ``compare``. p-values are corrected over the pairs of all groups.
    """
    sizes: dict[str, int] = {}
    for evaluation in evaluations.values():
        for name, records in evaluation.by_group(grouping).items():
            sizes[name] = max(sizes.get(name, 0), len(records))
    comparisons = []
    for name in sorted(sizes, key=lambda name: (-sizes[name], name)):
        in_group = {
            label: replace(evaluation, records=evaluation.by_group(grouping).get(name, []))
            for label, evaluation in evaluations.items()
        }
        comparison = compare(in_group, spec, correction=correction, **testing)
        if comparison.pairs:
            comparisons.append(replace(comparison, group=(grouping, name)))
    p_values = [pair.difference.p_value for each in comparisons for pair in each.pairs]
    corrected = iter(adjust(p_values, correction))
    return [
        replace(each, pairs=tuple(replace(pair, corrected_p=next(corrected)) for pair in each.pairs))
        for each in comparisons
    ]


def _questions(evaluation: Evaluation, spec: ScoreSpec) -> dict[str, list[float]]:
    """Return the values of the score's columns by question, means over its epochs.

    Questions that lack one are out.
    """
    means = {}
    for id, samples in rows_by_question(spec, evaluation.records).items():
        rows = reduced(spec, samples)
        means[id] = rows[0] if len(rows) == 1 else np.mean(rows, axis=0).tolist()
    return means


def _tested_pairs(
    tables: Mapping[str, Mapping[str, list[float]]],
    answered: Mapping[str, set[str]],
    spec: ScoreSpec,
    test: str,
    resamples: int,
    seed: int,
) -> list[Pair]:
    """Test each pair of systems, in order, the better one first.

    Pairs with the same common questions share draws.
    """
    sign = 1 if spec.higher_is_better else -1
    labels = list(tables)
    pairs_by_questions = grouped(
        (tuple(id for id in tables[first] if id in tables[second]), (first, second))
        for first, second in combinations(labels, 2)
    )
    pairs_by_questions.pop((), None)
    tested: list[Pair] = []
    for ids, pairs in pairs_by_questions.items():
        n = len(ids)
        function = spec.resampled or spec.function or mean
        rows: dict[str, Array] = {}
        gains: dict[str, float] = {}
        for label in dict.fromkeys(label for pair in pairs for label in pair):
            columns = [tables[label][id] for id in ids]
            statistics = np.array(columns)
            if function is mean:
                # in Fortran order NumPy adds a column pairwise, which is more exact
                statistics = np.asfortranarray(table([values[0] for values in columns]))
            (score,) = sums_to_scores(function, statistics.sum(axis=0, keepdims=True))
            if np.isfinite(score):
                rows[label], gains[label] = statistics, sign * score
        ordered = [
            (first, second) if gains[first] >= gains[second] else (second, first)
            for first, second in pairs
            if first in rows and second in rows
        ]
        differences = paired_tests(rows, ordered, function, test, resamples, seed)
        for (first, second), difference in zip(ordered, differences, strict=True):
            own_gains = sign * n * contributions(rows[first], rows[second], function)
            wins = int((own_gains > ROUNDING).sum())
            losses = int((own_gains < -ROUNDING).sum())
            by_first, by_second = (answered[label].intersection(ids) for label in (first, second))
            tested.append(
                Pair(
                    first,
                    second,
                    difference,
                    corrected_p=difference.p_value,
                    wins=wins,
                    ties=n - wins - losses,
                    losses=losses,
                    n=n,
                    scores=(sign * gains[first], sign * gains[second]),
                    answered=len(by_first & by_second),
                    only_first=len(tables[first]) - n,
                    only_second=len(tables[second]) - n,
                    unanswered=(len(by_second - by_first), len(by_first - by_second)),
                    detectable=detectable_difference(
                        rows[first], rows[second], function, difference.interval
                    ),
                )
            )
    return sorted(tested, key=lambda pair: sorted(map(labels.index, (pair.first, pair.second))))


def contributions(first: Array, second: Array, function: Function) -> Array:
    """Return how much of the difference of two systems each unit makes, 0 where that is undefined.

    It is the mean of two changes: of the first system's score if it had the second's result of the
    unit, and of the second's if it had the first's. For a mean, these are the differences of the
    units divided by their number.
    """
    change = first - second
    totals = first.sum(axis=0), second.sum(axis=0)
    losses = sums_to_scores(function, totals[0][None]) - sums_to_scores(function, totals[0] - change)
    gains = sums_to_scores(function, totals[1] + change) - sums_to_scores(function, totals[1][None])
    return np.asarray(np.nan_to_num((losses + gains) / 2, nan=0, posinf=0, neginf=0))


def detectable_difference(
    first: Array, second: Array, function: Function, difference: Interval
) -> float | None:
    """Return the smallest difference that a two-sided test of this size would find with the power ``POWER``.

    It is the sum of two normal quantiles (2.80 for 5 % and a power of 80 %) times the standard
    error of the paired difference. For 0/1 scores, one question is added, because their test has
    steps of one question. None if so few units differ that the variance says little, or if all
    differ by the same.

    Args:
        first: the statistics of the first system, one row per unit.
        second: the statistics of the second system, aligned.
        function: of the sums of the statistics.
        difference: of the two systems.
    """
    if np.count_nonzero((first != second).any(axis=1)) < FEWEST_DIFFERING:
        return None
    if difference.undefined or difference.standard_error <= ROUNDING:
        return None
    normal = NormalDist()
    quantiles = normal.inv_cdf(1 - SIGNIFICANCE / 2) + normal.inv_cdf(POWER)
    is_binary = function is mean and np.isin([first, second], (0, 1)).all()
    return quantiles * difference.standard_error + (1 / len(first) if is_binary else 0)
