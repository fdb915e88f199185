"""The search of a BM25 index, compiled by numba (extra ``fast``). The module can only be imported with numba.

The k best documents and their scores are those of ``exhaustive``, to the last bit. Small collections are scored as a
whole. In larger ones, pruning finds a few candidates, and only these are scored; its bounds are explained here.

**Gains.** The gain of a document is its score minus that of a document without any term of the query. The gain from a
term is ``times * (weight - base)``, where the query has the term ``times`` times. It is at least 0 (queries with a
negative idf are scored exhaustively) and at most ``times * highest``.

**Frequent terms** are in at least one of 32 documents. Their postings are hardly read: one byte per document, computed
when a query first has the term, says that the gain is at most ``byte * step`` and at least one ``step`` lower.
``most``, the sum of ``255 * step`` over the query's frequent terms, bounds what they add to any document.

**Rare terms** are read by descending gain. ``sums`` are the gains so far, and ``left[i]`` is the most that the terms
from the i-th on and the frequent terms can add. Three bounds decide:

1. ``bound``: at least k documents have this gain. It is the lowest sum of the k best documents of a term's postings,
   increased by at least what frequent and some unread terms add to these documents.
2. A document that was not seen gains at most ``left[i]``. Once this is below ``bound``, no unseen document can be among
   the k best, so reading stops. If the frequent terms alone can reach ``bound``, their bytes are scanned for documents
   that do (``_scan``), in 16-bit numbers that are rounded up.
3. A seen document gains at most its sum, plus what its bytes say, plus what the unread rare terms can add. Documents
   below ``bound`` are dropped: after the bytes (``_refine``), and after each unread term, which is looked up.

**Rounding.** Sums have 32 bits, because reading them takes most of the time. A sum of n numbers is off by at most n
halves of a unit in the last place (2^-24) of the largest sum. A document is dropped only if it is below ``bound`` by
``slack``, four times that, so that neither its error nor that of ``bound`` counts; the final scores are sums of 64 bits
in the query's order, as in ``rank_bm25``. If ``bound`` is not above ``slack``, documents without any term may be among
the k best, and all documents are scored.

**Calls.** Arrays are passed as addresses: numba takes about 1 microsecond to unpack an array argument. ``Compiled``
in ``scorers`` keeps the arrays alive, and each thread has memory of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numba
import numpy as np
from numba import carray, types
from numba.extending import intrinsic

from qabench.retrieval.bm25.exhaustive import Array, Floats, Mask

Function = TypeVar("Function", bound=Callable[..., Any])

SMALL = 4096  # documents; fewer are scored exhaustively
FEW_POSTINGS = 10_000  # of a query's terms; fewer are read in full
MOST_TERMS = 256  # of a query that is pruned
SHARE = 32  # a term is frequent if at least one of so many documents contains it
MISSING = -1  # in ``rows``: a term without bytes
BLOCK, STRIDE = 2048, 32  # documents whose bytes are added, and whose bounds are compared, together
WORTH_A_BOUND = 1000  # postings of a term; for fewer, reading them takes less time than computing a bound
LOOKUP_COST = 30  # the cost of looking up a document in a term's postings, in postings read
TINY = np.float32(1e-30)  # instead of 0, so that a document counts as seen; far below the differences of rounding
HALF_UNIT = 2.0**-24  # half a unit in the last place of a number of 32 bits

# Compiled at the first call, and then kept in numba's cache on the disk.
compiled: Callable[[Function], Function] = numba.njit(cache=True, nogil=True)


@intrinsic  # type: ignore[untyped-decorator]
def _pointer(context: Any, address: Any, like: Any) -> Any:
    """Convert an address to a pointer to values of the type of ``like``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

    return types.CPointer(like)(address, like), generate


@intrinsic  # type: ignore[untyped-decorator]
def _count_bits(context: Any, bits: Any) -> Any:
    """Count the bits of a number that are 1."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate


class Index(NamedTuple):
    """The arrays of ``Postings``, and the bytes of frequent terms.

    Attributes:
        rows: the row of each term in ``values``; negative: none.
        values: one byte for each row and document.
        steps: the difference of gains that is one unit of ``values``.
        places: for each row and 64 documents, the place in the postings of the first one that has the term, and one
            bit per document: whether it has the term.
    """

    starts: Array
    documents: Array
    weights: Array
    base: Floats
    highest: Floats
    rows: Array
    values: Array
    steps: Floats
    places: Array


class Query(NamedTuple):
    """A query. Arrays have one element per distinct term unless stated.

    Attributes:
        sequence: the terms in the query's order, as places in the other arrays.
        terms: the numbers of the terms in the index.
        times: how often the query has the term.
        gains: the highest gain from the term.
        rare: the places of the rare terms with a gain, highest gain first.
        rows: the rows of the frequent terms, the one with the widest range of gains first.
        steps: the step of each of these rows, times how often the query has the term.
        step: the sum of the steps.
        most: the most that all frequent terms can add to a document's gain.
        allowed: the documents that may be returned; an array of length 0 allows all.
    """

    sequence: Array
    terms: Array
    times: Array
    gains: Floats
    rare: Array
    rows: Array
    steps: Floats
    step: float
    most: float
    allowed: Mask


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
def _best_first(scores: Array, positions: Array) -> None:
    """Sort a heap by descending score and ascending position."""
    for last in range(len(scores) - 1, 0, -1):
        score, position = scores[last], positions[last]
        scores[last], positions[last] = scores[0], positions[0]
        _sift(scores, positions, last, score, position)


@compiled
def _exhaustive(
    index: Index, terms: Array, allowed: Mask, sums: Floats, spare: Floats, positions: Array, scores: Floats
) -> None:
    """Score all documents, term by term in the query's order, and find the best."""
    sums[:] = 0
    for term in terms:
        base = index.base[term]
        start, end = index.starts[term], index.starts[term + 1]
        if base == 0:
            for place in range(start, end):
                sums[index.documents[place]] += index.weights[place]
        else:
            for document in range(len(sums)):
                spare[document] = sums[document] + base
            for place in range(start, end):
                document = index.documents[place]
                spare[document] = sums[document] + index.weights[place]
            sums, spare = spare, sums
    scores[:] = -np.inf
    positions[:] = 0
    for document in range(len(sums)):
        if sums[document] > scores[0] and (len(allowed) == 0 or allowed[document]):
            _sift(scores, positions, len(scores), sums[document], document)
    _best_first(scores, positions)


@compiled
def _query(index: Index, terms: Array, allowed: Mask) -> tuple[Query, int]:
    """Prepare a query. The second value is ``MISSING`` if a frequent term has no bytes yet, else 0."""
    sequence, distinct = np.empty(len(terms), dtype=np.int64), np.empty(len(terms), dtype=np.int64)
    times = np.zeros(len(terms))
    size = 0
    for i in range(len(terms)):
        place = 0
        while place < size and distinct[place] != terms[i]:
            place += 1
        distinct[place] = terms[i]
        size += place == size
        sequence[i] = place
        times[place] += 1
    distinct, times = distinct[:size], times[:size]
    gains = times * index.highest[distinct]
    rare, rows = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
    steps = np.empty(size)
    count, missing = 0, 0
    for place in range(size):
        row = index.rows[distinct[place]]
        if row >= 0:
            i = place - count  # insertion sort
            step = times[place] * index.steps[row]
            while i > 0 and steps[i - 1] < step:
                steps[i], rows[i] = steps[i - 1], rows[i - 1]
                i -= 1
            steps[i], rows[i] = step, row
            continue
        frequency = index.starts[distinct[place] + 1] - index.starts[distinct[place]]
        if row == MISSING and len(index.values) and frequency * SHARE >= index.values.shape[1]:
            missing = MISSING
        i = count
        while i > 0 and gains[rare[i - 1]] < gains[place]:
            rare[i] = rare[i - 1]
            i -= 1
        rare[i] = place
        count += 1
    rows, steps = rows[: size - count], steps[: size - count]
    step = steps.sum()
    while count and gains[rare[count - 1]] <= 0:
        count -= 1
    query = Query(sequence, distinct, times, gains, rare[:count], rows, steps, step, 255 * step, allowed)
    return query, missing


@compiled
def _pruned(index: Index, query: Query, sums: Array, touched: Array, positions: Array, scores: Floats) -> bool:
    """Find the best documents as the module's docstring says; False if all documents must be scored."""
    k = len(scores)
    left = np.full(len(query.rare) + 1, query.most)
    for i in range(len(query.rare) - 1, -1, -1):
        left[i] = left[i + 1] + query.gains[query.rare[i]]
    largest = left[0] + np.abs(query.times * index.base[query.terms]).sum()
    slack = 4 * (len(query.sequence) + 2) * HALF_UNIT * largest
    first, count, bound = _read_terms(index, query, left, slack, k, sums, touched)
    if bound - left[first] > slack or not len(query.rows):
        near, bound = _refine(index, query, touched[:count], sums, k, bound, left[first] - query.most + slack)
    else:  # all rare terms were read
        near, bound = _scan(index, query, k, bound, slack, sums)
    heap, items = np.empty(k), np.empty(k, dtype=np.int64)
    for i in range(first, len(query.rare)):
        if len(near) <= 2 * k:
            break
        _look_up(index, query, query.rare[i], near, sums)
        heap[:] = -np.inf
        for document in near:
            if sums[document] > heap[0]:
                _sift(heap, items, k, float(sums[document]), document)
        bound = max(bound, heap[0] - query.step)
        near = near[sums[near] >= bound - (left[i + 1] - query.most) - slack]
    sums[touched[:count]] = 0
    if bound <= slack:
        return False
    _score(index, query, near, positions, scores)
    return True


@compiled
def _read_terms(
    index: Index, query: Query, left: Floats, slack: float, k: int, sums: Array, touched: Array
) -> tuple[int, int, float]:
    """Read rare terms until a document that was not seen can no longer be among the k best.

    Returns:
        The place in ``query.rare`` of the first term that was not read, the number of documents seen, and ``bound``.
    """
    count, bound = 0, -np.inf
    for i in range(len(query.rare)):
        t = query.rare[i]
        term, times = query.terms[t], query.times[t]
        start, end, base = index.starts[term], index.starts[term + 1], index.base[term]
        if count and end - start > WORTH_A_BOUND:
            bound = max(bound, _bound(index, query, i, k, sums, touched[:count]))
            if bound - left[i] > slack:
                return i, count, bound
        for place in range(start, end):
            document = index.documents[place]
            if len(query.allowed) and not query.allowed[document]:
                continue
            before = sums[document]
            touched[count] = document
            count += before == 0
            sums[document] = max(np.float32(before + times * (index.weights[place] - base)), TINY)
    return len(query.rare), count, max(bound, _bound(index, query, len(query.rare), k, sums, touched[:count]))


@compiled
def _bound(index: Index, query: Query, unread: int, k: int, sums: Array, touched: Array) -> float:
    """Return a gain that at least k of the documents that were seen have: the lowest of those with the highest sums."""
    if len(touched) < k:
        return -np.inf
    heap, promising = np.full(k, -np.inf), np.zeros(k, dtype=np.int64)
    for document in touched:
        if sums[document] > heap[0]:
            _sift(heap, promising, k, float(sums[document]), document)
    terms = query.rare[unread:]
    if len(terms):
        term = query.terms[terms[0]]
        if index.starts[term + 1] - index.starts[term] <= LOOKUP_COST * k * len(terms):
            terms = terms[:0]  # it is cheaper to read the next term
    totals = np.empty(k)
    for j in range(k):
        totals[j] = sums[promising[j]] - query.step
    for i in range(len(query.rows)):
        values, step = index.values[query.rows[i]], query.steps[i]
        for j in range(k):
            totals[j] += step * values[promising[j]]
    for t in terms:
        totals += query.times[t] * (_weights(index, query.terms[t], promising) - index.base[query.terms[t]])
    return float(totals.min())


@compiled
def _scan(index: Index, query: Query, k: int, bound: float, slack: float, sums: Array) -> tuple[Array, float]:
    """Find the documents, seen or not, that can be among the k best; see ``_refine``."""
    # What frequent terms add, in whole numbers of 16 bits, so that the loops are vectorized; rounded up.
    unit = max(255 * query.step / (65535 - 255 * len(query.steps)), 1e-300)
    factors = (query.steps / unit).astype(np.uint16) + np.uint16(1)
    error = query.step + 255 * len(factors) * unit  # an upper bound exceeds the gain by at most this
    size = index.values.shape[1]
    heap, items = np.full(k, -np.inf), np.empty(k, dtype=np.int64)
    totals, upper = np.empty(BLOCK, dtype=np.uint16), np.empty(BLOCK, dtype=np.float32)
    near, bounds, count = np.empty(size, dtype=np.int32), np.empty(size, dtype=np.float32), 0
    for start in range(0, size, BLOCK):
        width = min(BLOCK, size - start)
        totals[:] = 0
        for i in range(len(factors)):
            _add_scaled(totals[:width], index.values[query.rows[i]][start : start + width], factors[i])
        _add_sums(upper[:width], sums[start : start + width], totals, np.float32(unit))
        for first in range(0, width, STRIDE):
            if not _reaches(upper[first : min(first + STRIDE, width)], np.float32(bound - slack)):
                continue
            for j in range(first, min(first + STRIDE, width)):
                if upper[j] < bound - slack or (len(query.allowed) and not query.allowed[start + j]):
                    continue
                near[count], bounds[count] = start + j, upper[j]
                count += 1
                if upper[j] > heap[0]:
                    _sift(heap, items, k, float(upper[j]), start + j)
                    bound = max(bound, heap[0] - error)
    remaining = 0
    for j in range(count):
        near[remaining] = near[j]
        remaining += bounds[j] >= bound - slack
    return near[:remaining], bound


@compiled
def _add_scaled(totals: Array, values: Array, factor: int) -> None:
    for j in range(len(totals)):
        totals[j] += np.uint16(factor * values[j])


@compiled
def _add_sums(upper: Array, sums: Array, totals: Array, unit: np.float32) -> None:
    for j in range(len(upper)):
        upper[j] = sums[j] + unit * np.float32(totals[j])


@compiled
def _reaches(upper: Array, bound: np.float32) -> bool:
    """Return whether a number is at least ``bound``; without branches, so that the loop is vectorized."""
    reaches = 0
    for j in range(len(upper)):
        reaches |= upper[j] >= bound
    return reaches != 0


@compiled
def _refine(
    index: Index, query: Query, documents: Array, sums: Array, k: int, bound: float, rest: float
) -> tuple[Array, float]:
    """Add the most that frequent terms can add to the sums of documents that can still be among the k best.

    Args:
        index: the index.
        query: the query.
        documents: the documents that were seen.
        sums: the gains so far.
        k: how many documents are searched.
        bound: a gain that at least k documents have.
        rest: the most that unread rare terms can add, and rounding errors.

    Returns:
        The documents that remain, and a better bound.
    """
    near, totals = np.empty_like(documents), np.empty(len(documents))
    size = 0
    for document in documents:
        near[size], totals[size] = document, sums[document] + query.most
        size += totals[size] >= bound - rest
    for i in range(len(query.rows)):  # one row after another, without branches: the processor waits for memory less
        values, step = index.values[query.rows[i]], query.steps[i]
        remaining = 0
        for j in range(size):
            near[remaining], totals[remaining] = near[j], totals[j] - step * (255 - values[near[j]])
            remaining += totals[remaining] >= bound - rest
        size = remaining
    near, totals = near[:size], totals[:size]
    heap, items = np.full(k, -np.inf), np.empty(k, dtype=np.int64)
    for j in range(size):
        sums[near[j]] = max(np.float32(totals[j]), TINY)
        if totals[j] > heap[0]:
            _sift(heap, items, k, totals[j], near[j])
    bound = max(bound, heap[0] - query.step)
    return near[totals >= bound - rest], bound


@compiled
def _look_up(index: Index, query: Query, t: int, near: Array, sums: Array) -> None:
    """Add the gains from a rare term to the sums of documents."""
    term = query.terms[t]
    start, end, base = index.starts[term], index.starts[term + 1], index.base[term]
    if len(near) * LOOKUP_COST < end - start:
        weights = _weights(index, term, near)
        for j in range(len(near)):
            sums[near[j]] += query.times[t] * (weights[j] - base)
        return
    for place in range(start, end):
        document = index.documents[place]
        sums[document] += query.times[t] * (index.weights[place] - base) if sums[document] != 0 else 0


@compiled
def _weights(index: Index, term: int, near: Array) -> Floats:
    """Return what a term adds to the scores of documents: its weight, or ``base`` if it is not in a document."""
    weights = np.full(len(near), index.base[term])
    start, end, row = index.starts[term], index.starts[term + 1], index.rows[term]
    if row >= 0:
        places = index.places[row]
        for j in range(len(near)):
            first, bits = places[near[j] >> 6, 0], np.uint64(places[near[j] >> 6, 1])
            bit = np.uint64(1) << np.uint64(near[j] & 63)
            if bits & bit:
                weights[j] = index.weights[first + _count_bits(bits & (bit - np.uint64(1)))]
        return weights
    documents = index.documents[start:end]
    for j in range(len(near)):
        place, size = 0, len(documents)
        while size > 1:  # without branches, which the processor cannot predict
            half = size >> 1
            place += half * (documents[place + half - 1] < near[j])
            size -= half
        # One posting is left: the first one that is not below the document, or the last one.
        if documents[place] == near[j]:
            weights[j] = index.weights[start + place]
    return weights


@compiled
def _score(index: Index, query: Query, near: Array, positions: Array, scores: Floats) -> None:
    """Score candidates exactly, adding the terms in the query's order, and find the best."""
    addends = np.empty((len(query.terms), len(near)))
    for t in range(len(query.terms)):
        addends[t] = _weights(index, query.terms[t], near)
    totals = np.zeros(len(near))
    for t in query.sequence:
        totals += addends[t]
    scores[:] = -np.inf
    positions[:] = np.iinfo(np.int64).max
    for j in range(len(near)):
        if totals[j] > scores[0] or (totals[j] == scores[0] and near[j] < positions[0]):
            _sift(scores, positions, len(scores), totals[j], near[j])
    _best_first(scores, positions)


@compiled
def _fill(index: Index, term: int, row: int) -> None:
    """Compute the bytes of a frequent term."""
    start, end, base = index.starts[term], index.starts[term + 1], index.base[term]
    weights = index.weights[start:end]
    step = max(0.0, weights.max() - base) / 255
    scale = 1 / step if step > 0 else 0.0
    values, places = index.values[row], index.places[row]
    values[:] = 0
    for place in range(end - 1, start - 1, -1):
        document = index.documents[place]
        values[document] = min(255, math.ceil((index.weights[place] - base) * scale))
        places[document >> 6, 0] = place
        places[document >> 6, 1] |= np.int64(1) << (document & 63)
    index.steps[row] = step


# --- the functions that Python calls, with addresses


@compiled
def _index_at(header: int, like: float) -> Index:
    """Return the arrays whose addresses and sizes are at ``header``; see ``Compiled``."""
    at = carray(_pointer(header, np.int64(0)), 13)
    terms, postings, size, rows = at[9], at[10], at[11], at[12]
    blocks = (size + 63) >> 6
    return Index(
        carray(_pointer(at[0], np.int64(0)), terms + 1),
        carray(_pointer(at[1], np.int32(0)), postings),
        carray(_pointer(at[2], like), postings),
        carray(_pointer(at[3], np.float64(0)), terms),
        carray(_pointer(at[4], np.float64(0)), terms),
        carray(_pointer(at[5], np.int16(0)), terms),
        carray(_pointer(at[6], np.uint8(0)), (rows, size)),
        carray(_pointer(at[7], np.float64(0)), rows),
        carray(_pointer(at[8], np.int64(0)), (rows, blocks, 2)),
    )


@compiled
def fill(header: int, term: int, row: int, like: float) -> None:
    """Compute the bytes of a frequent term."""
    _fill(_index_at(header, like), term, row)


@compiled
def search(
    header: int, memory: int, terms: int, count: int, mask: int, among: int, k: int, positions: int, scores: int,
    like: float,
) -> int:  # fmt: skip
    """Search for one query.

    Args:
        header: the address of the index.
        memory: the address of ``Memory.header``.
        terms: the address of the query's terms; int64.
        count: how many terms.
        mask: the address of a boolean for each document; 0 allows all.
        among: how many documents are allowed.
        k: how many documents; at most ``among``.
        positions: the address of the result; int64.
        scores: the address of the result; float64.
        like: a number of the type of the weights.

    Returns:
        0, or ``MISSING`` if the bytes of a frequent term must be computed first.
    """
    index = _index_at(header, like)
    size = carray(_pointer(header, np.int64(0)), 13)[11]
    sequence = carray(_pointer(terms, np.int64(0)), count)
    allowed = carray(_pointer(mask, np.bool_(0)), size if mask else 0)
    best, best_scores = carray(_pointer(positions, np.int64(0)), k), carray(_pointer(scores, np.float64(0)), k)
    at = carray(_pointer(memory, np.int64(0)), 3)
    postings, prunable = 0, 0 < count <= MOST_TERMS and size > SMALL and 4 * k < size
    for term in sequence:
        postings += index.starts[term + 1] - index.starts[term]
        prunable = prunable and index.highest[term] >= 0
    if mask and among <= SMALL < size and count <= MOST_TERMS:
        _score(index, _query(index, sequence, allowed)[0], np.flatnonzero(allowed), best, best_scores)
        return 0
    if prunable and (postings > FEW_POSTINGS or size > FEW_POSTINGS):
        query, missing = _query(index, sequence, allowed)
        if missing:
            return missing
        sums = carray(_pointer(at[0], np.float32(0)), size)
        touched = carray(_pointer(at[1], np.int32(0)), size + 1)
        if _pruned(index, query, sums, touched, best, best_scores):
            return 0
    if size <= SMALL:
        totals = carray(_pointer(at[2], np.float64(0)), 2 * size)
        _exhaustive(index, sequence, allowed, totals[:size], totals[size:], best, best_scores)
    else:
        _exhaustive(index, sequence, allowed, np.empty(size), np.empty(size), best, best_scores)
    return 0


@compiled
def search_all(
    header: int, memory: int, terms: int, ends: int, first: int, last: int, mask: int, among: int, k: int,
    positions: int, scores: int, like: float,
) -> int:  # fmt: skip
    """Search for the queries from ``first`` to before ``last``; see ``search``.

    The terms of query i are those from ``ends[i]`` to before ``ends[i + 1]``.
    """
    bounds = carray(_pointer(ends, np.int64(0)), last + 1)
    for i in range(first, last):
        begin, offset = bounds[i], 8 * i * k
        count = bounds[i + 1] - begin
        search(header, memory, terms + 8 * begin, count, mask, among, k, positions + offset, scores + offset, like)
    return 0
