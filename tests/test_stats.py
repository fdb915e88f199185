from __future__ import annotations

import numpy as np
import pytest

from qabench.errors import InputError
from qabench.stats import bootstrap_mean, paired_bootstrap


def test_the_interval_of_a_mean_is_near_the_normal_one() -> None:
    values = np.random.default_rng(1).normal(0.5, 0.2, 400).tolist()
    interval = bootstrap_mean(values)
    error = float(np.std(values, ddof=1)) / 20
    assert interval.mean == pytest.approx(np.mean(values))
    assert interval.standard_error == pytest.approx(error, rel=0.05)
    assert interval.low == pytest.approx(interval.mean - 1.96 * error, abs=error / 5)
    assert interval.high == pytest.approx(interval.mean + 1.96 * error, abs=error / 5)


def test_the_interval_covers_the_truth_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    covered = 0
    for seed in range(300):
        interval = bootstrap_mean(rng.binomial(1, 0.3, 120).tolist(), confidence=0.9, resamples=500, seed=seed)
        covered += interval.low <= 0.3 <= interval.high
    assert 0.85 <= covered / 300 <= 0.95


def test_the_same_seed_gives_the_same_figures_and_blocks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(2).random(50).tolist()
    first = bootstrap_mean(values, resamples=300)
    assert bootstrap_mean(values, resamples=300) == first
    assert bootstrap_mean(values, resamples=300, seed=1) != first
    monkeypatch.setattr("qabench.stats.CELLS_AT_ONCE", 100)
    assert bootstrap_mean(values, resamples=300).low == pytest.approx(first.low, abs=0.05)


def test_paired_bootstrap_finds_a_difference_and_none_where_there_is_none() -> None:
    rng = np.random.default_rng(3)
    hard = rng.random(200)
    same = paired_bootstrap((hard + rng.normal(0, 0.1, 200)).tolist(), (hard + rng.normal(0, 0.1, 200)).tolist())
    better = paired_bootstrap((hard + 0.05 + rng.normal(0, 0.1, 200)).tolist(), hard.tolist())
    assert not same.significant
    assert better.significant
    assert better.interval.low > 0
    assert paired_bootstrap([1, 0, 1], [1, 0, 1]).p_value == 1.0


def test_the_p_value_is_uniform_when_nothing_differs() -> None:
    rng = np.random.default_rng(4)
    p = [paired_bootstrap(rng.random(60).tolist(), rng.random(60).tolist(), resamples=400).p_value for _ in range(300)]
    assert 0.02 < np.mean(np.array(p) < 0.05) < 0.1


def test_bad_input() -> None:
    with pytest.raises(InputError, match="no questions"):
        bootstrap_mean([])
    with pytest.raises(InputError, match="aligned: 1 and 2"):
        paired_bootstrap([1], [1, 2])
    with pytest.raises(InputError, match=r"between 0 and 1, such as 0\.95"):
        bootstrap_mean([1.0], confidence=95)
