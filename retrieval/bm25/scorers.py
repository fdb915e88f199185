"""What scores documents: the inverted index, or, for comparison, the package ``rank_bm25``."""

from __future__ import annotations

import array
import os
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import numpy as np

from qabench.errors import InputError, MissingExtra
from qabench.retrieval.bm25.exhaustive import Array, Floats, Mask, Postings, top
from qabench.retrieval.bm25.formulas import Parameters

BACKENDS = ("qabench", "rank_bm25")
RANK_BM25 = {"okapi": "BM25Okapi", "bm25+": "BM25Plus", "bm25l": "BM25L"}  # method -> class of rank_bm25
SMALL = 4096  # documents; for fewer, NumPy takes less time for a few queries than importing numba; and no pruning
FEW_QUERIES = 500
QUERIES_PER_THREAD = 64
MOST_ROWS, MOST_BYTES = 256, 1 << 28  # of bytes of frequent terms
MISSING, FULL = -1, -2  # instead of a term's row: a frequent term without bytes, and one that gets none

Results = tuple[list[int], list[float]]  # positions and scores of a query's best documents


class Scorer(Protocol):
    """Scores documents for the terms of a query, in the query's order and with repetitions."""

    def scores(self, terms: Sequence[str]) -> Floats:
        """Return the score of every document."""

    def top(self, terms: Sequence[str], k: int, mask: Mask | None) -> Results:
        """Return the k best documents in ``mask`` (None for all documents)."""


class Best(threading.local):
    """Arrays for the k best positions and scores, which a thread's searches reuse: NumPy allocates slowly."""

    k = 0

    def resize(self, k: int) -> None:
        """Allocate arrays for k documents."""
        self.k = k
        self.positions, self.scores = np.empty(k, dtype=np.int64), np.empty(k)
        self.addresses = _address(self.positions), _address(self.scores)


class Compiled:
    """The arrays that the functions of ``compiled`` search, given to them as addresses.

    Args:
        postings: the index.

    Raises:
        ImportError: numba is not installed.
        RuntimeError: numba finds no folder for its cache that is writable.
    """

    def __init__(self, postings: Postings) -> None:
        from qabench.retrieval.bm25 import compiled

        self.postings = postings
        self._search, self._search_all, self._fill_row = compiled.search, compiled.search_all, compiled.fill
        size, terms = postings.size, len(postings.base)
        self._frequent = np.diff(postings.starts) * compiled.SHARE >= size
        rows = min(MOST_ROWS, MOST_BYTES // size, int(self._frequent.sum())) if size > compiled.SMALL else 0
        self._rows = np.full(terms, MISSING, dtype=np.int16)
        self._values = np.zeros((rows, size), dtype=np.uint8)  # only rows in use take memory
        places = np.zeros((rows, (size >> compiled.PARTS) + 2), dtype=np.int64)
        unit = max(
            postings.highest[self._frequent].max(initial=0) / compiled.LEVELS,
            postings.highest.max() / compiled.RARE_LEVELS,
        )
        arrays = postings.starts, postings.documents, postings.weights, postings.base, postings.highest, self._rows
        self._arrays = (*arrays, self._values, places)
        unit = np.float64(unit or 1.0).view(np.int64)
        numbers = [*map(_address, self._arrays), terms, len(postings.documents), size, rows, unit]
        self._header = np.array(numbers, dtype=np.int64)
        self._address = _address(self._header)
        self._best = Best()
        self._used = 0
        self._lock = threading.Lock()

    def top(self, terms: Sequence[int], k: int, mask: Mask | None) -> tuple[list[int], list[float]]:
        """Return the positions and scores of the k best documents; k is at most the number of documents in ``mask``."""
        numbers = array.array("q", terms)
        best = self._best
        if k > best.k:
            best.resize(k)
        arguments = (numbers.buffer_info()[0], len(numbers), _address(mask), k, *best.addresses)
        if self._search(self._address, *arguments) == MISSING:
            self._fill(terms)
            self._search(self._address, *arguments)
        return best.positions[:k].tolist(), best.scores[:k].tolist()

    def top_all(
        self, terms: Array, ends: Array, k: int, mask: Mask | None, workers: int | None
    ) -> tuple[list[list[int]], list[list[float]]]:
        """Return the results of ``top`` for many queries, which threads share.

        Args:
            terms: the terms of all queries, one after the other; int64.
            ends: the start of each query in ``terms``, and the end of the last; int64.
            k: see ``top``.
            mask: see ``top``.
            workers: threads; None for one per processor if there are many queries.
        """
        size = len(ends) - 1
        self._fill(np.unique(terms))
        positions, scores = np.empty((size, k), dtype=np.int64), np.empty((size, k))
        queries = _address(terms), _address(ends)
        options = _address(mask), k, _address(positions), _address(scores)

        def run(first: int, last: int) -> None:
            self._search_all(self._address, *queries, first, last, *options)

        workers = workers or min(len(os.sched_getaffinity(0)), -(-size // QUERIES_PER_THREAD))
        if workers <= 1:
            run(0, size)
        else:
            firsts = list(range(0, size, QUERIES_PER_THREAD))
            with ThreadPoolExecutor(workers) as threads:
                list(threads.map(run, firsts, [*firsts[1:], size]))
        return positions.tolist(), scores.tolist()

    def _fill(self, terms: Sequence[int] | Array) -> None:
        """Compute the bytes of frequent terms that have none yet."""
        with self._lock:
            for term in terms:
                if self._frequent[term] and len(self._values) and self._rows[term] == MISSING:
                    row = self._used if self._used < len(self._values) else FULL
                    if row != FULL:
                        self._fill_row(self._address, term, row)
                        self._used += 1
                    self._rows[term] = row  # last: from now on, other threads use it


def _address(values: Array | None) -> int:
    return 0 if values is None else int(values.ctypes.data)


class InvertedScorer:
    """The inverted index, searched by compiled code if numba is installed (extra ``fast``)."""

    def __init__(self, postings: Postings, vocabulary: dict[str, int]) -> None:
        self.postings = postings
        self.vocabulary = vocabulary
        self._compiled: Compiled | None = None
        self._queries = 0  # so far

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_compiled": None}

    def scores(self, terms: Sequence[str]) -> Floats:
        """Return the score of every document."""
        return self.postings.scores(self._numbers(terms))

    def top(self, terms: Sequence[str], k: int, mask: Mask | None) -> Results:
        """Return the k best documents in ``mask`` (None for all documents)."""
        numbers = self._numbers(terms)
        k = min(k, self.postings.size if mask is None else int(np.count_nonzero(mask)))
        if k == 0:
            return [], []
        compiled = self._compiled or self._compile(1)
        if compiled is None:
            return self.postings.top(numbers, k, mask)
        return compiled.top(numbers, k, mask)

    def top_all(
        self, terms: Array, ends: Array, names: Sequence[str | None], k: int, mask: Mask | None, workers: int | None
    ) -> list[Results]:
        """Call ``top`` for many queries.

        Args:
            terms: the terms of all queries, one after the other, as places in ``names``.
            ends: the start of each query in ``terms``, and the end of the last.
            names: the distinct terms; None for a stop word.
            k: see ``top``.
            mask: see ``top``.
            workers: threads; see ``Compiled.top_all``.
        """
        k = min(k, self.postings.size if mask is None else int(np.count_nonzero(mask)))
        if k == 0:
            return [([], [])] * (len(ends) - 1)
        get = self.vocabulary.get
        numbers = np.array([-1 if name is None or (n := get(name)) is None else n for name in names] or [-1])
        terms = numbers[terms] if len(terms) else np.empty(0, dtype=np.int64)
        present = terms >= 0
        ends = np.concatenate(([0], np.cumsum(present)))[ends]
        terms = terms[present]
        compiled = self._compiled or self._compile(len(ends) - 1)
        if compiled is not None:
            return list(zip(*compiled.top_all(terms, ends, k, mask, workers), strict=True))
        bounds = zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)
        return [self.postings.top(terms[start:end].tolist(), k, mask) for start, end in bounds]

    def _numbers(self, terms: Sequence[str]) -> list[int]:
        get = self.vocabulary.get
        return [number for term in terms if (number := get(term)) is not None]

    def _compile(self, queries: int) -> Compiled | None:
        """Return the compiled search; None without numba, or for the first queries of a small collection."""
        self._queries += queries
        if self.postings.size <= SMALL and self._queries <= FEW_QUERIES and "numba" not in sys.modules:
            return None
        try:
            self._compiled = Compiled(self.postings)
        except (ImportError, RuntimeError):
            return None
        return self._compiled


class RankBm25Scorer:
    """Scores from the package rank_bm25, which FanOutQA's official retriever uses."""

    def __init__(self, documents: Sequence[Sequence[str]], parameters: Parameters) -> None:
        method = parameters.method
        if method not in RANK_BM25:
            allowed = ", ".join(RANK_BM25)
            raise InputError(f"the backend rank_bm25 does not support the method {method!r}; allowed: {allowed}")
        try:
            import rank_bm25
        except ImportError:
            raise MissingExtra("the backend rank_bm25 is not installed: pip install 'qabench[retrieval]'") from None
        own = {"epsilon": parameters.epsilon} if method == "okapi" else {"delta": parameters.delta}
        self._bm25 = getattr(rank_bm25, RANK_BM25[method])(documents, k1=parameters.k1, b=parameters.b, **own)

    def scores(self, terms: Sequence[str]) -> Floats:
        """Return the score of every document."""
        return np.asarray(self._bm25.get_scores(terms), dtype=np.float64)

    def top(self, terms: Sequence[str], k: int, mask: Mask | None) -> Results:
        """Return the k best documents in ``mask`` (None for all documents)."""
        return top(self.scores(terms), k, mask)
