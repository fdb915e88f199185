"""Times bootstrap intervals and paired tests on 10,000 items with 10,000 resamples: SciPy and qabench, compared.

    pip install scipy && python performance/resampling.py [--items 10000] [--resamples 10000] [--repeat 3]

They draw different random numbers: bounds must agree within 0.15 standard errors, and p-values within 0.03. SciPy works
in batches of 100 resamples, since all of them together would need gigabytes.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy
from scipy import stats as scipy_stats

from qabench.stats import bootstrap, bootstrap_mean, paired_randomization

BATCH = 100


def timed(function: Callable[[], Any], repeat: int) -> tuple[float, Any]:
    seconds, result = [], None
    for _ in range(repeat):
        start = time.perf_counter()
        result = function()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds), result


def f1(tp: Any, fp: Any, fn: Any) -> Any:
    return 2 * tp / (2 * tp + fp + fn)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=10_000)
    parser.add_argument("--resamples", type=int, default=10_000)
    parser.add_argument("--repeat", type=int, default=3, help="runs of our code; SciPy's runs once")
    options = parser.parse_args()
    n, resamples = options.items, options.resamples
    rng = np.random.default_rng(0)
    scores = rng.beta(3, 1, n).round(3)
    other = (scores + rng.normal(0.0015, 0.1, n)).round(3)
    counts = rng.multinomial(1, [0.3, 0.15, 0.2, 0.35], size=n)[:, :3].astype(float)
    questions = np.repeat(np.arange(n // 5 + 1), 5)[:n].tolist()

    def theirs(data: Any, statistic: Any, method: str = "percentile") -> Any:
        return scipy_stats.bootstrap(
            data, statistic, paired=True, n_resamples=resamples, batch=BATCH, method=method, rng=0
        )

    def summed(tp: Any, fp: Any, fn: Any, axis: int) -> Any:
        return f1(tp.sum(axis), fp.sum(axis), fn.sum(axis))

    def theirs_p() -> float:
        return scipy_stats.permutation_test(
            (scores, other), lambda a, b, axis: (a - b).mean(axis), permutation_type="samples", n_resamples=resamples,
            batch=BATCH, rng=0,
        ).pvalue  # fmt: skip

    intervals: list[tuple[str, Callable[[], Any], Callable[[], Any] | None]] = [
        ("mean, percentile", lambda: bootstrap_mean(scores, resamples=resamples), lambda: theirs((scores,), np.mean)),
        (
            "mean, BCa",
            lambda: bootstrap_mean(scores, resamples=resamples, method="bca"),
            lambda: theirs((scores,), np.mean, "BCa"),
        ),
        ("F1 of summed counts", lambda: bootstrap(counts, f1, resamples=resamples), lambda: theirs(counts.T, summed)),
        (
            "mean, 5 items per question",
            lambda: bootstrap_mean(scores, clusters=questions, resamples=resamples),
            None,
        ),
    ]
    print(f"{n:,} items, {resamples:,} resamples; {len(os.sched_getaffinity(0))} cores, SciPy {scipy.__version__}")
    print(f"{'':44}{'SciPy s':>10}{'here s':>10}{'ratio':>9}")
    for name, our, their in intervals:
        seconds, found = timed(our, options.repeat)
        if their is None:
            show(name, None, seconds)
            continue
        their_seconds, expected = timed(their, 1)
        bounds = expected.confidence_interval
        if max(abs(found.low - bounds.low), abs(found.high - bounds.high)) > expected.standard_error * 0.15:
            raise SystemExit(f"{name}: the intervals differ: {found}, {expected}")
        show(name, their_seconds, seconds)
    seconds, difference = timed(lambda: paired_randomization(scores, other, resamples=resamples), options.repeat)
    their_seconds, p_value = timed(theirs_p, 1)
    if abs(difference.p_value - p_value) > 0.03:
        raise SystemExit(f"the p-values differ: {difference.p_value}, {p_value}")
    show("randomization test (ours with an interval)", their_seconds, seconds)
    print(
        f"peak memory of the process, both sides: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB"
    )


def show(name: str, theirs: float | None, ours: float) -> None:
    ratio = f"{theirs:10.2f}{ours:10.2f}{theirs / ours:8.1f}x" if theirs else f"{'':10}{ours:10.2f}"
    print(f"{name:44}{ratio}")


if __name__ == "__main__":
    main()
