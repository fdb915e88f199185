"""Intervals and corrections against other implementations and published examples, and their coverage.

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
from qabench.stats import adjust, bootstrap, bootstrap_all, bootstrap_mean, paired_test

SCORES = st.lists(st.integers(0, 4).map(lambda n: n / 4), min_size=2, max_size=30)


SIZES = (10, 30, 191)
SHARES = (0.05, 0.2, 0.5, 0.9)
Array = npt.NDArray[np.float64]


def f1(tp: Any, fp: Any, fn: Any) -> Any:
    """0 if there is nothing to find and nothing was found."""
    return 2 * tp / np.maximum(2 * tp + fp + fn, 1)


def unsafe_f1(tp: Any, fp: Any, fn: Any) -> Any:
    return 2 * tp / (2 * tp + fp + fn)


def only_whole(*sums: Any) -> Any:
    """Return 1 for the first sample and NaN for the others."""
    return np.array([1.0] + [np.nan] * (len(sums[0]) - 1))


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
    interval = bootstrap_mean([1] * successes + [0] * (n - successes), resamples=50)
    assert (interval.low, interval.high) == pytest.approx(bounds, abs=5e-5)


def test_the_published_standard_errors_of_a_mean() -> None:
    """Efron and Tibshirani 1993, mouse data: 86.86 and 56.22, with infinitely many resamples 23.36 and 13.33."""
    treated = bootstrap_mean([94, 197, 16, 38, 99, 141, 23])
    control = bootstrap_mean([52, 104, 146, 10, 51, 30, 40, 27, 46])
    assert (treated.mean, control.mean) == pytest.approx((86.86, 56.22), abs=0.005)
    assert (treated.standard_error, control.standard_error) == pytest.approx((23.36, 13.33), rel=0.02)


def test_standard_errors_and_quantiles_equal_scipys() -> None:
    scipy_stats = pytest.importorskip("scipy.stats")
    counts = verdicts(80, 6)
    of_sums = lambda tp, fp, fn, axis: f1(tp.sum(axis), fp.sum(axis), fn.sum(axis))  # noqa: E731
    theirs = scipy_stats.bootstrap(tuple(counts.T), of_sums, paired=True, n_resamples=10_000, method="percentile")
    assert bootstrap(counts, f1).standard_error == pytest.approx(theirs.standard_error, rel=0.03)
    for a, b in 10 ** np.random.default_rng(5).uniform(-1, 5, (200, 2)):
        for probability in (0.025, 0.975):
            expected = scipy_stats.beta.ppf(probability, a, b)
            assert stats.beta_quantile(probability, a, b) == pytest.approx(expected, rel=1e-8, abs=1e-30)
    for freedom in (1, 1.5, 9, 1e5):
        assert stats.student_quantile(freedom) == pytest.approx(scipy_stats.t.ppf(0.975, freedom))


def test_the_clustered_standard_error_equals_the_sandwich() -> None:
    api = pytest.importorskip("statsmodels.api")
    values, clusters = in_questions(150, 4, seed=7)
    clusters = [min(c, 140) for c in clusters]  # one larger cluster: sizes differ
    fit = api.OLS(values, np.ones(len(values))).fit(
        cov_type="cluster", cov_kwds={"groups": np.array(clusters), "use_correction": False}
    )
    clustered = bootstrap_mean(values.tolist(), clusters=clusters)
    assert clustered.mean == pytest.approx(fit.params[0])
    assert clustered.standard_error == pytest.approx(fit.bse[0], rel=0.05)
    assert clustered.standard_error > 1.5 * bootstrap_mean(values.tolist()).standard_error


def test_exact_intervals_cover_what_they_promise() -> None:
    for n in SIZES:
        bounds = [stats.clopper_pearson(k, n) for k in range(n + 1)]
        for p in SHARES:
            inside = [
                comb(n, k) * p**k * (1 - p) ** (n - k) for k, (low, high) in enumerate(bounds) if low <= p <= high
            ]
            assert sum(inside) >= 0.95, (n, p)


def fractions(rng: np.random.Generator, n: int, p: float) -> Array:
    """Shares of four parts."""
    return stats.table(rng.binomial(4, p, n) / 4)


def skewed(rng: np.random.Generator, n: int, p: float) -> Array:
    """Shares of any size, which differ widely."""
    return stats.table(rng.beta(2 * p, 2 * (1 - p), n))


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
    return stats.table([Pass(2, all=True)([1] * count + [0] * (4 - count)) for count in right])


def felm_counts(rng: np.random.Generator, n: int, p: float) -> Array:
    """FELM's counts of one to eight segments; precision and recall are p, so F1 is p."""
    wrong = 0.3
    cells = [1 - wrong * (2 - p), wrong * p, wrong * (1 - p), wrong * (1 - p)]
    return rng.multinomial(rng.integers(1, 9, n), cells)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("draw", [fractions, skewed, repeated, reliable, ratios, felm_counts])
def test_intervals_cover_what_they_promise(draw: Callable[..., Array], n: int) -> None:
    function = f1_of_counts if draw is felm_counts else stats.mean
    for p in SHARES:
        rng = np.random.default_rng(20)
        covered = printed = 0
        for _ in range(300):
            rows = draw(rng, n, p).astype(np.float64)
            score = stats.scores(function, rows.sum(axis=0, keepdims=True))[0]
            low, high = stats.score_bounds(rows, function, score)
            if low is not None and high is not None:
                printed += 1
                covered += low <= p <= high
        assert covered >= 0.93 * printed, (p, covered, printed)
        assert printed > 150, (p, printed)


def test_scores_that_are_not_fractions_have_students_interval() -> None:
    interval = bootstrap_mean([10, 12, 14, 16, 18])
    assert (interval.low, interval.high) == pytest.approx((14 - 2.7764 * 2**0.5, 14 + 2.7764 * 2**0.5), abs=1e-3)
    interval = bootstrap_mean([0.0, 0.7, *[1.0] * 10])  # fractions: not wider than exact intervals
    exact = stats.clopper_pearson(10.7, 12)
    assert exact[0] <= interval.low + 1e-9 and interval.high - 1e-9 <= exact[1]  # type: ignore[operator]


@pytest.mark.parametrize("values", [[0.5], [0.4, 0.4, 0.4], [7.0, 7.0]])
def test_equal_items_have_no_interval(values: list[float]) -> None:
    interval = bootstrap_mean(values)
    assert (interval.low, interval.high, interval.bounds()) == (None, None, "not enough data")


def test_a_score_that_one_item_makes_undefined_has_no_interval() -> None:
    interval = bootstrap([[3, 1, 0], [0, 0, 0], [0, 0, 0]], unsafe_f1)
    assert interval.mean == pytest.approx(6 / 7) and interval.bounds() == "not enough data"


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=25),
    st.sampled_from(stats.TESTS),
    st.booleans(),
)
def test_the_interval_of_a_difference_agrees_with_its_test(
    rows: list[tuple[int, int]], test: str, of_sums: bool
) -> None:
    a, b = np.array(rows, dtype=np.float64).T
    if of_sums:
        wrong = np.ones(len(a))
        result = paired_test(
            np.column_stack([a, wrong, wrong]), np.column_stack([b, wrong, wrong]), test=test, function=f1
        )
    else:
        result = paired_test(a, b, test=test, resamples=999)
    low, high = result.interval.low, result.interval.high
    if low is None or high is None:
        assert np.count_nonzero(a != b) < 6 or result.p_value >= 0.05
    else:
        assert (low <= 0 <= high) == (result.p_value >= 0.05) and low < result.interval.mean < high


def test_scores_depend_on_the_seed_not_on_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = np.random.default_rng(2).integers(0, 2, (2, 50)).tolist()
    first = bootstrap_mean(a, resamples=300), paired_test(a, b, resamples=300)
    assert (bootstrap_mean(a, resamples=300), paired_test(a, b, resamples=300)) == first
    assert bootstrap_mean(a, resamples=300, seed=1) != first[0]
    monkeypatch.setattr(stats, "CELLS_AT_ONCE", 130)
    assert (bootstrap_mean(a, resamples=300), paired_test(a, b, resamples=300)) == first


def test_samples_of_one_size_are_drawn_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = [stats.table(np.random.default_rng(i).random(30 + i // 3)) for i in range(5)]
    separate = [bootstrap(rows, stats.mean, resamples=50) for rows in tables]
    draws: list[int] = []
    counts = stats._counts
    monkeypatch.setattr(stats, "_counts", lambda size, *rest: draws.append(size) or counts(size, *rest))
    assert bootstrap_all([(rows, stats.mean) for rows in tables], resamples=50) == separate
    assert draws == [30, 31]


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stats, "CACHE_BYTES", 0)
    values = np.random.default_rng(2).random(20_000).tolist()
    tracemalloc.start()
    try:
        bootstrap_mean(values, resamples=1000)
        assert tracemalloc.get_traced_memory()[1] < 16e6  # all counts at once would be 160 MB
    finally:
        tracemalloc.stop()


@given(SCORES, st.integers(1, 4))
def test_repeated_items_add_no_information(values: list[float], times: int) -> None:
    once = bootstrap_mean(values, resamples=50)
    if once.low is not None and once.high is not None:
        assert 0 <= once.low <= once.mean <= once.high <= 1
    questions = np.repeat(range(len(values)), times).tolist()
    repeated = bootstrap_mean(np.repeat(values, times).tolist(), clusters=questions, resamples=50)
    assert (repeated.mean, repeated.low, repeated.high) == pytest.approx((once.mean, once.low, once.high))


PUBLISHED = [
    0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0,
]  # fmt: skip


def test_the_published_corrections() -> None:
    """Benjamini and Hochberg 1995, section 4: theirs finds four of fifteen, bounding any false finding three."""
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


def test_undefined_resamples_are_left_out_and_counted() -> None:
    interval = bootstrap([[1, 0, 0], [0, 0, 0]], unsafe_f1)
    assert (interval.mean, interval.bounds()) == (1, "0.0006 to 1.0000")  # of one item with a score
    assert interval.undefined == pytest.approx(0.25, abs=0.02)  # both draws are the second item
    assert bootstrap([[1, 0, 0], [0, 0, 1]], unsafe_f1).undefined == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bootstrap_mean([]), "nothing to score"),
        (lambda: bootstrap_mean([0.5, float("nan")]), r"item 1 has a statistic that is not finite"),
        (lambda: bootstrap([[0, 0, 0]], unsafe_f1), "score of all items is undefined"),
        (lambda: bootstrap([[1, 0, 0], [0, 0, 0]], only_whole, resamples=2), "in all but 1 of 2 resamples"),
        (lambda: bootstrap([1.0], f1), "one row of numbers per item"),  # type: ignore[list-item]
        (lambda: paired_test([1], [1, 2]), "aligned: 1 and 2"),
    ],
)
def test_bad_input(call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()


def test_the_published_randomization_test() -> None:
    """Fisher, The Design of Experiments, 1935, section 21, on Darwin's maize: 1726 of the 32,768 ways."""
    differences = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]
    exact = paired_test(differences, [0] * 15, resamples=32_768)
    assert exact.p_value == 1726 / 32_768
    assert paired_test(differences, [0] * 15).p_value == pytest.approx(exact.p_value, abs=0.01)


def test_p_values_count_the_observed_sample() -> None:
    ones, zeros = [1] * 60, [0] * 60
    # Of 99 random swaps of 60 equal differences, none reaches the observed one; of equal systems, every swap does.
    for test in stats.TESTS:
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

    names = np.arange(2 * items).reshape(2, items)  # scipy swaps names of rows, as it knows no rows of several numbers
    x, y = np.random.default_rng(8).normal(0.1, 0.3, (2, items))
    options = {"permutation_type": "samples", "rng": 3}
    of_means = scipy_stats.permutation_test((x, y), lambda x, y, axis: (x - y).mean(axis), **options)
    of_sums = scipy_stats.permutation_test((names[0], names[1]), difference, **options)
    tolerance = 1e-12 if 2**items < 9999 else 0.025  # exact for few items
    assert paired_test(x, y).p_value == pytest.approx(of_means.pvalue, abs=tolerance)
    assert paired_test(a, b, function=f1).p_value == pytest.approx(of_sums.pvalue, abs=tolerance)


def test_p_values_are_uniform_when_nothing_differs() -> None:
    rng = np.random.default_rng(4)
    for test in stats.TESTS:
        pairs = [(rng.random(60), rng.random(60)) for _ in range(300)]
        p = [paired_test(a, b, test=test, resamples=400).p_value for a, b in pairs]
        assert 0.02 < np.mean(np.array(p) < 0.05) < 0.1 and 0.4 < np.mean(np.array(p) < 0.5) < 0.6


def test_randomization_keeps_its_level_on_few_questions() -> None:
    rng = np.random.default_rng(9)
    wrong = dict.fromkeys(stats.TESTS, 0)
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
    ours = bootstrap(statistics["a"], bleu)
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
    low, high = stats.score_bounds(rows.astype(float), balanced_accuracy, 19 / 24)
    assert low is not None and high is not None and 0 < low < 19 / 24 < high <= 1
