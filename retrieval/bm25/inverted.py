"""The inverted index: postings by term, searched by compiled code if numba is installed (extra ``fast``)."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from qabench.retrieval.bm25.search import Array, Floats, Mask, Postings, Results, Search

FEW_DOCUMENTS, FEW_QUERIES = 4096, 500  # for both, NumPy takes less time than importing numba


class InvertedScorer:
    """The inverted index, searched by compiled code if numba is installed (extra ``fast``)."""

    def __init__(self, postings: Postings, vocabulary: dict[str, int]) -> None:
        self.postings = postings
        self.vocabulary = vocabulary
        self._search = Search(postings)
        self._queries = 0.0  # so far; infinite once the search is chosen

    def __reduce__(self) -> tuple[Any, ...]:
        return InvertedScorer, (self.postings, self.vocabulary)

    def scores(self, terms: Sequence[str]) -> Floats:
        """Return the score of every document."""
        return self._search.scores(self._numbers(terms))

    def top(self, terms: Sequence[str], k: int, mask: Mask | None) -> Results:
        """Return the k best documents in ``mask`` (None for all documents)."""
        k = min(k, self.postings.size if mask is None else int(np.count_nonzero(mask)))
        if self._queries < math.inf:
            self._choose_search(1)
        return self._search.top(self._numbers(terms), k, mask) if k else ([], [])

    def top_all(
        self, terms: Array, ends: Array, names: Sequence[str | None], k: int, mask: Mask | None, workers: int | None
    ) -> list[Results]:
        """Call ``Search.top_all``; ``terms`` are places in ``names``, which has None for a stop word."""
        k = min(k, self.postings.size if mask is None else int(np.count_nonzero(mask)))
        if k == 0:
            return [([], [])] * (len(ends) - 1)
        get = self.vocabulary.get
        numbers = np.array([-1 if name is None or (n := get(name)) is None else n for name in names] or [-1])
        terms = numbers[terms] if len(terms) else np.empty(0, dtype=np.int64)
        present = terms >= 0
        ends = np.concatenate(([0], np.cumsum(present)))[ends]
        if self._queries < math.inf:
            self._choose_search(len(ends) - 1)
        return self._search.top_all(terms[present], ends, k, mask, workers)

    def _numbers(self, terms: Sequence[str]) -> list[int]:
        get = self.vocabulary.get
        return [number for term in terms if (number := get(term)) is not None]

    def _choose_search(self, queries: int) -> None:
        """Use the compiled search from now on, if numba is installed and worth importing."""
        self._queries += queries
        if self.postings.size > FEW_DOCUMENTS or self._queries > FEW_QUERIES or "numba" in sys.modules:
            self._queries = math.inf
            with suppress(ImportError, RuntimeError):
                from qabench.retrieval.bm25.compiled import CompiledSearch

                self._search = CompiledSearch(self.postings)
