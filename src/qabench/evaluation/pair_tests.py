"""Paired tests of systems by one score, on the questions for which both have one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from qabench.evaluation.evaluation import Evaluation
from qabench.evaluation.pairs import Pair
from qabench.evaluation.records import clusters_of, reduced, rows_by_question
from qabench.evaluation.score_spec import ScoreSpec
from qabench.stats.differences import FEWEST_DIFFERING
from qabench.stats.intervals import Interval
from qabench.stats.paired import Difference, paired_tests
from qabench.stats.power import detectable
from qabench.stats.units import ROUNDING, Array, Function, mean, table, units
from qabench.stats.units import scores as sums_to_scores


@dataclass(frozen=True, slots=True)
class _SystemResults:
    """The results of a system that paired tests use.

    Attributes:
        means: question -> the mean values of the score's columns over the question's epochs.
        answered: the questions that the system answered.
    """

    means: Mapping[str, list[float]]
    answered: set[str]


def tested_pairs(
    evaluations: Mapping[str, Evaluation],
    label_pairs: Sequence[tuple[str, str]],
    spec: ScoreSpec,
    test: str,
    resamples: int,
    seed: int,
) -> list[Pair]:
    """Test each pair of systems on their common questions.

    Pairs without a common question are left out, and so are pairs with a score that is undefined on
    the common questions. p-values are not corrected yet.

    Args:
        evaluations: label -> evaluation. Pairs are returned in the order of the labels.
        label_pairs: the labels of two systems each, in any order. In a ``Pair``, the better one is
            first.
        spec: the score.
        test: see ``qabench.stats.paired_test``.
        resamples: see ``qabench.stats.paired_test``.
        seed: see ``qabench.stats.paired_test``.
    """
    systems: dict[str, _SystemResults] = {}
    clusters: dict[str, str] = {}
    for label, evaluation in evaluations.items():
        systems[label] = _SystemResults(
            _question_means(evaluation, spec), evaluation.answered_ids()
        )
        clusters |= clusters_of(evaluation.records)
    # Pairs with the same common questions are tested together, so that they share the random draws.
    pairs_by_questions: dict[tuple[str, ...], list[tuple[str, str]]] = {}
    for first, second in label_pairs:
        second_means = systems[second].means
        common = tuple(id for id in systems[first].means if id in second_means)
        if common:
            pairs_by_questions.setdefault(common, []).append((first, second))
    tested: list[Pair] = []
    for ids, pairs in pairs_by_questions.items():
        tested += _tested_on(ids, pairs, systems, clusters, spec, test, resamples, seed)
    places = {label: place for place, label in enumerate(systems)}
    return sorted(tested, key=lambda pair: sorted((places[pair.first], places[pair.second])))


def _question_means(evaluation: Evaluation, spec: ScoreSpec) -> dict[str, list[float]]:
    """Return the mean values of the score's columns by question, without incomplete questions."""
    means = {}
    for id, samples in rows_by_question(spec, evaluation.columns()).items():
        rows = reduced(spec, samples)
        means[id] = rows[0]
        # Most questions have one sample, for which calling NumPy would take much longer than
        # returning its values.
        if len(rows) > 1:
            means[id] = np.mean(rows, axis=0).tolist()
    return means


def _tested_on(
    ids: Sequence[str],
    label_pairs: Sequence[tuple[str, str]],
    systems: Mapping[str, _SystemResults],
    clusters: Mapping[str, str],
    spec: ScoreSpec,
    test: str,
    resamples: int,
    seed: int,
) -> list[Pair]:
    """Test pairs of systems that have the same common questions.

    Args:
        ids: the ids of the common questions.
        label_pairs: the labels of two systems each.
        systems: the results of the systems by label.
        clusters: question -> its cluster. A question without one counts as a cluster.
        spec: the score.
        test: see ``qabench.stats.paired_test``.
        resamples: see ``qabench.stats.paired_test``.
        seed: see ``qabench.stats.paired_test``.
    """
    # With this sign, the better system has the larger number.
    sign = 1 if spec.higher_is_better else -1
    function = spec.resampled or spec.function or mean
    rows: dict[str, Array] = {}
    scores: dict[str, float] = {}
    for label in dict.fromkeys(chain.from_iterable(label_pairs)):
        statistics = _statistics(systems[label].means, ids, function)
        (score,) = sums_to_scores(function, statistics.sum(axis=0, keepdims=True))
        # A score may be undefined on the common questions, although it is not on all.
        if np.isfinite(score):
            rows[label], scores[label] = statistics, score
    better_first = []
    for first, second in label_pairs:
        if first not in rows or second not in rows:
            continue
        # The better system on the common questions need not be the better one on all questions.
        if sign * scores[first] < sign * scores[second]:
            first, second = second, first
        better_first.append((first, second))
    # The units of the test are the questions, unless they are in clusters.
    tested_rows = rows
    items: dict[str, Array] | None = None
    cluster_ids = [clusters.get(id, id) for id in ids]
    if len(set(cluster_ids)) < len(ids):
        # Whole clusters are swapped. The questions still count equally in the score.
        tested_rows = {}
        for label, statistics in rows.items():
            tested_rows[label] = units(statistics, cluster_ids)
        if function is mean:
            # The bounds of 0/1 scores depend on the single questions.
            items = {label: statistics[:, 0] for label, statistics in rows.items()}
    differences = paired_tests(
        tested_rows, better_first, function, test, resamples, seed, items=items
    )
    pairs = []
    for (first, second), difference in zip(better_first, differences, strict=True):
        # A contribution to a mean is 1/n of a question's difference. ROUNDING is meant for the
        # difference itself, so the contributions are multiplied by n.
        gains = sign * len(ids) * contributions(rows[first], rows[second], function)
        least_difference = detectable_difference(
            tested_rows[first], tested_rows[second], function, difference.interval
        )
        pairs.append(
            _pair(
                (first, second),
                (systems[first], systems[second]),
                ids,
                difference,
                (scores[first], scores[second]),
                gains,
                least_difference,
            )
        )
    return pairs


def _pair(
    labels: tuple[str, str],
    systems: tuple[_SystemResults, _SystemResults],
    ids: Sequence[str],
    difference: Difference,
    scores: tuple[float, float],
    gains: Array,
    least_difference: float | None,
) -> Pair:
    """Return a tested pair with its counts of questions.

    Args:
        labels: the labels of the two systems, the better one first.
        systems: their results.
        ids: the common questions.
        difference: the tested difference.
        scores: the scores of the systems on the common questions.
        gains: by how much the first system is better on each common question.
        least_difference: the smallest detectable difference.
    """
    first, second = systems
    n = len(ids)
    wins = int((gains > ROUNDING).sum())
    losses = int((gains < -ROUNDING).sum())
    by_first = first.answered.intersection(ids)
    by_second = second.answered.intersection(ids)
    return Pair(
        *labels,
        difference,
        corrected_p=difference.p_value,
        wins=wins,
        ties=n - wins - losses,
        losses=losses,
        n=n,
        scores=scores,
        answered=len(by_first & by_second),
        only_first=len(first.means) - n,
        only_second=len(second.means) - n,
        unanswered=(len(by_second - by_first), len(by_first - by_second)),
        detectable=least_difference,
    )


def _statistics(means: Mapping[str, list[float]], ids: Sequence[str], function: Function) -> Array:
    """Return the statistics that a score's function sums: an array (questions, columns)."""
    columns = [means[id] for id in ids]
    if function is mean:
        # In Fortran order, NumPy adds a column pairwise, which is more exact.
        return np.asfortranarray(table([values[0] for values in columns]))
    return np.array(columns)


def contributions(first: Array, second: Array, function: Function) -> Array:
    """Return what each unit contributes to the difference of two systems, or 0 if undefined.

    A contribution is the mean of two changes: by how much the first system's score falls if it gets
    the second system's result on the unit, and by how much the second system's score rises if it
    gets the first system's. For a mean, it is the unit's difference divided by the number of units.
    """
    change = first - second
    first_total, second_total = first.sum(axis=0), second.sum(axis=0)
    first_score = sums_to_scores(function, first_total[None])
    second_score = sums_to_scores(function, second_total[None])
    losses = first_score - sums_to_scores(function, first_total - change)
    gains = sums_to_scores(function, second_total + change) - second_score
    return np.asarray(np.nan_to_num((losses + gains) / 2, nan=0, posinf=0, neginf=0))


def detectable_difference(
    first: Array, second: Array, function: Function, difference: Interval
) -> float | None:
    """Return the smallest difference that a test of this size would find with a power of 80%.

    ``qabench.stats.power.detectable`` computes it. None if too few units differ to estimate the
    variance, or if all differ by the same amount.

    Args:
        first: the statistics of the first system, one row per unit.
        second: the statistics of the second system, aligned.
        function: maps the sums of the statistics to a score.
        difference: the difference of the two systems.
    """
    if np.count_nonzero((first != second).any(axis=1)) < FEWEST_DIFFERING:
        return None
    # Without a variance, any difference at all would seem detectable.
    if difference.undefined or difference.standard_error <= ROUNDING:
        return None
    is_binary = function is mean and bool(np.isin([first, second], (0, 1)).all())
    return detectable(difference.standard_error, len(first), is_binary=is_binary)
