"""BM25 without the compiled search, as without the extra ``fast``; tests of the kernel turn it on."""

from __future__ import annotations

import pytest

from qabench.retrieval.bm25 import ranking


@pytest.fixture(autouse=True)
def without_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranking, "_kernel", lambda: None)
