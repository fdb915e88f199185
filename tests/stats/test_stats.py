"""Intervals and corrections against other implementations and published examples, and their coverage.

Published examples are only numbers, each with its source.
"""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from resampling_cases import f1, in_questions, only_whole, unsafe_f1, verdicts

from qabench import stats
from qabench.errors import InputError
from qabench.stats import adjust, bootstrap, bootstrap_all, bootstrap_mean, paired_randomization

SCORES = st.lists(st.integers(0, 4).map(lambda n: n / 4), min_size=2, max_size=30)


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
    ],
)
def test_bad_input(call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()
