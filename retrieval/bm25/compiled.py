"""The search of ``search``, compiled by numba (extra ``fast``), which the import needs.

A pass over blocks of documents computes their totals and collects candidates. The bound that they
must reach rises on the way. Each query term is then looked up for each candidate.

Arrays are passed as addresses: numba takes about 1 microsecond to unpack an array argument.
"""

from __future__ import annotations

import array
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

import numba
import numpy as np
from numba import carray, types
from numba.extending import intrinsic

from qabench.io.workers import processors
from qabench.retrieval.bm25.search import (
    MISSING,
    MOST_TOTAL,
    SMALL,
    Array,
    BatchResults,
    Floats,
    Mask,
    Part,
    Postings,
    Results,
    Search,
)

Function = TypeVar("Function", bound=Callable[..., Any])

# The number of documents whose totals are computed together.
BLOCK = 4096
# The number of documents whose totals are compared with the bound together.
STRIDE = 128
# The cost of scoring a document for one term, in postings that are read in the same time.
LOOKUP_COST = 30
# With fewer documents per posting, a pass over all documents is faster than reading postings.
DOCUMENTS_PER_POSTING = 8
# The number of documents in a part of a row, as a power of 2.
PARTS = 6
# The fewest queries of a call, because threads start slowly, and the most, so that threads take
# Python's lock at different times.
QUERIES_PER_CALL = (32, 256)
SMALL_QUERIES_PER_CALL = (500, 500)
# The number of numbers in the header of an index.
NUMBERS = 14

# Compiled at the first call, and then kept in numba's cache on the disk.
compiled: Callable[[Function], Function] = numba.njit(cache=True, nogil=True)


@intrinsic  # type: ignore[untyped-decorator]
def _pointer(context: Any, address: Any, like: Any) -> Any:
    """Convert an address to a pointer to values of the type of ``like``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

    return types.CPointer(like)(address, like), generate


@compiled
def _integers(address: int, shape: Any) -> Any:
    """Return the array of 64-bit integers at an address."""
    return carray(_pointer(address, np.int64(0)), shape)


@compiled
def _floats(address: int, shape: Any) -> Any:
    """Return the array of 64-bit floats at an address."""
    return carray(_pointer(address, np.float64(0)), shape)


class Index(NamedTuple):
    """The arrays of ``Postings`` and ``Search``.

    Attributes:
        starts: see ``Postings``.
        documents: see ``Postings``.
        weights: see ``Postings``.
        base: see ``Postings``.
        highest: see ``Postings``.
        rows: see ``Search``.
        addends: the rows of a small collection, ``Search.values`` as float64.
        values: the rows of a larger collection, ``Search.values`` as uint8.
        places: for each row, where the first document of each part is in the postings, and the end
            of the last part.
        unit: see ``Search``.
        most_terms: see ``Search``.
    """

    starts: Array
    documents: Array
    weights: Array
    base: Floats
    highest: Floats
    rows: Array
    addends: Array
    values: Array
    places: Array
    unit: float
    most_terms: float


@compiled
def _sift(scores: Array, positions: Array, size: int, score: float, position: int) -> None:
    """Replace the top of a heap: the lowest score, and of equal scores the highest position.

    Args:
        scores: the scores in the heap.
        positions: the position of each score's document.
        size: the number of entries of the heap, which begin the two arrays.
        score: the new score.
        position: the position of its document.
    """
    i = 0
    while 2 * i + 1 < size:
        child = 2 * i + 1
        if child + 1 < size:
            a = scores[child]
            b = scores[child + 1]
            child += b < a or (b == a and positions[child + 1] > positions[child])
        if scores[child] > score or (scores[child] == score and positions[child] < position):
            break
        scores[i] = scores[child]
        positions[i] = positions[child]
        i = child
    scores[i] = score
    positions[i] = position


@compiled
def _best(
    totals: Floats, documents: Array, allowed: Mask, positions: Array, scores: Floats
) -> None:
    """Find the best documents, best first. Equal scores are ordered by ascending position.

    Args:
        totals: the scores of some documents.
        documents: their positions. Empty if they are all documents, by position.
        allowed: whether each document of the index may be returned. Empty if all may.
        positions: gets the positions of the best.
        scores: gets their scores.
    """
    scores[:] = -np.inf
    positions[:] = 0
    for j in range(len(totals)):
        if totals[j] > scores[0]:
            document = documents[j] if len(documents) else j
            if len(allowed) == 0 or allowed[document]:
                _sift(scores, positions, len(scores), totals[j], document)
    _sort(positions, scores)


@compiled
def _sort(positions: Array, scores: Floats) -> None:
    """Sort a heap: its top, the worst document, goes to the end."""
    for last in range(len(scores) - 1, 0, -1):
        score = scores[last]
        position = positions[last]
        scores[last] = scores[0]
        positions[last] = positions[0]
        _sift(scores, positions, last, score, position)


@compiled
def _is_better(score: float, document: int, positions: Array, scores: Floats) -> bool:
    """Return whether a document ranks above the worst one of a heap."""
    return bool(score > scores[0] or (score == scores[0] and document < positions[0]))


@compiled
def _sparse(
    index: Index,
    terms: Array,
    allowed: Mask,
    size: int,
    work: int,
    positions: Array,
    scores: Floats,
) -> None:
    """Find the best documents of a query by reading its postings, and nothing else.

    All documents without a term have the same score. Of these, the first ones fill the result.

    The additions to a document's score are in the same order as in ``Search.scores``: before a
    weight is added, the bases of the terms since its last weight are.

    Args:
        index: the index.
        terms: the terms of the query, with repetitions.
        allowed: whether each document may be returned. Empty if all may.
        size: the number of documents.
        work: the address of 16 bytes per document. All are 0 before, or as an earlier call left
            them.
        positions: gets the positions of the best documents.
        scores: gets their scores.
    """
    sums = _floats(work, size)
    # For each document, how many terms its sum includes. 0 before and after each call.
    included = carray(_pointer(work + 8 * size, np.int32(0)), size)
    touched = carray(_pointer(work + 12 * size, np.int32(0)), size)
    n = len(terms)
    count = 0
    # The score of a document that has none of the terms.
    untouched = 0.0
    for t in range(n):
        for place in range(index.starts[terms[t]], index.starts[terms[t] + 1]):
            document = index.documents[place]
            if included[document] == 0:
                total = untouched
                touched[count] = document
                count += 1
            else:
                total = sums[document]
                for skipped in range(included[document], t):
                    total += index.base[terms[skipped]]
            sums[document] = total + index.weights[place]
            included[document] = t + 1
        untouched += index.base[terms[t]]

    scores[:] = -np.inf
    positions[:] = 0
    for j in range(count):
        document = touched[j]
        if len(allowed) and not allowed[document]:
            continue
        total = sums[document]
        for skipped in range(included[document], n):
            total += index.base[terms[skipped]]
        if _is_better(total, document, positions, scores):
            _sift(scores, positions, len(scores), total, document)

    if scores[0] <= untouched:
        for document in range(size):
            if included[document] or (len(allowed) and not allowed[document]):
                continue
            if not _is_better(untouched, document, positions, scores):
                break
            _sift(scores, positions, len(scores), untouched, document)
    _sort(positions, scores)
    for j in range(count):
        included[touched[j]] = 0


@compiled
def _is_sparse(index: Index, terms: Array, size: int) -> bool:
    """Return whether a query has no frequent term, and few enough postings for ``_sparse``."""
    postings = 0
    for term in terms:
        if index.rows[term] >= 0:
            return False
        postings += index.starts[term + 1] - index.starts[term]
    return postings <= size // DOCUMENTS_PER_POSTING


@compiled
def _exhaustive(index: Index, terms: Array, size: int) -> Floats:
    """Score all documents, term by term in the query's order.

    The additions are in the same order as in ``Search.scores``, so that the sums are equal to the
    last bit.
    """
    sums = np.zeros(size)
    spare = np.empty(size)
    for term in terms:
        base = index.base[term]
        row = index.rows[term]
        start = index.starts[term]
        end = index.starts[term + 1]
        if size <= SMALL and row >= 0:
            addends = index.addends[row]
            for document in range(size):
                sums[document] += addends[document]
        elif base == 0:
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
def _pruned(
    index: Index, terms: Array, allowed: Mask, size: int, positions: Array, scores: Floats
) -> bool:
    """Find the best documents by bounds (see the module ``search``).

    Args:
        index: the index.
        terms: the terms of the query, with repetitions.
        allowed: whether each document may be returned. Empty if all may.
        size: the number of documents.
        positions: gets the positions of the best documents.
        scores: gets their scores.

    Returns:
        Whether the bounds are useful. If not, all documents must be scored.
    """
    n = len(terms)
    k = len(scores)
    postings = size
    most = float(n)
    for term in terms:
        postings += index.starts[term + 1] - index.starts[term]
        most += index.highest[term] / index.unit
    if n == 0 or most > MOST_TOTAL or not n * (n + 2) < index.most_terms:
        return False

    # More candidates than this take longer than scoring all documents.
    limit = postings // (LOOKUP_COST * n)
    near = _candidates(index, terms, allowed, size, k, limit)
    if len(near) < k:
        return False

    # Score the candidates, term by term in the query's order.
    sums = np.zeros(len(near))
    addends = np.empty(len(near))
    for term in terms:
        _look_up(index, term, near, addends)
        sums += addends
    _best(sums, near, allowed[:0], positions, scores)
    return True


@compiled
def _candidates(index: Index, terms: Array, allowed: Mask, size: int, k: int, limit: int) -> Array:
    """Return the documents that can be among the k best, ascending.

    The array is empty if they are more than ``limit``.

    Args:
        index: the index.
        terms: the terms of the query, with repetitions.
        allowed: whether each document may be returned. Empty if all may.
        size: the number of documents.
        k: how many documents the query asks for.
        limit: the largest number of candidates.
    """
    n = len(terms)
    rare = np.array([term for term in terms if index.rows[term] < 0], dtype=np.int64)
    frequent_rows = [index.rows[term] for term in terms if index.rows[term] >= 0]
    rows = np.array(frequent_rows, dtype=np.int64)
    next_places = index.starts[rare]
    totals = np.empty(BLOCK, dtype=np.uint16)
    heap = np.full(k, -1.0)
    items = np.zeros(k, dtype=np.int64)
    near = np.empty(limit + BLOCK, dtype=np.int64)
    bounds = np.empty(limit + BLOCK, dtype=np.uint16)
    count = 0
    bound = 0
    for start in range(0, size, BLOCK):
        width = min(BLOCK, size - start)

        # Add the totals of the block's documents: bytes of frequent terms, postings of rare ones.
        totals[:] = 0
        for row in rows:
            _add_bytes(totals[:width], index.values[row][start : start + width])
        for t in range(len(rare)):
            base = index.base[rare[t]]
            place = next_places[t]
            end = index.starts[rare[t] + 1]
            while place < end and index.documents[place] < start + width:
                gain = (index.weights[place] - base) / index.unit
                totals[index.documents[place] - start] += np.uint16(gain + 1)
                place += 1
            next_places[t] = place

        # Collect the documents that reach the bound, which rises with the k-th highest total.
        for first in range(0, width, STRIDE):
            last = min(first + STRIDE, width)
            if bound > _highest(totals[first:last]):
                continue
            for j in range(first, last):
                if totals[j] < bound or (len(allowed) and not allowed[start + j]):
                    continue
                near[count] = start + j
                bounds[count] = totals[j]
                count += 1
                if totals[j] > heap[0]:
                    _sift(heap, items, k, float(totals[j]), start + j)
                    bound = max(0, int(heap[0]) - n)

        # Drop the documents that do not reach it any more.
        if count > limit or start + BLOCK >= size:
            remaining = 0
            for j in range(count):
                near[remaining] = near[j]
                bounds[remaining] = bounds[j]
                remaining += bounds[j] >= bound
            count = remaining
            if count > limit:
                return near[:0]
    return near[:count]


@compiled
def _add_bytes(totals: Array, values: Array) -> None:
    for j in range(len(totals)):
        totals[j] += values[j]


@compiled
def _highest(totals: Array) -> int:
    """Return the highest total. Without branches, so that the loop is vectorized."""
    highest = np.uint16(0)
    for j in range(len(totals)):
        highest = max(highest, totals[j])
    return int(highest)


@compiled
def _look_up(index: Index, term: int, near: Array, addends: Floats) -> None:
    """Compute the addends of a term to the scores of some documents: its weights, or ``base``.

    Args:
        index: the index.
        term: the term.
        near: the documents, ascending, so that each search begins where the last one ended.
        addends: gets the addends.
    """
    addends[:] = index.base[term]
    row = index.rows[term]
    start = index.starts[term]
    end = index.starts[term + 1]
    for j in range(len(near)):
        if row >= 0:
            if index.values[row, near[j]] == 0:
                continue
            part = near[j] >> PARTS
            start = index.places[row, part]
            end = index.places[row, part + 1]
        place = start
        width = end - start
        while width > 1:
            # The loop has no branches, because the processor could not predict them.
            half = width >> 1
            place += half * (index.documents[place + half - 1] < near[j])
            width -= half
        # One posting is left: the first one that is not below the document, or the last one.
        if width and index.documents[place] == near[j]:
            addends[j] = index.weights[place]
        start = place


@compiled
def _index_at(header: int) -> Index:
    """Return the arrays whose addresses and sizes are at ``header`` (see ``CompiledSearch``)."""
    at = _integers(header, NUMBERS)
    numbers = _floats(header, NUMBERS)
    terms = at[8]
    postings = at[9]
    size = at[10]
    rows = at[11]
    return Index(
        _integers(at[0], terms + 1),
        carray(_pointer(at[1], np.int32(0)), postings),
        _floats(at[2], postings),
        _floats(at[3], terms),
        _floats(at[4], terms),
        carray(_pointer(at[5], np.int16(0)), terms),
        _floats(at[6], (rows, size)),
        carray(_pointer(at[6], np.uint8(0)), (rows, size)),
        _integers(at[7], (rows, (size >> PARTS) + 2)),
        numbers[12],
        numbers[13],
    )


@compiled
def _search(
    header: int, terms: int, count: int, mask: int, k: int, work: int, positions: int, scores: int
) -> int:
    """Search for one query. All arrays are given by their addresses.

    Args:
        header: the header of the index (see ``_index_at``).
        terms: the terms of the query. int64.
        count: the number of terms.
        mask: whether each document may be returned. 0 if all may.
        k: how many documents to find.
        work: see ``_sparse``.
        positions: gets the positions of the best documents. int64.
        scores: gets their scores. float64.

    Returns:
        0, or ``MISSING`` if the row of a frequent term must be computed first.
    """
    index = _index_at(header)
    size = _integers(header, NUMBERS)[10]
    numbers = _integers(terms, count)
    for term in numbers:
        if index.rows[term] == MISSING:
            return MISSING
    allowed = carray(_pointer(mask, np.bool_(0)), size if mask else 0)
    best = _integers(positions, k)
    best_scores = _floats(scores, k)
    if _is_sparse(index, numbers, size):
        _sparse(index, numbers, allowed, size, work, best, best_scores)
    elif size <= SMALL or not _pruned(index, numbers, allowed, size, best, best_scores):
        _best(_exhaustive(index, numbers, size), numbers[:0], allowed, best, best_scores)
    return 0


@compiled
def _search_all(
    header: int,
    terms: int,
    ends: int,
    count: int,
    mask: int,
    k: int,
    work: int,
    positions: int,
    scores: int,
) -> int:
    """Search for many queries (see ``_search``).

    Args:
        header: the header of the index.
        terms: the terms of all queries.
        ends: where the terms of each query start, and the end of the last. int64.
        count: the number of queries.
        mask: whether each document may be returned. 0 if all may.
        k: how many documents to find for each query.
        work: see ``_sparse``.
        positions: gets the positions of each query's best documents.
        scores: gets their scores.
    """
    bounds = _integers(ends, count + 1)
    for i in range(count):
        begin = bounds[i]
        offset = 8 * i * k
        _search(
            header,
            terms + 8 * begin,
            bounds[i + 1] - begin,
            mask,
            k,
            work,
            positions + offset,
            scores + offset,
        )
    return 0


class Best(threading.local):
    """Arrays for the k best positions and scores, kept because NumPy allocates slowly."""

    def __init__(self) -> None:
        self.resize(0)

    def resize(self, k: int) -> tuple[Array, Array, int, int]:
        """Allocate arrays for k documents, and return them and their addresses."""
        positions = np.empty(k, dtype=np.int64)
        scores = np.empty(k)
        self.arrays = positions, scores, _address(positions), _address(scores)
        return self.arrays


class CompiledSearch(Search):
    """``Search`` by compiled functions.

    Attributes:
        places: see ``Index``.

    Raises:
        RuntimeError: numba finds no writable folder for its cache.
    """

    compiled = True

    def __init__(self, postings: Postings) -> None:
        super().__init__(postings)
        rows, size = self.values.shape
        self.places = np.empty((rows, (size >> PARTS) + 2), dtype=np.int64)
        arrays = (
            postings.starts,
            postings.documents,
            postings.weights,
            postings.base,
            postings.highest,
        )
        addresses = [_address(array) for array in (*arrays, self.rows, self.values, self.places)]
        sizes = [len(postings.base), len(postings.documents), size, rows]
        floats = np.array([self.unit, self.most_terms]).view(np.int64).tolist()
        self._header = np.array([*addresses, *sizes, *floats], dtype=np.int64)
        self._address = _address(self._header)
        self._best = Best()
        # Memory of ``_sparse`` that no search uses now. A search that fails does not give it back.
        self._free: list[tuple[Array, int]] = []

    def top(self, terms: Sequence[int], k: int, mask: Mask | None) -> Results:
        """Return the positions and scores of the k best documents (see ``Search.top``)."""
        numbers = array.array("q", terms)
        address, count = numbers.buffer_info()
        positions, scores, to_positions, to_scores = self._best.arrays
        if k > len(positions):
            positions, scores, to_positions, to_scores = self._best.resize(k)
        work = self._work()
        arguments = address, count, _address(mask), k, work[1], to_positions, to_scores
        if _search(self._address, *arguments) == MISSING:
            self.fill(terms)
            _search(self._address, *arguments)
        self._free.append(work)
        if k < len(positions):
            positions = positions[:k]
            scores = scores[:k]
        return positions.tolist(), scores.tolist()

    def top_all(self, part: Part, size: int, k: int, mask: Mask | None) -> BatchResults:
        """Return the results of ``Search.top_all``. Many queries are searched by several threads."""
        positions = np.empty((size, k), dtype=np.int64)
        scores = np.empty((size, k))

        def run(first: int) -> None:
            terms, ends = part(first, min(first + step, size))
            own = terms[ends[0] : ends[-1]]
            self.fill(own[self.rows[own] == MISSING])
            work = self._work()
            _search_all(
                self._address,
                _address(terms),
                _address(ends),
                len(ends) - 1,
                _address(mask),
                k,
                work[1],
                _address(positions[first:]),
                _address(scores[first:]),
            )
            self._free.append(work)

        threads = processors()
        fewest, most = SMALL_QUERIES_PER_CALL if self.small else QUERIES_PER_CALL
        step = max(fewest, min(most, -(-size // threads)))
        starts = range(0, size, step)
        if size <= step or threads == 1:
            for first in starts:
                run(first)
        else:
            with ThreadPoolExecutor(threads) as executor:
                # This raises what a thread raised.
                list(executor.map(run, starts))
        return positions, scores

    def _work(self) -> tuple[Array, int]:
        """Return memory for ``_sparse`` and its address, reused from a search that has ended."""
        try:
            # Not checked before, because another thread may take the last one after the check.
            return self._free.pop()
        except IndexError:
            memory = np.zeros(2 * self.postings.size)
            return memory, _address(memory)

    def _fill_row(self, term: int, row: int) -> None:
        super()._fill_row(term, row)
        (documents,), _ = self._parts([term])
        firsts = np.arange(self.places.shape[1], dtype=np.int32) << PARTS
        self.places[row] = self.postings.starts[term] + documents.searchsorted(firsts)


def _address(values: Array | None) -> int:
    return 0 if values is None else int(values.ctypes.data)
