"""Postings by term, and their search in NumPy.

The module ``compiled`` implements the same search for numba (extra ``fast``).

Both return the k documents and scores that scoring all documents would give, to the last bit.
Small collections are scored as a whole. In larger ones, an upper bound of every document's score is
computed in 16-bit integers, which is much faster than computing scores, and only the few documents
whose bound is high enough are scored.

**Bounds.** The gain of a document is its score minus the score of a document without any term of
the query. A query term adds ``times * (weight - base)`` to it, where the query has the term
``times`` times. Gains are never below 0 (queries with a negative idf are scored exhaustively).
``unit`` is an amount of gain, the same for all terms of the index. For each query term in a
document, the gain in units is rounded down and increased by 1. The sum is the document's ``total``:
at least its gain in units, and at most ``n`` more for a query of n terms (counting repetitions).

**Candidates.** Let ``best`` be the k-th highest total. At least k documents gain ``best - n`` units
or more. A document whose total is below that gains at least one unit less, and cannot be among the
k best. All others are scored.

**Rounding.** The scores are sums of 64-bit floats in the query's order, as in ``rank_bm25``, so
their rounding errors can add up to ``n / 2`` ulps (units in the last place) of the largest sum. If
four times that is not less than ``unit``, all documents are scored. All documents are also scored
if the totals could exceed 16 bits, or if there are too many candidates.

**Frequent terms.** A term is frequent if at least one in 16 documents contains it. Such a term has
a row with one value per document, computed when a query first has the term: the addend to the score
in small collections, and the addend to the total, one byte, in larger ones. Adding rows is
vectorized. For all other terms, the postings are read.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Floats = np.ndarray[Any, np.dtype[np.float64]]
Ints = np.ndarray[Any, np.dtype[np.integer[Any]]]
Mask = np.ndarray[Any, np.dtype[np.bool_]]
# The numbers and scores of a query's best documents, best first. Documents are numbered without
# gaps, unlike the positions of ``BM25Index``.
Results = tuple[list[int], list[float]]
# The numbers and scores for many queries, as arrays with one row per query.
BatchResults = tuple[Array, Array]
# A function that returns the terms of a range of queries, and where each query's terms end. See
# ``Search.top_all``.
Part = Callable[[int, int], tuple[Array, Array]]

# For up to 2,000 documents, scoring all of them takes half as long as computing bounds.
SMALL = 2000
# A term is frequent if at least one in 16 documents contains it.
SHARE = 16
# The highest gain, in units, of a frequent term (a byte has to hold it) and of any term.
LEVELS = 254
RARE_LEVELS = 1024
# The rows of frequent terms are limited in number, and in total size (bytes).
MOST_ROWS = 256
MOST_BYTES = 1 << 28
# These values in place of a row's number mean that the term was in no query yet (MISSING), or that
# it gets no row because it is rare or all rows are used (FULL).
MISSING = -1
FULL = -2
MOST_TOTAL = np.iinfo(np.uint16).max
# Half a unit in the last place, as a relative error.
ROUNDING = 2.0**-53
# If more than one in 8 documents is a candidate, all documents are scored.
CANDIDATES = 8


@dataclass(frozen=True, slots=True)
class Postings:
    """A sparse matrix of documents and terms, stored term by term (compressed sparse columns).

    Attributes:
        starts: the start of each term's postings, and the end of the last. int64, terms + 1.
        documents: document numbers, ascending for each term. int32.
        weights: the addends of the term to the scores of these documents. float64.
        base: the addend of each term to the score of a document without it. float64, one per term.
        highest: an upper bound of each term's weights minus its base. float64, one per term.
        size: the number of documents.
        compute: a function that sets the weights of terms, called before their first use. None if
            all weights are set.
    """

    starts: Array
    documents: Array
    weights: Array
    base: Floats
    highest: Floats
    size: int
    compute: Callable[[Array], None] | None = None


class Search:
    """Searches postings with NumPy.

    A query is a list of term numbers, in the query's order and with repetitions.

    Attributes:
        rows: the row of each term in ``values``. Negative for a term without a row.
        small: whether the collection is so small that all documents are scored.
        values: the rows of frequent terms, see the module. float64 if ``small``, else uint8.
        unit: see the module.
        most_terms: for a query of n terms, only candidates are scored if ``n * (n + 2)`` is less
            than this. See Rounding in the module.
    """

    compiled = False

    def __init__(self, postings: Postings) -> None:
        self.postings = postings
        self.small = postings.size <= SMALL
        frequent = np.diff(postings.starts) * SHARE >= postings.size
        self.rows = np.full(len(frequent), MISSING, dtype=np.int16)
        count = min(MOST_ROWS, MOST_BYTES // postings.size, int(frequent.sum()))
        self.values = np.empty((count, postings.size), dtype=np.float64 if self.small else np.uint8)
        highest = postings.highest
        frequent_level = highest[frequent].max(initial=0) / LEVELS
        # Gains are divided by the unit, and all of them can be 0.
        self.unit = max(frequent_level, highest.max() / RARE_LEVELS) or 1.0
        largest = float((np.abs(postings.base) + highest).max())
        self.most_terms = 0.0
        if largest > 0 and highest.min() >= 0:
            self.most_terms = self.unit / (4 * ROUNDING * largest)
        self._used = 0
        self._lock = threading.Lock()

    def scores(self, terms: Sequence[int]) -> Floats:
        """Return the score of every document.

        The additions are in the same order as in ``rank_bm25``, so that two documents have equal
        scores either in both or in neither.
        """
        self.fill(terms)
        rows = self.rows[terms].tolist()
        bases = self.postings.base[terms].tolist()
        sums = np.zeros(self.postings.size)
        for row, base, documents, weights in zip(rows, bases, *self._parts(terms), strict=True):
            if self.small and row >= 0:
                sums += self.values[row]
                continue
            # A document gets either the weight or the base. The sums with the weight are computed
            # first, because the base is then added to all documents.
            raised = sums[documents] + weights
            if base:
                sums += base
            sums[documents] = raised
        return sums

    def top(self, terms: Sequence[int], k: int, mask: Mask | None) -> Results:
        """Return the numbers and scores of the k best documents, best first.

        Args:
            terms: the numbers of the query's terms, with repetitions.
            k: how many documents, at most as many as ``mask`` allows.
            mask: whether each document may be returned. None if all may.
        """
        self.fill(terms)
        near = None if self.small else self._candidates(terms, k, mask)
        if near is None:
            return top(self.scores(terms), k, mask)
        best, scores = top(self._scores_of(terms, near), k)
        return near[best].tolist(), scores

    def top_all(self, part: Part, size: int, k: int, mask: Mask | None) -> BatchResults:
        """Return the results of ``top`` for many queries.

        Args:
            part: a function of two numbers, first and last. It returns the terms of the queries
                from ``first`` to ``last - 1``, and where each query's terms start and the last
                query's terms end.
            size: the number of queries.
            k: see ``top``.
            mask: see ``top``.
        """
        terms, ends = part(0, size)
        positions = np.empty((size, k), dtype=np.int64)
        scores = np.empty((size, k))
        for row, (start, end) in enumerate(pairwise(ends.tolist())):
            positions[row], scores[row] = self.top(terms[start:end].tolist(), k, mask)
        return positions, scores

    def have_a_term(self, terms: Sequence[int], documents: Array) -> Mask:
        """Return whether each of these documents has a term of the query."""
        matches = np.zeros(len(documents), dtype=bool)
        for part in self._parts(terms)[0]:
            places = np.minimum(part.searchsorted(documents), len(part) - 1)
            matches |= part[places] == documents
        return matches

    def top_matching(self, terms: Sequence[int], k: int, mask: Mask | None) -> Results:
        """Return the numbers and scores of the k best documents with a term of the query.

        Args:
            terms: see ``top``.
            k: see ``top``. May be higher than the number of documents.
            mask: see ``top``.
        """
        if not terms:
            return [], []
        self.fill(terms)
        near = np.unique(np.concatenate(self._parts(terms)[0]))
        if mask is not None:
            near = near[mask[near]]
        if not len(near):
            return [], []
        best, scores = top(self._scores_of(terms, near), k)
        return near[best].tolist(), scores

    def fill(self, terms: Sequence[int] | Array) -> None:
        """Compute weights and rows of the terms that no query had before."""
        if MISSING not in self.rows[terms].tolist():
            return
        with self._lock:
            missing = np.unique(terms)
            missing = missing[self.rows[missing] == MISSING]
            if self.postings.compute:
                self.postings.compute(missing)
            starts = self.postings.starts
            frequencies = starts[missing + 1] - starts[missing]
            frequent = missing[frequencies * SHARE >= self.postings.size]
            for term in frequent[: len(self.values) - self._used].tolist():
                self._fill_row(term, self._used)
                self.rows[term] = self._used
                self._used += 1
            # ``self.rows`` is set last: once it is set, other threads use the weights and rows.
            self.rows[missing[self.rows[missing] == MISSING]] = FULL

    def _fill_row(self, term: int, row: int) -> None:
        (documents,), (weights,) = self._parts([term])
        base = self.postings.base[term]
        if self.small:
            self.values[row] = base
            self.values[row, documents] = weights
        else:
            self.values[row] = 0
            self.values[row, documents] = (weights - base) / self.unit + 1

    def _candidates(self, terms: Sequence[int], k: int, mask: Mask | None) -> Array | None:
        """Return the documents that can be among the k best, or None if there are too many."""
        postings = self.postings
        n = len(terms)
        most = n + postings.highest[terms].sum() / self.unit
        if most > MOST_TOTAL or not n * (n + 2) < self.most_terms:
            return None

        # Add the bytes of frequent terms.
        totals = np.zeros(postings.size, dtype=np.uint16)
        rare = []
        for term, row in zip(terms, self.rows[terms].tolist(), strict=True):
            if row < 0:
                rare.append(term)
            else:
                totals += self.values[row]

        # Read the postings of rare terms.
        if rare:
            documents, weights = self._parts(rare)
            bases = np.repeat(postings.base[rare], list(map(len, weights)))
            gains = np.concatenate(weights) - bases
            units = (gains / self.unit + 1).astype(np.uint16)
            # ``totals[documents] += units`` would count only one of several terms of a document.
            np.add.at(totals, np.concatenate(documents), units)

        # A document whose total is below the k-th highest by more than n is not among the best.
        if mask is not None:
            totals *= mask
        bound = int(np.partition(totals, -k)[-k]) - n
        near = np.flatnonzero(totals >= bound)
        return near if len(near) * CANDIDATES <= postings.size else None

    def _scores_of(self, terms: Sequence[int], near: Array) -> Floats:
        """Return the scores of the documents with the ascending numbers ``near``."""
        postings = self.postings
        # searchsorted would copy ``documents`` if the numbers to find had another type.
        positions = near.astype(np.int32)
        numbers = np.array(terms)[:, None]
        documents, _ = self._parts(terms)
        places = np.array([part.searchsorted(positions) for part in documents])
        last_places = postings.starts[numbers + 1] - 1
        places = np.minimum(places + postings.starts[numbers], last_places)
        addends = np.where(
            postings.documents[places] == positions,
            postings.weights[places],
            postings.base[numbers],
        )
        # Unlike np.sum, this adds from first to last, as rank_bm25 does.
        return np.asarray(np.add.accumulate(addends)[-1])

    def _parts(self, terms: Sequence[int]) -> tuple[list[Array], list[Array]]:
        """Return the documents and the weights of each term's postings."""
        numbers = np.array(terms, dtype=np.int64)
        starts = self.postings.starts[numbers].tolist()
        ends = self.postings.starts[numbers + 1].tolist()
        parts = list(map(slice, starts, ends))
        documents = [self.postings.documents[part] for part in parts]
        weights = [self.postings.weights[part] for part in parts]
        return documents, weights


def top(scores: Floats, k: int, mask: Mask | None = None) -> Results:
    """Return the ``k`` best documents and their scores, best first, ties by position."""
    if mask is None:
        best = _best(scores, k)
    else:
        places = np.flatnonzero(mask)
        best = places[_best(scores[places], k)]
    return best.tolist(), scores[best].tolist()


def _best(scores: Floats, k: int) -> Array:
    if 4 * k < len(scores):
        place = len(scores) - k
        bound = np.partition(scores, place)[place]
        above = np.flatnonzero(scores > bound)
        level = np.flatnonzero(scores == bound)[: k - len(above)]
        return np.concatenate((above[np.argsort(-scores[above], kind="stable")], level))
    return np.argsort(-scores, kind="stable")[:k]
