"""Bootstrap intervals and a paired test of 10,000 items with 10,000 resamples: SciPy and qabench.

They draw different random numbers: bounds must agree within 0.15 standard errors, and p-values within 0.03. SciPy works
in batches of 100 resamples, since all of them together would need gigabytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from cases import Case
from scipy import stats as scipy_stats

from qabench.stats import bootstrap, bootstrap_mean, paired_randomization

ITEMS = RESAMPLES = 10_000
BATCH = 100
SCIPY = "SciPy"


def f1(tp: Any, fp: Any, fn: Any) -> Any:
    return 2 * tp / (2 * tp + fp + fn)


def cases(size: int | None = None) -> Iterator[Case]:
    rng = np.random.default_rng(0)
    scores = rng.beta(3, 1, ITEMS).round(3)
    other = (scores + rng.normal(0.0015, 0.1, ITEMS)).round(3)
    counts = rng.multinomial(1, [0.3, 0.15, 0.2, 0.35], size=ITEMS)[:, :3].astype(float)
    questions = np.repeat(np.arange(ITEMS // 5 + 1), 5)[:ITEMS].tolist()

    def theirs(data: Any, statistic: Any, method: str = "percentile") -> Any:
        return scipy_stats.bootstrap(
            data, statistic, paired=True, n_resamples=RESAMPLES, batch=BATCH, method=method, rng=0
        )

    def summed(tp: Any, fp: Any, fn: Any, axis: int) -> Any:
        return f1(tp.sum(axis), fp.sum(axis), fn.sum(axis))

    def theirs_p() -> Any:
        return scipy_stats.permutation_test(
            (scores, other), lambda a, b, axis: (a - b).mean(axis), permutation_type="samples", n_resamples=RESAMPLES,
            batch=BATCH, rng=0,
        )  # fmt: skip

    def case(name: str, ours: Any, other: Any, same: Any = near) -> Case:
        return Case(name, ours, {SCIPY: other}, same, once=frozenset([SCIPY]))

    yield case("mean, percentile", lambda: bootstrap_mean(scores), lambda: theirs((scores,), np.mean))
    yield case("mean, BCa", lambda: bootstrap_mean(scores, method="bca"), lambda: theirs((scores,), np.mean, "BCa"))
    yield case("F1 of summed counts", lambda: bootstrap(counts, f1), lambda: theirs(counts.T, summed))
    yield Case("mean, 5 items per question", lambda: bootstrap_mean(scores, clusters=questions))
    yield case(
        "randomization test (ours with an interval)",
        lambda: paired_randomization(scores, other),
        theirs_p,
        lambda ours, theirs: abs(ours.p_value - theirs.pvalue) <= 0.03,
    )


def near(ours: Any, theirs: Any) -> bool:
    """Whether the bounds are those of SciPy, up to the randomness of both."""
    bounds = theirs.confidence_interval
    return max(abs(ours.low - bounds.low), abs(ours.high - bounds.high)) <= theirs.standard_error * 0.15
