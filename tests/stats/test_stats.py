"""Intervals and corrections against other implementations and published examples, and their coverage.

Published examples are only numbers, each with its source.
"""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qabench import stats
from qabench.errors import InputError
from qabench.stats import adjust, bootstrap, bootstrap_all, bootstrap_mean, paired_bootstrap, paired_randomization

SCORES = st.lists(st.integers(0, 4).map(lambda n: n / 4), min_size=2, max_size=30)


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


def test_the_published_interval_of_a_variance() -> None:
    """Efron and Tibshirani 1993, spatial data, table 14.2 (90 %, 2000 resamples; hence the tolerance)."""
    a = [48, 36, 20, 29, 42, 42, 20, 42, 22, 41, 45, 14, 6, 0, 33, 28, 34, 4, 32, 24, 47, 41, 24, 26, 30, 41]
    variance = [(1, x, x * x) for x in a], lambda n, x, xx: xx / n - (x / n) ** 2
    interval = bootstrap(*variance, confidence=0.9, resamples=50_000)
    assert interval.mean == pytest.approx(171.5, abs=0.05)
    assert (interval.low, interval.high) == pytest.approx((100.8, 233.9), abs=4)


def test_the_published_standard_errors_of_a_mean() -> None:
    """Efron and Tibshirani 1993, mouse data: 86.86 and 56.22, with infinitely many resamples 23.36 and 13.33."""
    treated = bootstrap_mean([94, 197, 16, 38, 99, 141, 23])
    control = bootstrap_mean([52, 104, 146, 10, 51, 30, 40, 27, 46])
    assert (treated.mean, control.mean) == pytest.approx((86.86, 56.22), abs=0.005)
    assert (treated.standard_error, control.standard_error) == pytest.approx((23.36, 13.33), rel=0.02)


def test_intervals_equal_scipys() -> None:
    scipy_stats = pytest.importorskip("scipy.stats")
    skewed = np.random.default_rng(5).beta(6, 1, 60)
    counts = verdicts(80, 6)
    of_sums = lambda tp, fp, fn, axis: f1(tp.sum(axis), fp.sum(axis), fn.sum(axis))  # noqa: E731
    cases: list[tuple[Any, Any, Any]] = [
        (bootstrap_mean(skewed.tolist()), (skewed,), np.mean),
        (bootstrap(counts, f1), tuple(counts.T), of_sums),
    ]
    for ours, data, statistic in cases:
        theirs = scipy_stats.bootstrap(data, statistic, paired=True, n_resamples=10_000, method="percentile", rng=1)
        error = theirs.standard_error
        assert ours.standard_error == pytest.approx(error, rel=0.03)
        assert ours.low == pytest.approx(theirs.confidence_interval.low, abs=error / 8)
        assert ours.high == pytest.approx(theirs.confidence_interval.high, abs=error / 8)


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


def test_intervals_have_their_nominal_coverage() -> None:
    rng = np.random.default_rng(0)
    covered = clustered = 0
    for seed in range(250):
        interval = bootstrap_mean(rng.binomial(1, 0.3, 120).tolist(), confidence=0.9, resamples=400, seed=seed)
        covered += interval.low <= 0.3 <= interval.high
        values, clusters = in_questions(40, 3, seed)
        interval = bootstrap_mean(values.tolist(), clusters=clusters, confidence=0.9, resamples=400, seed=seed)
        clustered += interval.low <= 0.5 <= interval.high
    assert 0.85 <= covered / 250 <= 0.95
    assert 0.84 <= clustered / 250 <= 0.95


def test_scores_depend_on_the_seed_not_on_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = np.random.default_rng(2).integers(0, 2, (2, 50)).tolist()
    first = bootstrap_mean(a, resamples=300), paired_randomization(a, b, resamples=300)
    assert (bootstrap_mean(a, resamples=300), paired_randomization(a, b, resamples=300)) == first
    assert bootstrap_mean(a, resamples=300, seed=1) != first[0]
    monkeypatch.setattr(stats, "CELLS_AT_ONCE", 130)
    assert (bootstrap_mean(a, resamples=300), paired_randomization(a, b, resamples=300)) == first


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
    assert min(values) - 1e-9 <= once.low <= once.high <= max(values) + 1e-9
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
    assert adjust(PUBLISHED, "none") == PUBLISHED
    assert adjust([], "holm") == adjust([], "bh") == []
    assert adjust([0.01, 0.04, 0.03], "holm") == pytest.approx([0.03, 0.06, 0.06])
    assert adjust([0.01, 0.04, 0.03], "bh") == pytest.approx([0.03, 0.04, 0.04])


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
    assert (interval.mean, interval.low, interval.high) == (1, 1, 1)
    assert interval.undefined == pytest.approx(0.25, abs=0.02)  # both draws are the second item
    assert bootstrap([[1, 0, 0], [0, 0, 1]], unsafe_f1).undefined == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bootstrap_mean([]), "no questions"),
        (lambda: bootstrap_mean([0.5, float("nan")]), r"item 1 has a statistic that is not finite"),
        (lambda: bootstrap_mean([[1.0]]), "one number per item"),  # type: ignore[list-item]
        (lambda: bootstrap_mean([1.0], confidence=95), r"between 0 and 1, such as 0\.95"),
        (lambda: bootstrap_mean([1.0], resamples=1), "1 resamples; allowed: 2 or more"),
        (lambda: bootstrap_mean([1.0, 2.0], clusters=["q"]), "1 names, 2 items"),
        (lambda: bootstrap([[0, 0, 0]], unsafe_f1), "score of all items is undefined"),
        (lambda: bootstrap([[1, 0, 0], [0, 0, 0]], only_whole, resamples=2), "in all but 1 of 2 resamples"),
        (lambda: bootstrap([[1, 0, 0]], lambda *_: 0.5), "one score for each"),  # type: ignore[arg-type, return-value]
        (lambda: bootstrap([1.0], f1), "one row of numbers per item"),  # type: ignore[list-item]
        (lambda: adjust([0.5, 1.5]), "between 0 and 1; got 1.5"),
        (lambda: paired_bootstrap([1], [1, 2]), "aligned: 1 and 2"),
        (lambda: paired_randomization([[1, 2]], [[1]], function=f1), "the same number of columns: 2 and 1"),
    ],
)
def test_bad_input(call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()


def test_the_published_randomization_test() -> None:
    """Fisher, The Design of Experiments, 1935, section 21, on Darwin's maize: 1726 of the 32,768 ways."""
    differences = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]
    exact = paired_randomization(differences, [0] * 15, resamples=32_768)
    assert exact.p_value == 1726 / 32_768
    assert paired_randomization(differences, [0] * 15).p_value == pytest.approx(exact.p_value, abs=0.01)


def test_p_values_count_the_observed_sample() -> None:
    ones, zeros = [1] * 60, [0] * 60
    # Of 99 random swaps of 60 equal differences, none reaches the observed one; of equal systems, every swap does.
    for test in (paired_randomization, paired_bootstrap):
        assert test(ones, zeros, resamples=99).p_value == 1 / 100
    zigzag = [1, 0] * 30
    assert paired_randomization(zigzag, zigzag[::-1], resamples=99).p_value == 100 / 100


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
    assert paired_randomization(x, y).p_value == pytest.approx(of_means.pvalue, abs=tolerance)
    assert paired_randomization(a, b, function=f1).p_value == pytest.approx(of_sums.pvalue, abs=tolerance)


def test_p_values_are_uniform_when_nothing_differs() -> None:
    rng = np.random.default_rng(4)
    for test in (paired_bootstrap, paired_randomization):
        p = [test(rng.random(60).tolist(), rng.random(60).tolist(), resamples=400).p_value for _ in range(300)]
        assert 0.02 < np.mean(np.array(p) < 0.05) < 0.1
        assert 0.4 < np.mean(np.array(p) < 0.5) < 0.6


def test_randomization_keeps_its_level_on_few_questions() -> None:
    rng = np.random.default_rng(9)
    wrong = {paired_bootstrap: 0, paired_randomization: 0}
    for _ in range(400):
        a, b = rng.random((2, 8)) ** 3
        for test in wrong:
            wrong[test] += test(a, b, resamples=300).significant
    assert wrong[paired_randomization] / 400 < 0.07 < wrong[paired_bootstrap] / 400


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 5)), min_size=1, max_size=25))
def test_symmetry_and_resolution_of_p_values(rows: list[tuple[int, int, int]]) -> None:
    a, b, clusters = map(list, zip(*rows, strict=True))
    first = paired_randomization(a, b, clusters=clusters, resamples=64)
    second = paired_randomization(b, a, clusters=clusters, resamples=64)
    assert first.p_value == second.p_value  # at most six questions: exact
    assert (first.p_value * 64).is_integer()
    assert first.interval.mean == pytest.approx(-second.interval.mean)
    bootstrapped = [paired_bootstrap(x, y, clusters=clusters, resamples=64).p_value for x, y in ((a, b), (b, a))]
    assert bootstrapped[0] == bootstrapped[1]
    assert 0 < bootstrapped[0] <= 1


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
    assert (ours.high - ours.low) / 2 == pytest.approx(theirs._ci, rel=0.06)
    for kind, test in (("bs", paired_bootstrap), ("ar", paired_randomization)):
        _, results = significance.PairedTest(list(texts.items()), {"BLEU": metric}, None, kind, n_samples=4000)()
        p_value = test(statistics["a"], statistics["b"], function=bleu).p_value
        assert p_value == pytest.approx(results["BLEU"][1].p_value, abs=0.03)
