"""Corrected means and differences: the formulas, and the coverage of their intervals by simulation.

The judges of the simulations find 60 to 95 % of the right answers and reject 60 to 95 % of the wrong
ones, so that their rates are too high in some and too low in others.
"""

from collections.abc import Iterator
from itertools import product

import numpy as np
import numpy.typing as npt
import pytest

from qabench.errors import InputError
from qabench.stats.prediction_powered import (
    Corrected,
    corrected_difference,
    corrected_mean,
    expected_width,
    wilson_interval,
)

Array = npt.NDArray[np.float64]
LEAST = 0.93
JUDGES = ((0.6, 0.95), (0.95, 0.6), (0.8, 0.8), (0.95, 0.95))
RATES = (0.03, 0.1, 0.5, 0.9)
QUESTIONS = {50: 310, 100: 310, 300: 847}


def judged(labels: Array, sensitivity: float, specificity: float, rng: np.random.Generator) -> Array:
    draws = rng.random(len(labels))
    return np.where(labels == 1, draws < sensitivity, draws >= specificity).astype(np.float64)


def part(labels: Array, count: int) -> Array:
    return np.where(np.arange(len(labels)) < count, labels, np.nan)


def is_inside(corrected: Corrected, truth: float) -> bool:
    low, high = corrected.interval.low, corrected.interval.high
    assert low is not None
    assert high is not None
    return low <= truth <= high


def independent(count: int, rate: float, draws: int, seed: int) -> Iterator[tuple[tuple[float, float], Corrected]]:
    rng = np.random.default_rng(seed)
    for judge in JUDGES:
        for _ in range(draws):
            labels = (rng.random(QUESTIONS[count]) < rate).astype(np.float64)
            yield judge, corrected_mean(judged(labels, *judge, rng), part(labels, count))


@pytest.mark.parametrize("count", QUESTIONS)
@pytest.mark.parametrize("rate", RATES)
def test_intervals_of_means_cover(count: int, rate: float) -> None:
    hits = [is_inside(corrected, rate) for _, corrected in independent(count, rate, 400, 1)]
    assert np.mean(hits) >= LEAST


def test_few_labels_of_many_items_cover() -> None:
    """A good judge of thousands of items often makes no mistake, or one, on 50 of them."""
    rng, hits = np.random.default_rng(12), []
    for rate, judge in product((0.1, 0.9), ((0.95, 0.95), (0.7, 0.99), (0.99, 0.7))):
        for _ in range(500):
            labels = (rng.random(3000) < rate).astype(np.float64)
            hits.append(is_inside(corrected_mean(judged(labels, *judge, rng), part(labels, 50)), rate))
    assert np.mean(hits) >= LEAST


@pytest.mark.parametrize("count", QUESTIONS)
def test_intervals_are_as_narrow_as_the_normal_one(count: int) -> None:
    """The interval of the PPI++ paper, which is narrowest and covers about 94 % in the middle."""
    rng, ours, normal = np.random.default_rng(13), [], []
    for judge in JUDGES:
        for _ in range(200):
            labels = (rng.random(QUESTIONS[count]) < 0.5).astype(np.float64)
            verdicts = judged(labels, *judge, rng)
            corrected = corrected_mean(verdicts, part(labels, count))
            assert corrected.weight is not None
            # Its two parts: the verdicts on the other items, and the labeled items.
            weight = corrected.weight * (1 - count / len(labels))
            rest, residuals = verdicts[count:], labels[:count] - weight * verdicts[:count]
            variance = weight**2 * rest.var(ddof=1) / len(rest) + residuals.var(ddof=1) / count
            normal.append(2 * 1.96 * np.sqrt(variance))
            ours.append(corrected.interval.high - corrected.interval.low)  # type: ignore[operator]
    assert np.mean(ours) <= 1.01 * np.mean(normal)


@pytest.mark.slow
@pytest.mark.parametrize("count", QUESTIONS)
@pytest.mark.parametrize("rate", (*RATES, 0.04, 0.05, 0.95))
def test_intervals_of_means_cover_for_each_judge(count: int, rate: float) -> None:
    """No judge is significantly below the bound. 2,000 draws have a standard error of half a point."""
    hits: dict[tuple[float, float], list[bool]] = {}
    for judge, corrected in independent(count, rate, 2000, 2):
        hits.setdefault(judge, []).append(is_inside(corrected, rate))
    coverages = {judge: float(np.mean(each)) for judge, each in hits.items()}
    error = np.sqrt(LEAST * (1 - LEAST) / 2000)
    assert {judge: coverage for judge, coverage in coverages.items() if coverage < LEAST - 2 * error} == {}


@pytest.mark.parametrize("count", QUESTIONS)
def test_intervals_of_clustered_items_cover(count: int) -> None:
    rng, hits = np.random.default_rng(3), []
    for rate, judge in product(RATES, JUDGES):
        for _ in range(60):
            sizes = rng.integers(1, 9, QUESTIONS[count])
            questions = np.repeat(np.arange(len(sizes)), sizes)
            rates = rng.beta(2 * rate, 2 * (1 - rate), len(sizes))  # items of one question resemble each other
            labels = (rng.random(len(questions)) < rates[questions]).astype(np.float64)
            known = np.where(questions < count, labels, np.nan)
            corrected = corrected_mean(judged(labels, *judge, rng), known, clusters=questions.tolist())
            hits.append(is_inside(corrected, rate))
    assert np.mean(hits) >= LEAST


def test_without_clusters_intervals_would_be_too_narrow() -> None:
    rng = np.random.default_rng(4)
    questions = np.repeat(np.arange(100), 8)
    labels = np.repeat((rng.random(100) < 0.5).astype(np.float64), 8)
    verdicts = judged(labels, 0.8, 0.8, rng)
    known = part(labels, 400)
    alone = corrected_mean(verdicts, known)
    clustered = corrected_mean(verdicts, known, clusters=questions.tolist())
    assert clustered.interval.mean == alone.interval.mean
    assert clustered.interval.standard_error > 1.5 * alone.interval.standard_error


@pytest.mark.parametrize("count", QUESTIONS)
@pytest.mark.parametrize("rates", [(0.5, 0.4, 0.5), (0.95, 0.9, 0.5), (0.9, 0.9, 0.9), (0.1, 0.03, 0.3)])
def test_intervals_of_differences_cover(count: int, rates: tuple[float, float, float]) -> None:
    """The third number is the share of the questions that are equally hard for both systems."""
    first_rate, second_rate, shared = rates
    rng, hits = np.random.default_rng(5), []
    for judge in JUDGES[:3]:
        for _ in range(200):
            n = QUESTIONS[count]
            hard = rng.random(n)
            first = (hard < first_rate).astype(np.float64)
            other = np.where(rng.random(n) < shared, hard, rng.random(n))
            second = (other < second_rate).astype(np.float64)
            corrected = corrected_difference(
                judged(first, *judge, rng),
                part(first, count),
                judged(second, *judge, rng),
                part(second, count),
            )
            hits.append(is_inside(corrected, first_rate - second_rate))
    assert np.mean(hits) >= LEAST


def test_intervals_are_narrower_than_those_of_labels_alone() -> None:
    rng = np.random.default_rng(6)
    labels = (rng.random(847) < 0.5).astype(np.float64)
    good = corrected_mean(judged(labels, 0.95, 0.95, rng), part(labels, 100))
    useless = corrected_mean(rng.integers(0, 2, 847).astype(float).tolist(), part(labels, 100))
    alone = wilson_interval(0.5, 100)
    widths = [each.interval.high - each.interval.low for each in (good, useless)]  # type: ignore[operator]
    assert widths[0] < 0.75 * (alone[1] - alone[0]) and good.effective and good.effective > 150
    # The judge's weight is near 0, and the interval at most that of Student's t.
    assert useless.weight is not None and useless.weight < 0.2
    assert widths[1] < 1.05 * (alone[1] - alone[0])


def test_the_estimate_is_that_of_ppi_python() -> None:
    """ppi-python 0.2.3: ppi_mean_pointestimate of these numbers."""
    labels = [1, 0, 1, 0, 1, 1, 0, 1]
    verdicts = [1, 1, 1, 0, 1, 0, 0, 1, *(1, 0, 1, 1, 1, 0, 1, 1, 0, 1, 1, 1)]
    corrected = corrected_mean(verdicts, [*labels, *[None] * 12])
    assert corrected.interval.mean == pytest.approx(0.66210938, abs=1e-8)
    assert (corrected.labeled, corrected.n, corrected.labels) == (8, 20, 0.625)


def test_labels_of_all_items_are_the_result() -> None:
    labels = [1.0, 0, 1, 1, 0, 1, 1, 1]
    corrected = corrected_mean([0] * 4 + [1] * 4, labels)
    assert corrected.interval.mean == pytest.approx(0.75)
    assert corrected.verdicts == 0.5


def test_equal_labels_have_the_interval_of_their_number() -> None:
    corrected = corrected_mean([1.0] * 40 + [0.0] * 60, [0.0] * 20 + [np.nan] * 80)
    assert corrected.interval.mean == 0 and corrected.interval.low == 0
    assert corrected.interval.high is not None and 0.15 < corrected.interval.high < 0.2


def test_clipped_estimates_have_the_interval_of_their_labels() -> None:
    """The labels differ, but the correction leads above 1."""
    corrected = corrected_mean([1.0, 0, 0, 0] + [1.0] * 996, [1.0, 1, 1, 0] + [np.nan] * 996)
    assert corrected.interval.mean == pytest.approx(1.497)
    assert corrected.effective == corrected.labeled == 4
    assert corrected.interval.high == 1


def test_weights_undo_an_uneven_choice() -> None:
    """Half of the answers that the judge rejects are labeled, and a twentieth of the others."""
    rng, values = np.random.default_rng(7), []
    for _ in range(300):
        labels = (rng.random(1000) < 0.8).astype(np.float64)
        verdicts = judged(labels, 0.9, 0.6, rng)
        shares = np.where(verdicts == 0, 0.5, 0.05)
        known = np.where(rng.random(1000) < shares, labels, np.nan)
        corrected = corrected_mean(verdicts, known, weights=(1 / shares).tolist())
        values.append((corrected.interval.mean, is_inside(corrected, 0.8)))
    means, hits = zip(*values, strict=True)
    assert np.mean(means) == pytest.approx(0.8, abs=0.01)
    assert np.mean(hits) >= LEAST


def test_ratings_have_intervals_of_student() -> None:
    rng = np.random.default_rng(8)
    ratings = rng.integers(1, 6, 200).astype(np.float64)
    corrected = corrected_mean(np.clip(ratings + 0.5, 1, 5), part(ratings, 60))
    assert corrected.effective is None
    assert corrected.interval.low and corrected.interval.low < ratings.mean() < (corrected.interval.high or 0)


def test_differences_of_clusters_are_paired_by_question() -> None:
    rng = np.random.default_rng(9)
    hard = rng.random(200)
    questions = [f"q{number}" for number in range(200)]
    first, second = (hard < 0.6).astype(float), (hard < 0.5).astype(float)
    arguments = (first, part(first, 80), second, part(second, 80))
    paired = corrected_difference(*arguments, clusters=questions)
    shuffled = rng.permutation(200)
    reordered = corrected_difference(
        first,
        part(first, 80),
        second[shuffled],
        part(second, 80)[shuffled],
        clusters=questions,
        second_clusters=[questions[place] for place in shuffled],
    )
    assert reordered.interval.mean == pytest.approx(paired.interval.mean)
    assert reordered.interval.standard_error == pytest.approx(paired.interval.standard_error)
    unpaired = corrected_difference(*arguments, clusters=questions, second_clusters=range(200))
    assert unpaired.interval.standard_error > paired.interval.standard_error


@pytest.mark.parametrize(
    ("verdicts", "labels", "options", "error"),
    [
        ([1, 0], [1], {}, "1 labels for 2 verdicts"),
        ([1, np.nan], [1, 0], {}, "verdict on item 1 is nan"),
        ([1, 0, 1], [1, None, None], {}, "1 of 3 items have a label; a correction needs 2"),
        ([1, 0, 1], [1, 0, None], {"clusters": ["a", "a", "b"]}, "all labels are of one question"),
        ([1, 0, 1], [1, 0, None], {"clusters": ["a"]}, "clusters has 1 entries for 3 items"),
        ([1, 0, 1], [1, 0, None], {"weights": [1, 0, 1]}, "a weight is 0.0; allowed: numbers above 0"),
        ([1, 0, 1], [1, 0, None], {"weights": [1, float("inf"), 1]}, "a weight is inf; allowed: numbers above 0"),
        ([1, 0, 1], [1, 0, None], {"weights": [1]}, "1 weights for 3 items"),
    ],
)
def test_bad_input_is_named(verdicts: list[float], labels: list[float | None], options: dict, error: str) -> None:
    with pytest.raises(InputError, match=error):
        corrected_mean(verdicts, labels, **options)


def test_wilson_intervals_are_those_of_the_paper() -> None:
    """Newcombe, Interval Estimation for the Difference Between Independent Proportions, 1998, table I, method 3."""
    examples = {
        (81, 263): (0.2553, 0.3662),
        (15, 148): (0.0624, 0.1605),
        (0, 20): (0, 0.1611),
        (1, 29): (0.0061, 0.1718),
    }
    for (hits, n), bounds in examples.items():
        assert wilson_interval(hits / n, n) == pytest.approx(bounds, abs=5e-5)


def test_the_expected_width_is_that_of_simulations() -> None:
    widths = [
        corrected.interval.high - corrected.interval.low  # type: ignore[operator]
        for judge, corrected in independent(100, 0.5, 200, 10)
        if judge == (0.95, 0.95)
    ]
    assert expected_width(310, 100, 0.5, correlation=0.9) == pytest.approx(np.mean(widths), rel=0.05)
    assert expected_width(310, 100, 0.5) > expected_width(310, 200, 0.5)
    with pytest.raises(InputError, match="1 labels; an interval needs 2"):
        expected_width(310, 1, 0.5)
