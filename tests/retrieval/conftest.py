"""BM25 without the compiled search, as without the extra ``fast``; tests of the compiled search turn it on."""

from __future__ import annotations

import pytest

from qabench.retrieval.bm25.inverted import InvertedScorer


@pytest.fixture(autouse=True)
def without_numba(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    if "with_numba" not in request.fixturenames:
        monkeypatch.setattr(InvertedScorer, "_choose_search", lambda scorer, queries: None)


@pytest.fixture
def with_numba() -> None:
    pytest.importorskip("numba", reason="needs the extra fast")
