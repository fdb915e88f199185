"""Intervals and corrections against other implementations and published examples, and their
coverage.

Published examples are only numbers, each with its source.
"""

import math
import tracemalloc
from collections.abc import Callable
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qabench import stats
from qabench.benchmarks.felm.formulas import balanced_accuracy, f1_of_counts
from qabench.errors import InputError
from qabench.evaluation.score_spec import Pass
from qabench.stats import adjust, distributions, mean_interval, paired_test, resampling, score_interval
from qabench.stats.differences import FEWEST_DIFFERING, inverted_test
from qabench.stats.intervals import score_bounds
from qabench.stats.paired import TESTS
from qabench.stats.units import mean, scores, scores_without_one, table

SCORES = st.lists(st.integers(0, 4).map(lambda n: n / 4), min_size=2, max_size=30)


SIZES = (10, 30, 191)
SHARES = (0.05, 0.2, 0.5, 0.9)
Array = npt.NDArray[np.float64]


def f1(tp: Any, fp: Any, fn: Any) -> Any:
    """0 if there is nothing to find and nothing was found."""
    return 2 * tp / np.maximum(2 * tp + fp + fn, 1)


def unsafe_f1(tp: Any, fp: Any, fn: Any) -> Any:
    return 2 * tp / (2 * tp + fp + fn)


def verdicts(items: int, seed: int) -> Array:
    """Rows of true positives, false positives and false negatives, at most one of them 1."""
    return np.random.default_rng(seed).multinomial(1, [0.3, 0.15, 0.2, 0.35], size=items)[:, :3].astype(np.float64)


def in_questions(questions: int, items: int, seed: int, spread: float = 0.3) -> tuple[Array, list[int]]:
    """Scores around 0.5 of items that share their question's difficulty, and each item's question."""
    rng = np.random.default_rng(seed)
    hard = np.repeat(rng.normal(0, spread, questions), items)
    return 0.5 + hard + rng.normal(0, 0.1, questions * items), np.repeat(np.arange(questions), items).tolist()


@pytest.mark.parametrize(
    ("successes", "n", "bounds"),
    [(81, 263, (0.2527, 0.3676)), (15, 148, (0.0578, 0.1617)), (0, 20, (0, 0.1684)), (1, 29, (0.0009, 0.1776))],
)
def test_the_published_exact_intervals(successes: int, n: int, bounds: tuple[float, float]) -> None:
    """Newcombe, Two-Sided Confidence Intervals for the Single Proportion, 1998, table I, method 5."""
    interval = mean_interval([1] * successes + [0] * (n - successes))
    assert (interval.low, interval.high) == pytest.approx(bounds, abs=5e-5)


def test_the_published_standard_errors_of_a_mean() -> None:
    """Efron and Tibshirani 1993, mouse data: 86.86 and 56.22, with infinitely many resamples 23.36
    and 13.33.
    """
    treated = mean_interval([94, 197, 16, 38, 99, 141, 23])
    control = mean_interval([52, 104, 146, 10, 51, 30, 40, 27, 46])
    assert (treated.mean, control.mean) == pytest.approx((86.86, 56.22), abs=0.005)
    # Theirs divide by the number of mice, the jackknife's by one less: it is a little larger for
    # few.
    own = treated.standard_error * (6 / 7) ** 0.5, control.standard_error * (8 / 9) ** 0.5
    assert own == pytest.approx((23.36, 13.33), rel=0.002)


def test_standard_errors_and_quantiles_equal_scipys() -> None:
    scipy_stats = pytest.importorskip("scipy.stats")
    counts = verdicts(80, 6)
    of_sums = lambda tp, fp, fn, axis: f1(tp.sum(axis), fp.sum(axis), fn.sum(axis))  # noqa: E731
    theirs = scipy_stats.bootstrap(tuple(counts.T), of_sums, paired=True, n_resamples=10_000, method="percentile")
    assert score_interval(counts, f1).standard_error == pytest.approx(theirs.standard_error, rel=0.03)
    for a, b in 10 ** np.random.default_rng(5).uniform(-1, 5, (200, 2)):
        for probability in (0.025, 0.975):
            expected = scipy_stats.beta.ppf(probability, a, b)
            assert distributions.beta_quantile(probability, a, b) == pytest.approx(expected, rel=1e-8, abs=1e-30)
    for freedom in (1, 1.5, 9, 1e5):
        assert distributions.student_quantile(freedom) == pytest.approx(scipy_stats.t.ppf(0.975, freedom))


def test_the_clustered_standard_error_equals_the_sandwich() -> None:
    api = pytest.importorskip("statsmodels.api")
    values, clusters = in_questions(150, 4, seed=7)
    clusters = [min(c, 140) for c in clusters]  # one larger cluster: sizes differ
    fit = api.OLS(values, np.ones(len(values))).fit(
        cov_type="cluster", cov_kwds={"groups": np.array(clusters), "use_correction": False}
    )
    clustered = mean_interval(values.tolist(), clusters=clusters)
    assert clustered.mean == pytest.approx(fit.params[0])
    assert clustered.standard_error == pytest.approx(fit.bse[0], rel=0.05)
    assert clustered.standard_error > 1.5 * mean_interval(values.tolist()).standard_error


def test_exact_intervals_cover_what_they_promise() -> None:
    for n in SIZES:
        bounds = [distributions.clopper_pearson(k, n) for k in range(n + 1)]
        for p in SHARES:
            inside = [
                comb(n, k) * p**k * (1 - p) ** (n - k) for k, (low, high) in enumerate(bounds) if low <= p <= high
            ]
            assert sum(inside) >= 0.95, (n, p)


def fractions(rng: np.random.Generator, n: int, p: float) -> Array:
    """Shares of four parts."""
    return table(rng.binomial(4, p, n) / 4)


def skewed(rng: np.random.Generator, n: int, p: float) -> Array:
    """Shares of any size, which differ widely."""
    return table(rng.beta(2 * p, 2 * (1 - p), n))


def repeated(rng: np.random.Generator, n: int, p: float) -> Array:
    """0/1 scores of five epochs of questions of different difficulty."""
    return np.column_stack([rng.binomial(5, rng.beta(2 * p, 2 * (1 - p), n)), np.full(n, 5)])


def ratios(rng: np.random.Generator, n: int, p: float) -> Array:
    """Up to eight claims of an answer, and how many of them are supported."""
    claims = rng.integers(1, 9, n)
    return np.column_stack([rng.binomial(claims, rng.beta(4 * p, 4 * (1 - p), n)), claims])


def reliable(rng: np.random.Generator, n: int, p: float) -> Array:
    """pass^2 of four samples of questions of different difficulty."""
    mean = (math.sqrt(1 + 24 * p) - 1) / 4
    right = rng.binomial(4, rng.beta(2 * mean, 2 * (1 - mean), n))
    return table([Pass(2, all=True)([1] * count + [0] * (4 - count)) for count in right])


def felm_counts(rng: np.random.Generator, n: int, p: float) -> Array:
    """FELM's counts of one to eight segments; precision and recall are p, so F1 is p."""
    wrong = 0.3
    cells = [1 - wrong * (2 - p), wrong * p, wrong * (1 - p), wrong * (1 - p)]
    return rng.multinomial(rng.integers(1, 9, n), cells)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("draw", [fractions, skewed, repeated, reliable, ratios, felm_counts])
def test_intervals_cover_what_they_promise(draw: Callable[..., Array], n: int) -> None:
    function = f1_of_counts if draw is felm_counts else mean
    for p in SHARES:
        rng = np.random.default_rng(20)
        covered = printed = 0
        for _ in range(300):
            rows = draw(rng, n, p).astype(np.float64)
            score = scores(function, rows.sum(axis=0, keepdims=True))[0]
            low, high = score_bounds(rows, function, score, scores_without_one(function, rows))
            if low is not None and high is not None:
                printed += 1
                covered += low <= p <= high
        assert covered >= 0.93 * printed, (p, covered, printed)
        assert printed > 150, (p, printed)


def test_scores_that_are_not_fractions_have_students_interval() -> None:
    interval = mean_interval([10, 12, 14, 16, 18])
    assert (interval.low, interval.high) == pytest.approx((14 - 2.7764 * 2**0.5, 14 + 2.7764 * 2**0.5), abs=1e-3)
    interval = mean_interval([0.0, 0.7, *[1.0] * 10])  # fractions: not wider than exact intervals
    exact = distributions.clopper_pearson(10.7, 12)
    assert exact[0] <= interval.low + 1e-9 and interval.high - 1e-9 <= exact[1]  # type: ignore[operator]


@pytest.mark.parametrize("values", [[0.5], [0.4, 0.4, 0.4], [7.0, 7.0]])
def test_equal_items_have_no_interval(values: list[float]) -> None:
    interval = mean_interval(values)
    assert (interval.low, interval.high, interval.bounds()) == (None, None, "not enough data")


def test_a_score_that_one_item_makes_undefined_has_no_interval() -> None:
    interval = score_interval([[3, 1, 0], [0, 0, 0], [0, 0, 0]], unsafe_f1)
    assert interval.mean == pytest.approx(6 / 7) and interval.bounds() == "not enough data"


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=25),
    st.sampled_from(TESTS),
    st.sampled_from([1, 3, 7]),
    st.booleans(),
)
def test_the_interval_of_a_difference_agrees_with_its_test(
    rows: list[tuple[int, int]], test: str, highest: int, of_sums: bool
) -> None:
    """Of 0/1 scores, fractions, scores without limits, and F1."""
    a, b = np.minimum(np.array(rows, dtype=np.float64).T, highest)
    if of_sums:
        wrong = np.ones(len(a))
        result = paired_test(
            np.column_stack([a, wrong, wrong]), np.column_stack([b, wrong, wrong]), test=test, function=f1
        )
    else:
        scale = 3 if highest == 3 else 1  # 7: scores from 0 to 3, which are not fractions
        result = paired_test(a / scale, b / scale, test=test, resamples=999)
    low, high = result.interval.low, result.interval.high
    if low is None or high is None:
        assert highest == 7 and not of_sums and (len(a) == 1 or len(np.unique(a - b)) == 1)
    else:
        assert (low <= 0 <= high) == (result.p_value >= 0.05)
        assert low <= result.interval.mean <= high
        if of_sums or highest != 7:
            assert low >= -1 and high <= 1


def shares(rng: np.random.Generator, n: int, p: float, q: float) -> tuple[Array, Array]:
    """Shares of four parts."""
    first, second = (rng.binomial(4, rng.beta(4 * mean, 4 * (1 - mean), n)) / 4 for mean in (p, q))
    return first, second


def wide(rng: np.random.Generator, n: int, p: float, q: float) -> tuple[Array, Array]:
    """Shares of any size, which differ widely."""
    return rng.beta(2 * p, 2 * (1 - p), n), rng.beta(2 * q, 2 * (1 - q), n)


def binary(rng: np.random.Generator, n: int, p: float, q: float) -> tuple[Array, Array]:
    """0/1 scores, most of which are equal."""
    hard = rng.random(n)
    again = np.where(rng.random(n) < 0.7, hard, rng.random(n))
    return (hard < p).astype(float), (again < q).astype(float)


def rare(rng: np.random.Generator, n: int, p: float, q: float) -> tuple[Array, Array]:
    """Scores that are equal on most questions."""
    first = 0.5 + rng.random(n) / 2
    return first, np.where(rng.random(n) < 2 * (p - q), first - 0.5, first)


def responses(rng: np.random.Generator, n: int, p: float, q: float) -> tuple[Array, Array]:
    """FELM's counts of two evaluators, see ``felm_counts``."""
    return felm_counts(rng, n, p).astype(float), felm_counts(rng, n, q).astype(float)


DIFFERENCES = [
    (shares, 0.63, 0.18), (shares, 0.9, 0.85), (wide, 0.5, 0.4), (binary, 0.9, 0.3), (binary, 0.6, 0.5),
    (binary, 0.95, 0.9), (rare, 0.06, 0), (responses, 0.5, 0.3), (responses, 0.9, 0.8),
]  # fmt: skip
Pairs = Callable[[np.random.Generator, int, float, float], tuple[Array, Array]]


def check_differences(draw: Pairs, p: float, q: float, n: int, samples: int, lowest: float) -> None:
    """Intervals of differences are always there, cover what they promise, and are not wider than
    Student's t.
    """
    rng = np.random.default_rng(31)
    function = f1_of_counts if draw is responses else None
    covered = 0
    width = students = 0.0
    students_cover = few = 0
    for sample in range(samples):
        first, second = draw(rng, n, p, q)
        low, high = difference_bounds(first, second, function, sample)
        covered += low - 1e-9 <= p - q <= high + 1e-9
        width += high - low
        if function is None:
            change = first - second
            margin = distributions.student_quantile(n - 1) * change.std(ddof=1) / n**0.5
            students += 2 * margin
            students_cover += abs(change.mean() - (p - q)) <= margin
            few += np.count_nonzero(change) < FEWEST_DIFFERING
    assert covered >= lowest * samples, (draw.__name__, p, q, n, covered / samples)
    if students_cover >= 0.95 * samples and few < 0.05 * samples:
        assert width <= 1.1 * students, (draw.__name__, p, q, n, width / students)


def difference_bounds(first: Array, second: Array, function: Any, seed: int) -> tuple[float, float]:
    interval = paired_test(first, second, function=function, resamples=400, seed=seed).interval
    assert interval.low is not None and interval.high is not None
    assert -1 <= interval.low <= interval.mean <= interval.high <= 1
    return interval.low, interval.high


@pytest.mark.parametrize("n", [10, 30, 310])
def test_intervals_of_differences_cover_what_they_promise(n: int) -> None:
    for draw, p, q in DIFFERENCES:
        check_differences(draw, p, q, n, samples=200, lowest=0.91)


@pytest.mark.slow
@pytest.mark.parametrize("n", [10, 15, 30, 100, 310])
@pytest.mark.parametrize(("draw", "p", "q"), DIFFERENCES)
def test_coverage_of_differences_at_length(draw: Pairs, p: float, q: float, n: int) -> None:
    check_differences(draw, p, q, n, samples=1500, lowest=0.93)


def test_the_inverted_test_excludes_what_the_test_excludes() -> None:
    """The bounds of a mean difference are those between which a shifted test is not significant."""
    first, second = np.random.default_rng(5).beta(2, 3, (2, 11))
    low, high = inverted_test(*_inverted_input(first, second), True, 10_000, 0)
    for shift, is_excluded in ((low - 1e-6, True), (low + 1e-6, False), (high - 1e-6, False), (high + 1e-6, True)):
        assert (paired_test(first - shift, second).p_value < 0.05) == is_excluded, shift


def _inverted_input(first: Array, second: Array) -> tuple[Array, Array, Array]:
    moved = resampling.subset_sums(np.column_stack([first - second, np.ones(len(first))]))
    return table(first), table(second), moved


def test_the_published_interval_of_paired_proportions() -> None:
    """Bonett and Price 2012: one disagreement is added in both directions; also with clusters of
    equal items.
    """
    first, second = [1] * 9 + [0] * 3 + [1] * 18, [0] * 9 + [1] * 3 + [1] * 18
    p, q = 10 / 32, 4 / 32
    margin = 1.959964 * math.sqrt((p + q - (p - q) ** 2) / 32)
    interval = paired_test(first, second).interval
    assert interval.low == pytest.approx(min(0, p - q - margin), abs=1e-6)
    assert interval.high == pytest.approx(p - q + margin, abs=1e-6)
    clusters = [i // 3 for i in range(90)]  # three copies of each question say no more than one
    tripled = [np.repeat(values, 3).tolist() for values in (first, second)]
    of_clusters = paired_test(*tripled, clusters=clusters).interval
    assert of_clusters.high == pytest.approx(interval.high, abs=0.005)


def test_differences_without_variance_have_intervals() -> None:
    same = paired_test([0.3, 0.5] * 29, [0.3, 0.5] * 29)
    assert same.p_value == 1 and same.interval.low == pytest.approx(-0.0447, abs=0.01)
    ahead = paired_test([0.6] * 20, [0.1] * 20)  # equal differences: no variance to estimate
    assert ahead.interval.low is not None and 0 < ahead.interval.low < 0.5
    alone = paired_test([1.0], [0.0])
    assert (alone.p_value, alone.interval.high) == (1, 1) and alone.interval.low < 0  # type: ignore[operator]


def test_tests_depend_on_the_seed_not_on_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = np.random.default_rng(2).integers(0, 4, (2, 50)).tolist()
    results = [paired_test(a, b, test=test, resamples=300) for test in TESTS]
    assert [paired_test(a, b, test=test, resamples=300) for test in TESTS] == results
    assert [paired_test(a, b, test=test, resamples=300, seed=1) for test in TESTS] != results
    monkeypatch.setattr(resampling, "CELLS_AT_ONCE", 130)
    assert [paired_test(a, b, test=test, resamples=300) for test in TESTS] == results


def test_memory_is_bounded() -> None:
    first, second = np.random.default_rng(2).random((2, 20_000)).tolist()
    tracemalloc.start()
    try:
        paired_test(first, second, test="bootstrap", resamples=1000)
        assert tracemalloc.get_traced_memory()[1] < 16e6  # all counts at once would be 160 MB
    finally:
        tracemalloc.stop()


@given(SCORES, st.integers(1, 4))
def test_repeated_items_add_no_information(values: list[float], times: int) -> None:
    once = mean_interval(values)
    if once.low is not None and once.high is not None:
        assert 0 <= once.low <= once.mean <= once.high <= 1
    questions = np.repeat(range(len(values)), times).tolist()
    repeated = mean_interval(np.repeat(values, times).tolist(), clusters=questions)
    assert (repeated.mean, repeated.low, repeated.high) == pytest.approx((once.mean, once.low, once.high))


PUBLISHED = [
    0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0,
]  # fmt: skip


def test_the_published_corrections() -> None:
    """Benjamini and Hochberg 1995, section 4: theirs finds four of fifteen, bounding any false
    finding three.
    """
    assert sum(p <= 0.05 for p in adjust(PUBLISHED, "bh")) == 4
    assert sum(p <= 0.05 for p in adjust(PUBLISHED, "holm")) == 3
    assert adjust(PUBLISHED, "none") == PUBLISHED and adjust([], "holm") == adjust([], "bh") == []
    assert adjust([0.01, 0.04, 0.03], "holm") == pytest.approx([0.03, 0.06, 0.06])
    assert adjust([0.01, 0.04, 0.03], "bh") == pytest.approx([0.03, 0.04, 0.04])


@pytest.mark.slow  # statsmodels takes long to import; the cases above are quick
def test_corrections_equal_statsmodels() -> None:
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    rng = np.random.default_rng(11)
    for number in range(1, 60):
        p_values = np.round(rng.random(number) ** 3, 2).tolist()  # with ties, zeros and ones
        for ours, theirs in (("holm", "holm"), ("bh", "fdr_bh")):
            expected = multitest.multipletests(p_values, method=theirs)[1]
            assert adjust(p_values, ours) == pytest.approx(expected.tolist(), abs=1e-12)


def test_items_without_which_a_score_is_undefined_are_counted() -> None:
    interval = score_interval([[1, 0, 0], [0, 0, 0]], unsafe_f1)
    assert (interval.mean, interval.bounds()) == (1, "0.0006 to 1.0000")  # of one item with a score
    assert (interval.undefined, interval.standard_error) == (0.5, 0)
    assert score_interval([[1, 0, 0], [0, 0, 1]], unsafe_f1).undefined == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mean_interval([]), "nothing to score"),
        (lambda: mean_interval([0.5, float("nan")]), r"item 1 has a statistic that is not finite"),
        (lambda: score_interval([[0, 0, 0]], unsafe_f1), "score of all items is undefined"),
        (lambda: score_interval([1.0], f1), "one row of numbers per item"),  # type: ignore[list-item]
        (lambda: paired_test([1], [1, 2]), "aligned: 1 and 2"),
    ],
)
def test_bad_input(call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()


def test_the_published_randomization_test() -> None:
    """Fisher, The Design of Experiments, 1935, section 21, on Darwin's maize: 1726 of the 32,768
    ways.
    """
    differences = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]
    exact = paired_test(differences, [0] * 15, resamples=32_768)
    assert exact.p_value == 1726 / 32_768
    assert paired_test(differences, [0] * 15).p_value == pytest.approx(exact.p_value, abs=0.01)


def test_p_values_count_the_observed_sample() -> None:
    ones, zeros = [1] * 60, [0] * 60
    # Of 99 random swaps of 60 equal differences, none reaches the observed one; of equal systems,
    # every swap does.
    for test in TESTS:
        assert paired_test(ones, zeros, test=test, resamples=99).p_value == 1 / 100
    zigzag = [1, 0] * 30
    assert paired_test(zigzag, zigzag[::-1], resamples=99).p_value == 100 / 100


@pytest.mark.parametrize("items", [9, 40])
def test_randomization_equals_scipys(items: int) -> None:
    scipy_stats = pytest.importorskip("scipy.stats")
    a, b = verdicts(items, 1), verdicts(items, 2)
    both = np.vstack([a, b])

    def difference(x: Any, y: Any, axis: int) -> Any:
        return f1(*np.moveaxis(both[x].sum(-2), -1, 0)) - f1(*np.moveaxis(both[y].sum(-2), -1, 0))

    # scipy swaps names of rows, as it knows no rows of several numbers
    names = np.arange(2 * items).reshape(2, items)
    x, y = np.random.default_rng(8).normal(0.1, 0.3, (2, items))
    options = {"permutation_type": "samples", "rng": 3}
    of_means = scipy_stats.permutation_test((x, y), lambda x, y, axis: (x - y).mean(axis), **options)
    of_sums = scipy_stats.permutation_test((names[0], names[1]), difference, **options)
    tolerance = 1e-12 if 2**items < 9999 else 0.025  # exact for few items
    assert paired_test(x, y).p_value == pytest.approx(of_means.pvalue, abs=tolerance)
    assert paired_test(a, b, function=f1).p_value == pytest.approx(of_sums.pvalue, abs=tolerance)


def test_p_values_are_uniform_when_nothing_differs() -> None:
    rng = np.random.default_rng(4)
    for test in TESTS:
        pairs = [(rng.random(60), rng.random(60)) for _ in range(300)]
        p = [paired_test(a, b, test=test, resamples=400).p_value for a, b in pairs]
        assert 0.02 < np.mean(np.array(p) < 0.05) < 0.1 and 0.4 < np.mean(np.array(p) < 0.5) < 0.6


def test_randomization_keeps_its_level_on_few_questions() -> None:
    rng = np.random.default_rng(9)
    wrong = dict.fromkeys(TESTS, 0)
    for _ in range(400):
        a, b = rng.random((2, 8)) ** 3
        for test in wrong:
            wrong[test] += paired_test(a, b, test=test, resamples=300).p_value < 0.05
    assert wrong["randomization"] / 400 < 0.07 < wrong["bootstrap"] / 400


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 5)), min_size=1, max_size=25))
def test_symmetry_and_resolution_of_p_values(rows: list[tuple[int, int, int]]) -> None:
    a, b, clusters = map(list, zip(*rows, strict=True))
    first = paired_test(a, b, clusters=clusters, resamples=64)
    second = paired_test(b, a, clusters=clusters, resamples=64)
    assert first.p_value == second.p_value  # at most six questions: exact
    assert (first.p_value * 64).is_integer()
    assert first.interval.mean == pytest.approx(-second.interval.mean)
    options: dict[str, Any] = {"test": "bootstrap", "clusters": clusters, "resamples": 64}
    bootstrapped = [paired_test(a, b, **options).p_value, paired_test(b, a, **options).p_value]
    assert bootstrapped[0] == bootstrapped[1] and 0 < bootstrapped[0] <= 1


# sacreBLEU: a score of summed n-gram counts

SUBJECTS = ("the old bridge", "a small town", "this river", "the second king", "her first book")
TAILS = ("was built in 1894", "has a long history", "lies near the border", "was never finished", "is well known here")
REFERENCES = [f"{subject} {tail} and people still like it" for subject in SUBJECTS for tail in TAILS]


def bleu(counts: Any, *sums: Any) -> Any:
    """BLEU-4 of summed hypothesis length, reference length, 4 matches and 4 totals."""
    matches, totals = np.array(sums[1:5]), np.array(sums[5:9])
    brevity = np.minimum(0, 1 - sums[0] / counts)
    return 100 * np.exp(brevity + np.log(matches / totals).mean(axis=0))


def hypotheses(seed: int, errors: float) -> list[str]:
    rng = np.random.default_rng(seed)
    return [" ".join(w if rng.random() > errors else "so" for w in text.split()) for text in REFERENCES]


def test_bleu_its_interval_and_tests_equal_sacrebleus() -> None:
    metrics = pytest.importorskip("sacrebleu.metrics")
    significance = pytest.importorskip("sacrebleu.significance")
    metric = metrics.BLEU(references=[REFERENCES])
    texts = {"a": hypotheses(1, 0.12), "b": hypotheses(2, 0.17)}
    statistics = {name: metric._extract_corpus_statistics(text, None) for name, text in texts.items()}
    ours = score_interval(statistics["a"], bleu)
    theirs = metric.corpus_score(texts["a"], None, n_bootstrap=4000)
    assert ours.mean == pytest.approx(theirs.score)
    assert 1.96 * ours.standard_error == pytest.approx(theirs._ci, rel=0.06)
    for kind, test in (("bs", "bootstrap"), ("ar", "randomization")):
        _, results = significance.PairedTest(list(texts.items()), {"BLEU": metric}, None, kind, n_samples=4000)()
        p_value = paired_test(statistics["a"], statistics["b"], test=test, function=bleu).p_value
        assert p_value == pytest.approx(results["BLEU"][1].p_value, abs=0.03)


def test_a_score_that_no_single_row_has_is_a_fraction() -> None:
    truths = np.array([1, 1, 1, 1, 1, 1, 0, 0, 0, 0])
    verdicts = np.array([1, 1, 1, 1, 1, 0, 0, 0, 0, 1])
    right = truths == verdicts
    rows = np.stack([truths * right, (1 - truths) * right, (1 - truths) * ~right, truths * ~right], axis=1)
    left_out = scores_without_one(balanced_accuracy, rows.astype(float))
    low, high = score_bounds(rows.astype(float), balanced_accuracy, 19 / 24, left_out)
    assert low is not None and high is not None and 0 < low < 19 / 24 < high <= 1


NAN = float("nan")


@pytest.mark.parametrize("call", [stats.mean_interval, lambda values: paired_test(values, values)])
@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([], "there are no items"),
        ([[1, 2], [3, 4]], r"scores have the shape \(2, 2\); allowed: one number per item"),
        (3, r"scores have the shape \(\)"),
        (None, "allowed: one number per item|scores have the shape"),
        (["a", "b"], "scores are .*could not convert string to float"),
        ([[1], [2, 3]], "scores are .*inhomogeneous"),
        ([1, {}], "scores are "),
        ([1, NAN, 0], "item 1 has a statistic that is not finite"),
        ([10**400], "scores are "),
    ],
)
def test_scores_that_are_not_one_number_per_item(call: Any, values: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call(values)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"clusters": ["a", "b"]}, "there are 2 clusters for 3 items"),
        ({"clusters": ["a"] * 4}, "there are 4 clusters for 3 items"),
        ({"clusters": [["a"], ["b"], ["c"]]}, "clusters are .*unhashable"),
        ({"clusters": 3}, "clusters are 3"),
    ],
)
def test_clusters_that_do_not_name_each_item(options: dict[str, Any], message: str) -> None:
    for call in (
        lambda: stats.mean_interval([1, 0, 1], **options),
        lambda: score_interval([[1, 1], [0, 1], [1, 1]], lambda a, b: a / b, **options),
        lambda: paired_test([1, 0, 1], [0, 0, 1], **options),
    ):
        with pytest.raises(InputError, match=message):
            call()


@pytest.mark.parametrize("test", ["randomization", "bootstrap"])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"resamples": 0}, "resamples is 0; allowed: a whole number, 1 or more"),
        ({"resamples": -5}, "resamples is -5"),
        ({"resamples": 2.5}, r"resamples is 2\.5"),
        ({"resamples": None}, "resamples is None"),
        ({"seed": -1}, "seed is -1; allowed: a whole number, 0 or more"),
        ({"seed": "x"}, "seed is 'x'"),
    ],
)
def test_numbers_of_resamples_and_seeds(options: dict[str, Any], message: str, test: str) -> None:
    with pytest.raises(InputError, match=message):
        paired_test([1, 0, 1], [0, 0, 1], test=test, **options)


def test_systems_that_are_not_aligned() -> None:
    with pytest.raises(InputError, match="paired scores must be aligned: 2 and 3 values"):
        paired_test([1, 0], [1, 0, 1])
    with pytest.raises(InputError, match="paired items have 2 and 3 statistics; allowed: the same number"):
        paired_test([[1, 1]] * 2, [[1, 1, 1]] * 2, function=lambda a, b: a / b)


def test_a_function_of_another_shape() -> None:
    with pytest.raises(InputError, match=r"the function returned an array of shape \(\) for 1 sums"):
        score_interval([[1, 1], [0, 1]], lambda a, b: 0.5)


@pytest.mark.parametrize("correction", stats.CORRECTIONS)
@pytest.mark.parametrize("p_values", [[1.5, NAN, -1], [NAN], [-0.1], [[0.5, 0.5]], ["a"], 0.5, None])
def test_p_values_that_are_none(p_values: Any, correction: str) -> None:
    with pytest.raises(InputError, match="p-value"):
        stats.adjust(p_values, correction)
