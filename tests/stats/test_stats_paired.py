"""Paired tests against other implementations and published examples, and their error rates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from resampling_cases import f1, verdicts

from qabench.errors import InputError
from qabench.stats import bootstrap, paired_bootstrap, paired_randomization


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


def test_bad_input() -> None:
    with pytest.raises(InputError, match="aligned: 1 and 2"):
        paired_bootstrap([1], [1, 2])
    with pytest.raises(InputError, match="the same number of columns: 2 and 1"):
        paired_randomization([[1, 2]], [[1]], function=f1)
