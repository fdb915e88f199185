"""What scores documents: the inverted index, or, for comparison, the package ``rank_bm25``."""

from __future__ import annotations

import array
import os
import sys
import threading
from collections.abc import Iterable, Sequence
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


class Vocabulary(Protocol):
    """The numbers of terms."""

    def get(self, term: str) -> int | None:
        """Return the number of a term, or None if no document contains it."""

    def items(self) -> Iterable[tuple[str, int]]:
        """Return all terms with their numbers."""


class Scorer(Protocol):
    """Scores documents for the terms of a query, in the query's order and with repetitions."""

    def scores(self, terms: Sequence[str]) -> Floats:
        """Return the score of every document."""

    def top(self, terms: Sequence[str], k: int, mask: Mask | None) -> Results:
        """Return the k best documents in ``mask`` (None for all documents)."""


class Memory(threading.local):
    """Arrays that a thread's searches reuse: allocating them takes longer than a search.

    ``sums`` are zeros between searches; ``totals`` are for small collections; ``positions`` and ``scores`` are results.
    """

    def __init__(self, size: int) -> None:
        small = size <= SMALL
        self.sums = np.zeros(0 if small else size, dtype=np.float32)
        self.touched = np.empty(0 if small else size + 1, dtype=np.int32)
        self.totals = np.empty(2 * size if small else 0)
        self.header = _addresses(self.sums, self.touched, self.totals)
        self.address = _address(self.header)
        self.resize(10)

    def resize(self, k: int) -> None:
        """Allocate results for k documents."""
        self.k = k
        self.positions, self.scores = np.empty(k, dtype=np.int64), np.empty(k)
        self.results = _address(self.positions), _address(self.scores)


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
        self._share = compiled.SHARE
        size = postings.size
        rows = min(MOST_ROWS, MOST_BYTES // size) if size > SMALL else 0
        self._rows = np.full(len(postings.base), MISSING, dtype=np.int16)
        self._values = np.zeros((rows, size), dtype=np.uint8)  # only rows in use take memory
        self._steps = np.zeros(rows)
        self._places = np.zeros((rows, -(-size // 64), 2), dtype=np.int64)
        arrays: tuple[Any, ...] = (
            postings.starts,
            postings.documents,
            postings.weights,
            postings.base,
            postings.highest,
            self._rows,
        )
        arrays += (self._values, self._steps, self._places)
        self._header = np.concatenate(
            (_addresses(*arrays), [len(postings.base), len(postings.documents), size, rows])
        ).astype(np.int64)
        self._address = _address(self._header)
        self._like = postings.weights.dtype.type(0)
        if postings.weights.dtype == np.float64:
            self._like = 0.0
        self._memory = Memory(size)
        self._used = 0
        self._lock = threading.Lock()

    def top(self, terms: Sequence[int], k: int, mask: Mask | None, among: int) -> tuple[list[int], list[float]]:
        """Return the positions and scores of the k best documents; k is at most ``among``, the number in ``mask``."""
        numbers = array.array("q", terms)
        memory = self._memory
        if k > memory.k:
            memory.resize(k)
        arguments = (numbers.buffer_info()[0], len(numbers), _address(mask), among, k, *memory.results)
        if self._search(self._address, memory.address, *arguments, self._like) == MISSING:
            self._fill(terms)
            self._search(self._address, memory.address, *arguments, self._like)
        return memory.positions[:k].tolist(), memory.scores[:k].tolist()

    def top_all(
        self, terms: Array, ends: Array, k: int, mask: Mask | None, among: int, workers: int | None
    ) -> tuple[list[list[int]], list[list[float]]]:
        """Return the results of ``top`` for many queries, which threads share.

        Args:
            terms: the terms of all queries, one after the other; int64.
            ends: the start of each query in ``terms``, and the end of the last; int64.
            k: see ``top``.
            mask: see ``top``.
            among: see ``top``.
            workers: threads; None for one per processor if there are many queries.
        """
        size = len(ends) - 1
        self._fill(np.unique(terms))
        positions, scores = np.empty((size, k), dtype=np.int64), np.empty((size, k))
        queries = _address(terms), _address(ends)
        options = _address(mask), among, k, _address(positions), _address(scores), self._like

        def run(first: int, last: int) -> None:
            self._search_all(self._address, self._memory.address, *queries, first, last, *options)

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
        starts, size = self.postings.starts, self.postings.size
        with self._lock:
            for term in terms:
                if len(self._values) and self._rows[term] == MISSING:
                    if (starts[term + 1] - starts[term]) * self._share < size:
                        continue
                    row = self._used if self._used < len(self._values) else FULL
                    if row != FULL:
                        self._fill_row(self._address, term, row, self._like)
                        self._used += 1
                    self._rows[term] = row  # last: from now on, other threads use it


def _address(values: Array | None) -> int:
    return 0 if values is None else int(values.ctypes.data)


def _addresses(*arrays: Array) -> Array:
    return np.array([_address(values) for values in arrays], dtype=np.int64)


class InvertedScorer:
    """The inverted index, searched by compiled code if numba is installed (extra ``fast``)."""

    def __init__(self, postings: Postings, vocabulary: Vocabulary) -> None:
        self.postings = postings
        self.vocabulary = vocabulary
        self._compiled: Compiled | None = None
        self._queries = 0  # so far

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_compiled": None}

    def scores(self, terms: Sequence[str]) -> Floats:
        """Return the score of every document."""
        numbers = self._numbers(terms)
        self.postings.check(numbers)
        return self.postings.scores(numbers)

    def top(self, terms: Sequence[str], k: int, mask: Mask | None) -> Results:
        """Return the k best documents in ``mask`` (None for all documents)."""
        numbers = self._numbers(terms)
        postings = self.postings
        postings.check(numbers)
        allowed = postings.size if mask is None else int(np.count_nonzero(mask))
        k = min(k, allowed)
        if k == 0:
            return [], []
        compiled = self._compiled or self._compile(1)
        if compiled is None:
            return postings.top(numbers, k, mask)
        return compiled.top(numbers, k, mask, allowed)

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
        allowed = self.postings.size if mask is None else int(np.count_nonzero(mask))
        k = min(k, allowed)
        if k == 0:
            return [([], [])] * (len(ends) - 1)
        self.postings.check_source()
        get = self.vocabulary.get
        numbers = np.array([-1 if name is None or (n := get(name)) is None else n for name in names] or [-1])
        self.postings.check(numbers[numbers >= 0].tolist())
        terms = numbers[terms] if len(terms) else np.empty(0, dtype=np.int64)
        present = terms >= 0
        ends = np.concatenate(([0], np.cumsum(present)))[ends]
        terms = terms[present]
        compiled = self._compiled or self._compile(len(ends) - 1)
        if compiled is not None:
            return list(zip(*compiled.top_all(terms, ends, k, mask, allowed, workers), strict=True))
        bounds = zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)
        return [self.postings.top(terms[start:end].tolist(), k, mask) for start, end in bounds]

    def _numbers(self, terms: Sequence[str]) -> list[int]:
        self.postings.check_source()
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
