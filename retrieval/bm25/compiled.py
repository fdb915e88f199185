"""The search of a BM25 index, compiled by numba (extra ``fast``). The module can only be imported with numba.

The k best documents and their scores are those of ``exhaustive``, to the last bit. Small collections are scored as a
whole. In larger ones, an upper bound of every document's score is computed in 16-bit integers, which is much faster
than scores, and only the few documents whose bound is high enough are scored.

**Bounds.** The gain of a document is its score minus that of a document without any term of the query. A query term
adds ``times * (weight - base)`` to it, where the query has the term ``times`` times. Gains are never below 0 (queries
with a negative idf are scored exhaustively). ``unit`` is a gain, the same for all terms of the index. The ``total`` of
a document is the sum, over the query's terms, of the gain in units, rounded down, plus 1: more than the gain, and at
most ``n`` more for a query of n terms with repetitions.

**Candidates.** Let ``best`` be the k-th highest total. At least k documents gain ``best - n`` units or more. A document
whose total is below that gains at least one unit less, and cannot be among the k best. All others are scored.

**Rounding.** The scores are sums of 64 bits in the query's order, as in ``rank_bm25``, so they can be off by ``n``
halves of a unit in the last place of the largest sum. Four times that must be less than ``unit``, or else all documents
are scored, as they are if the totals could exceed 16 bits or if scoring the candidates takes longer.

**Frequent terms**, in at least one of 16 documents, have a byte per document: the addend to the total, computed when a
query first has the term. Adding bytes is vectorized. The postings of other terms are read.

**Calls.** Arrays are passed as addresses: numba takes about 1 microsecond to unpack an array argument. ``Compiled``
in ``scorers`` keeps the arrays alive.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numba
import numpy as np
from numba import carray, types
from numba.extending import intrinsic

from qabench.retrieval.bm25.exhaustive import Array, Floats, Mask

Function = TypeVar("Function", bound=Callable[..., Any])

SMALL = 1000  # documents; fewer are scored exhaustively
SHARE = 16  # a term is frequent if at least one of so many documents contains it
LEVELS, RARE_LEVELS = 254, 1024  # units in the highest gain of a frequent term, and of any term, at most
MISSING, UNBOUNDED = -1, -2  # results of ``_pruned``: a frequent term without bytes, and no useful bounds
BLOCK, STRIDE = 4096, 128  # documents whose totals are computed, and compared with the bound, together
LOOKUP_COST = 30  # of scoring a document for a term, in postings read
PARTS = 6  # documents in a part of a row, as a power of 2

# Compiled at the first call, and then kept in numba's cache on the disk.
compiled: Callable[[Function], Function] = numba.njit(cache=True, nogil=True)


@intrinsic  # type: ignore[untyped-decorator]
def _pointer(context: Any, address: Any, like: Any) -> Any:
    """Convert an address to a pointer to values of the type of ``like``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

    return types.CPointer(like)(address, like), generate


class Index(NamedTuple):
    """The arrays of ``Postings``, and the bytes of frequent terms.

    Attributes:
        rows: the row of each term in ``values``; negative: none.
        values: the addend to the total for each row and document.
        places: for each row, the place in the postings of the first document of each part, and the end of the last.
        unit: see the module.
    """

    starts: Array
    documents: Array
    weights: Array
    base: Floats
    highest: Floats
    rows: Array
    values: Array
    places: Array
    unit: float


@compiled
def _sift(scores: Array, positions: Array, size: int, score: float, position: int) -> None:
    """Replace the top of a heap: the lowest score, and of equal scores the highest position."""
    i = 0
    while 2 * i + 1 < size:
        child = 2 * i + 1
        if child + 1 < size:
            a, b = scores[child], scores[child + 1]
            child += b < a or (b == a and positions[child + 1] > positions[child])
        if scores[child] > score or (scores[child] == score and positions[child] < position):
            break
        scores[i], positions[i] = scores[child], positions[child]
        i = child
    scores[i], positions[i] = score, position


@compiled
def _best(totals: Floats, documents: Array, allowed: Mask, positions: Array, scores: Floats) -> None:
    """Find the best documents. The length of ``documents`` is 0 if they are all documents, by position."""
    scores[:] = -np.inf
    positions[:] = 0
    for j in range(len(totals)):
        if totals[j] > scores[0]:
            document = documents[j] if len(documents) else j
            if len(allowed) == 0 or allowed[document]:
                _sift(scores, positions, len(scores), totals[j], document)
    for last in range(len(scores) - 1, 0, -1):  # sort the heap
        score, position = scores[last], positions[last]
        scores[last], positions[last] = scores[0], positions[0]
        _sift(scores, positions, last, score, position)


@compiled
def _exhaustive(index: Index, terms: Array, size: int) -> Floats:
    """Score all documents, term by term in the query's order."""
    sums, spare = np.zeros(size), np.empty(size)
    for term in terms:
        base = index.base[term]
        start, end = index.starts[term], index.starts[term + 1]
        if base == 0:
            for place in range(start, end):
                sums[index.documents[place]] += index.weights[place]
        else:
            for document in range(size):
                spare[document] = sums[document] + base
            for place in range(start, end):
                document = index.documents[place]
                spare[document] = sums[document] + index.weights[place]
            sums, spare = spare, sums
    return sums


@compiled
def _pruned(index: Index, sequence: Array, allowed: Mask, size: int, positions: Array, scores: Floats) -> int:
    """Find the best documents as the module's docstring says. Returns 0, ``MISSING`` or ``UNBOUNDED``."""
    n = len(sequence)
    places, terms = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)  # of each distinct term
    times = np.zeros(n, dtype=np.int64)
    distinct, postings, largest, most = 0, size, 0.0, 1.0 * n
    for i in range(n):
        term, place = sequence[i], 0
        while place < distinct and terms[place] != term:
            place += 1
        if place == distinct:
            terms[place] = term
            distinct += 1
            frequency = index.starts[term + 1] - index.starts[term]
            postings += frequency
            if index.rows[term] == MISSING and frequency * SHARE >= size and len(index.values):
                return MISSING
        places[i] = place
        times[place] += 1
        if index.highest[term] < 0:
            return UNBOUNDED
        largest += abs(index.base[term]) + index.highest[term]
        most += index.highest[term] / index.unit
    if most > 65535 or not 4 * (n + 2) * 2.0**-53 * largest < index.unit:
        return UNBOUNDED
    terms, times = terms[:distinct], times[:distinct]
    limit = (postings if n else 0) // (LOOKUP_COST * max(1, distinct))
    near = _candidates(index, terms, times, n, allowed, size, len(scores), limit)
    if len(near) < len(scores):
        return UNBOUNDED
    addends = np.empty((distinct, len(near)))
    for t in range(distinct):
        _look_up(index, terms[t], near, addends[t])
    sums = np.zeros(len(near))
    for row in places:
        sums += addends[row]
    _best(sums, near, allowed[:0], positions, scores)
    return 0


@compiled
def _candidates(
    index: Index, terms: Array, times: Array, n: int, allowed: Mask, size: int, k: int, limit: int
) -> Array:
    """Return the documents that can be among the k best, in ascending order; none if they are more than ``limit``."""
    rare = np.array([t for t in range(len(terms)) if index.rows[terms[t]] < 0], dtype=np.int64)
    frequent = np.array([t for t in range(len(terms)) if index.rows[terms[t]] >= 0], dtype=np.int64)
    next_places = index.starts[terms]
    totals = np.empty(BLOCK, dtype=np.uint16)
    heap, items = np.full(k, -1.0), np.zeros(k, dtype=np.int64)
    capacity = limit + BLOCK
    near, bounds = np.empty(capacity, dtype=np.int64), np.empty(capacity, dtype=np.uint16)
    count, bound = 0, 0
    for start in range(0, size, BLOCK):
        width = min(BLOCK, size - start)
        totals[:] = 0
        for t in frequent:
            _add_bytes(totals[:width], index.values[index.rows[terms[t]]][start : start + width], times[t])
        for t in rare:
            term, place = terms[t], next_places[t]
            end, base, scale = index.starts[term + 1], index.base[term], times[t] / index.unit
            while place < end and index.documents[place] < start + width:
                totals[index.documents[place] - start] += np.uint16((index.weights[place] - base) * scale + 1)
                place += 1
            next_places[t] = place
        for first in range(0, width, STRIDE):
            last = min(first + STRIDE, width)
            if bound > _highest(totals[first:last]):
                continue
            for j in range(first, last):
                if totals[j] < bound or (len(allowed) and not allowed[start + j]):
                    continue
                near[count], bounds[count] = start + j, totals[j]
                count += 1
                if totals[j] > heap[0]:
                    _sift(heap, items, k, float(totals[j]), start + j)
                    bound = max(0, int(heap[0]) - n)
        if count > limit or start + BLOCK >= size:
            remaining = 0
            for j in range(count):
                near[remaining], bounds[remaining] = near[j], bounds[j]
                remaining += bounds[j] >= bound
            count = remaining
            if count > limit:
                return near[:0]
    return near[:count]


@compiled
def _add_bytes(totals: Array, values: Array, factor: int) -> None:
    for j in range(len(totals)):
        totals[j] += np.uint16(factor * values[j])


@compiled
def _highest(totals: Array) -> int:
    """Return the highest total; without branches, so that the loop is vectorized."""
    highest = np.uint16(0)
    for j in range(len(totals)):
        highest = max(highest, totals[j])
    return int(highest)


@compiled
def _look_up(index: Index, term: int, near: Array, addends: Floats) -> None:
    """Compute what a term adds to the scores of documents, which ascend: its weight, or ``base`` if it is not there."""
    addends[:] = index.base[term]
    row, start, end = index.rows[term], index.starts[term], index.starts[term + 1]
    for j in range(len(near)):
        if row >= 0:
            if index.values[row, near[j]] == 0:
                continue
            part = near[j] >> PARTS
            start, end = index.places[row, part], index.places[row, part + 1]
        place, width = start, end - start
        while width > 1:  # without branches, which the processor cannot predict
            half = width >> 1
            place += half * (index.documents[place + half - 1] < near[j])
            width -= half
        # One posting is left: the first one that is not below the document, or the last one.
        if width and index.documents[place] == near[j]:
            addends[j] = index.weights[place]
        start = place


@compiled
def _index_at(header: int) -> Index:
    """Return the arrays whose addresses and sizes are at ``header``; see ``Compiled``."""
    at = carray(_pointer(header, np.int64(0)), 13)
    terms, postings, size, rows = at[8], at[9], at[10], at[11]
    return Index(
        carray(_pointer(at[0], np.int64(0)), terms + 1),
        carray(_pointer(at[1], np.int32(0)), postings),
        carray(_pointer(at[2], np.float64(0)), postings),
        carray(_pointer(at[3], np.float64(0)), terms),
        carray(_pointer(at[4], np.float64(0)), terms),
        carray(_pointer(at[5], np.int16(0)), terms),
        carray(_pointer(at[6], np.uint8(0)), (rows, size)),
        carray(_pointer(at[7], np.int64(0)), (rows, (size >> PARTS) + 2)),
        carray(_pointer(header, np.float64(0)), 13)[12],
    )


# --- the functions that Python calls, with addresses


@compiled
def fill(header: int, term: int, row: int) -> None:
    """Compute the bytes of a frequent term."""
    index = _index_at(header)
    start, end, base = index.starts[term], index.starts[term + 1], index.base[term]
    places = index.places[row]
    part = 0
    for place in range(start, end):
        document = index.documents[place]
        index.values[row, document] = np.uint8((index.weights[place] - base) / index.unit + 1)
        while part <= document >> PARTS:
            places[part] = place
            part += 1
    places[part:] = end


@compiled
def search(header: int, terms: int, count: int, mask: int, k: int, positions: int, scores: int) -> int:
    """Search for one query.

    Args:
        header: the address of the index.
        terms: the address of the query's terms; int64.
        count: how many terms.
        mask: the address of a boolean for each document; 0 allows all.
        k: how many documents; at most as many as are allowed.
        positions: the address of the result; int64.
        scores: the address of the result; float64.

    Returns:
        0, or ``MISSING`` if the bytes of a frequent term must be computed first.
    """
    index = _index_at(header)
    size = carray(_pointer(header, np.int64(0)), 13)[10]
    sequence = carray(_pointer(terms, np.int64(0)), count)
    allowed = carray(_pointer(mask, np.bool_(0)), size if mask else 0)
    best, best_scores = carray(_pointer(positions, np.int64(0)), k), carray(_pointer(scores, np.float64(0)), k)
    if size > SMALL:
        result = _pruned(index, sequence, allowed, size, best, best_scores)
        if result != UNBOUNDED:
            return result
    _best(_exhaustive(index, sequence, size), sequence[:0], allowed, best, best_scores)
    return 0


@compiled
def search_all(
    header: int, terms: int, ends: int, first: int, last: int, mask: int, k: int, positions: int, scores: int
) -> int:
    """Search for the queries from ``first`` to before ``last``; see ``search``.

    The terms of query i are those from ``ends[i]`` to before ``ends[i + 1]``.
    """
    bounds = carray(_pointer(ends, np.int64(0)), last + 1)
    for i in range(first, last):
        begin, offset = bounds[i], 8 * i * k
        search(header, terms + 8 * begin, bounds[i + 1] - begin, mask, k, positions + offset, scores + offset)
    return 0
