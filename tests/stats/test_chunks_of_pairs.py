"""Many pairs of systems are tested in chunks, with the result of all at once."""

import tracemalloc

import numpy as np
import pytest

from qabench.stats import paired
from qabench.stats.units import mean, table, units

SYSTEMS = 24
QUESTIONS = 40


def differences() -> list[paired.Difference]:
    rng = np.random.default_rng(7)
    rows = {i: units(table(rng.integers(0, 2, QUESTIONS).tolist()), None) for i in range(SYSTEMS)}
    pairs = [(i, j) for i in rows for j in rows if i < j]
    return paired.paired_tests(rows, pairs, mean, "randomization", 2000, 0)


def test_chunks_have_the_same_result_in_less_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    peaks = []
    results = []
    for size in (10, 10_000):
        monkeypatch.setattr(paired, "PAIRS_AT_ONCE", size)
        tracemalloc.start()
        results.append(differences())
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    chunked, at_once = results
    assert [each.p_value for each in chunked] == [each.p_value for each in at_once]
    for first, second in zip(chunked, at_once, strict=True):
        assert (first.interval.low, first.interval.high) == pytest.approx((second.interval.low, second.interval.high))
    assert peaks[0] < peaks[1] / 3
