"""The compiled search: the ranking and the scores of scoring all documents, to the last bit."""

from __future__ import annotations

import importlib.util
import pickle
import sys
from types import ModuleType

import numpy as np
import pytest

from qabench.retrieval import BM25Index
from qabench.retrieval.bm25 import ranking
from qabench.retrieval.bm25.formulas import METHODS

numba = pytest.importorskip("numba", reason="needs the extra fast")
MODULES = [f"qabench.retrieval.bm25.{name}" for name in ("compiled", "columns", "lookups", "kernel")]
_, COLUMNS, LOOKUPS, KERNEL = MODULES


@pytest.fixture
def interpreted(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The kernel as Python, which takes no time to compile and can be patched; used for small collections too."""
    monkeypatch.setattr(numba.config, "DISABLE_JIT", True)
    for name in MODULES:
        spec = importlib.util.find_spec(name)
        assert spec and spec.loader
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
    monkeypatch.setattr(ranking, "SMALL", 0)
    monkeypatch.setattr(ranking, "_kernel", lambda: module)
    return module


def compare(size: int, searches: int, method: str, dtype: str, epsilon: float, masked: bool, seed: int) -> None:
    """Random searches in a random collection."""
    generator = np.random.default_rng(seed)
    weights = 1 / np.arange(1, 61)
    drawn = generator.choice(60, (size, 9), p=weights / weights.sum())
    texts = [" ".join(f"t{term}" for term in row[: number % 10]) for number, row in enumerate(drawn)]
    index = BM25Index(texts, method, dtype=dtype, epsilon=epsilon)
    mask = generator.random(size) < 0.8 if masked else None
    allowed = np.arange(size) if mask is None else np.flatnonzero(mask)
    for _ in range(searches):
        query = " ".join(f"t{term}" for term in generator.choice(70, int(generator.integers(0, 9))))
        k = int(generator.integers(1, 12))
        scores = index.scores(query)
        best = allowed[np.lexsort((allowed, -scores[allowed]))][:k]
        hits = index.search(query, k, mask=mask)
        assert hits.positions == best.tolist()
        assert hits.scores == scores[best].tolist()


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(("cost", "share", "most"), [(0, 0, 0), (1, 3, 256), (12, 32, 256), (1, 32, 2)])
@pytest.mark.parametrize("method", METHODS)
def test_equal_to_scoring_all(
    interpreted: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    cost: int,
    share: int,
    most: int,
    masked: bool,
) -> None:
    for name in (LOOKUPS, KERNEL):
        monkeypatch.setattr(sys.modules[name], "LOOKUP_COST", cost)
    columns = sys.modules[COLUMNS]
    monkeypatch.setattr(columns, "SHARE", share)
    monkeypatch.setattr(columns, "MOST_TERMS", most)
    monkeypatch.setattr(columns, "BLOCK", 50)
    compare(120, 8, method, "float64", 0.25, masked, seed=cost)


@pytest.mark.parametrize("method", METHODS)
def test_coarse_gains_are_bounds(interpreted: ModuleType, method: str) -> None:
    """Each is at least the gain, and less than a step more."""
    generator = np.random.default_rng(1)
    texts = [" ".join(f"t{term}" for term in row) for row in generator.integers(0, 12, (300, 9)) ** 2 // 9]
    index = BM25Index(texts, method)
    index.search("t0 t1 t4")
    columns, postings = index._content.scorer._columns, index._content.scorer.postings
    for term, row in columns._rows.items():
        gains = postings.scores([term]) - postings.base[term]
        more = columns.lows[row] + columns.values[row] * columns.steps[row] - gains
        assert more.min() > -1e-12 and more.max() < columns.steps[row] + 1e-12
    assert list(columns._rows.values()) == [0, 1, 2]


@pytest.mark.parametrize("share", [0, 5, 32])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_terms_that_lower_scores(
    interpreted: ModuleType, monkeypatch: pytest.MonkeyPatch, dtype: str, share: int
) -> None:
    for name in (LOOKUPS, KERNEL):
        monkeypatch.setattr(sys.modules[name], "LOOKUP_COST", 1)
    monkeypatch.setattr(sys.modules[COLUMNS], "SHARE", share)
    compare(120, 40, "okapi", dtype, -0.5, False, seed=3)


def test_an_index_can_be_sent_to_another_process(interpreted: ModuleType) -> None:
    index = BM25Index([f"x{number % 9} y{number % 7} w" for number in range(90)])
    expected = index.search("x3 y4 w", 5)
    assert pickle.loads(pickle.dumps(index)).search("x3 y4 w", 5) == expected


def test_memory_is_clean_after_a_search(interpreted: ModuleType) -> None:
    compare(90, 5, "bm25+", "float64", 0.25, False, seed=1)
    memory = interpreted._memory(90)
    assert not memory.sums.any()


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_compiled(monkeypatch: pytest.MonkeyPatch, dtype: str) -> None:
    kernel = importlib.import_module(KERNEL)
    monkeypatch.setattr(ranking, "_kernel", lambda: kernel)
    for method in METHODS:
        for masked in (False, True):
            compare(20_000, 10, method, dtype, 0.25, masked, seed=5)
    compare(20_000, 30, "okapi", dtype, -0.5, False, seed=6)
