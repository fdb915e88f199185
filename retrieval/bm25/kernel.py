"""The search of ``pruning``, compiled by numba (extra ``fast``): the same documents and scores, to the last bit.

Frequent terms are read last, and only for documents that can still be among the k best. Terms that lower scores (a
negative idf) are read first: the sums are then lower bounds of the gains, and the highest weights of unread terms give
upper bounds. The module can only be imported with numba. A function is compiled at its first call, and then kept in
numba's cache on the disk.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import numba
import numpy as np

from qabench.retrieval.bm25.arrays import Array, Floats, Mask, Positions
from qabench.retrieval.bm25.postings import Postings

Function = TypeVar("Function", bound=Callable[..., Any])

TINY = 1e-300  # instead of 0, so that a document counts as seen; far below the differences that rounding causes
LOOKUP_COST = 30  # the cost of looking up a document in a term's postings, in postings read

compiled: Callable[[Function], Function] = numba.njit(cache=True, nogil=True)
_threads = threading.local()


class Query(NamedTuple):
    """A query and the postings: ``documents`` and ``weights`` of ``Postings``, and arrays of its distinct terms.

    Attributes:
        documents: see ``Postings``.
        weights: see ``Postings``.
        starts: the start of the term's postings.
        ends: their end.
        base: see ``Postings``.
        times: how often the query has the term.
        gains: the highest gain from the term: what it can add to the score of a document without it.
        sequence: the terms of the query in order, as places in these arrays.
        allowed: the documents that may be returned; an array of length 0 allows all.
    """

    documents: Positions
    weights: Array
    starts: Array
    ends: Array
    base: Floats
    times: Array
    gains: Floats
    sequence: Array
    allowed: Mask


class Memory(NamedTuple):
    """Arrays with one element per document, reused by each thread: allocating them takes longer than a search.

    Attributes:
        sums: the gains so far, of a document that was seen never exactly 0; zeros between searches.
        touched: the documents that were seen, in the order in which they were.
    """

    sums: Floats
    touched: Positions


def search(postings: Postings, terms: Sequence[int], k: int, mask: Mask | None) -> tuple[Array, Floats] | None:
    """The positions and scores of the k best documents; None if fewer than k have a term that raises their score.

    The arguments are those of ``ranking.top``, where k is at most the number of documents that may be returned.
    """
    places = {term: place for place, term in enumerate(dict.fromkeys(terms))}
    if not places:
        return None
    distinct = np.array(list(places))
    sequence = np.array([places[term] for term in terms])
    times = np.bincount(sequence)
    query = Query(
        _read_only(postings.documents),
        _read_only(postings.weights),
        *postings.spans(distinct),
        postings.base[distinct],
        times,
        times * postings.highest[distinct],
        sequence,
        _read_only(np.empty(0, dtype=bool) if mask is None else mask),
    )
    positions, scores = best(query, k, _memory(postings.size))
    return (positions.astype(np.int64), scores) if len(positions) else None


def _read_only(array: Array) -> Array:
    """A read-only view: numba would compile everything a second time for arrays that can be written."""
    view = array.view()
    view.flags.writeable = False
    return view


def _memory(size: int) -> Memory:
    memory: Memory | None = getattr(_threads, "memory", None)
    if memory is None or len(memory.sums) < size:
        memory = Memory(np.zeros(size), np.empty(size + 1, dtype=np.int32))
        _threads.memory = memory
    return memory


@compiled
def best(query: Query, k: int, memory: Memory) -> tuple[Positions, Floats]:
    """The positions and scores of the k best documents; empty if fewer than k have a term that raises their score."""
    order = np.argsort(-query.gains)
    left = np.zeros(len(order) + 1)  # the most that each term in this order and those after it can add
    for i in range(len(order) - 1, -1, -1):
        left[i] = left[i + 1] + max(query.gains[order[i]], 0.0)
    # n numbers added up in two orders differ by less than n units in the last place of the largest sum.
    largest = np.abs(query.gains).sum() + np.abs(query.times * query.base).sum()
    slack = 8 * (len(query.sequence) + 2) * (2.3e-16 if query.weights.itemsize == 8 else 1.2e-7) * largest
    first, count, bound = _read_terms(query, k, memory, order, left, slack)
    near = _reaching(memory, count, bound - left[first] - slack)
    for i in range(first, len(order)):
        if query.gains[order[i]] <= 0 or len(near) <= 2 * k:
            break
        _add(query, order[i], near, memory.sums)
        bound = max(bound, _largest(memory.sums, near, k))
        near = near[memory.sums[near] >= bound - left[i + 1] - slack]
    memory.sums[memory.touched[:count]] = 0
    if bound <= slack:
        near = near[:0]
    near.sort()
    scores = _scores(query, near)
    ranking = np.argsort(-scores, kind="mergesort")[:k]  # stable: equal scores by ascending position
    return near[ranking], scores[ranking]


@compiled
def _read_terms(
    query: Query, k: int, memory: Memory, order: Array, left: Floats, slack: float
) -> tuple[int, int, float]:
    """Reads terms until a document that was not seen can no longer be among the k best.

    Returns:
        The place in ``order`` of the first term that was not read, the number of documents seen, and a bound: at least
        k documents have this gain.
    """
    count, bound, highest = 0, -np.inf, -np.inf
    found = np.empty(k, dtype=np.int32)
    for i in range(len(order) - 1, -1, -1):
        if query.gains[order[i]] >= 0:
            break
        count, _ = _read(query, order[i], memory, count, found[:0])
    for i in range(len(order)):
        t = order[i]
        if query.gains[t] <= 0 or bound - left[i] > slack:
            return i, count, bound
        count, lowest = _read(query, t, memory, count, found)
        if lowest > highest:
            bound = max(bound, lowest)
            unread = order[i + 1 :]
            if len(unread) and query.ends[unread[0]] - query.starts[unread[0]] > LOOKUP_COST * k * len(unread):
                bound = max(bound, _least(query, unread, found, memory.sums))
            highest = lowest
    return len(order), count, bound


@compiled
def _read(query: Query, t: int, memory: Memory, count: int, found: Positions) -> tuple[int, float]:
    """Adds a term to the sums of its documents. Finds those with the highest sums, and the lowest of these sums."""
    heap = np.full(len(found), -np.inf)
    lowest = -np.inf if len(found) else np.inf
    for place in range(query.starts[t], query.ends[t]):
        document = query.documents[place]
        if len(query.allowed) and not query.allowed[document]:
            continue
        before = memory.sums[document]
        memory.touched[count] = document
        count += before == 0
        total = before + query.times[t] * (query.weights[place] - query.base[t])
        memory.sums[document] = total if total != 0 else TINY
        if total > lowest:
            _replace_lowest(heap, found, total, document)
            lowest = heap[0]
    return count, lowest


@compiled
def _replace_lowest(heap: Floats, items: Positions, value: float, item: int) -> None:
    """Replaces the first element of a heap with the lowest value at the top."""
    i, size = 0, len(heap)
    while 2 * i + 1 < size:
        child = 2 * i + 1
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= value:
            break
        heap[i], items[i] = heap[child], items[child]
        i = child
    heap[i], items[i] = value, item


@compiled
def _largest(sums: Floats, near: Positions, k: int) -> float:
    """The k-th largest sum of some documents; minus infinity if there are fewer."""
    heap, items = np.full(k, -np.inf), np.empty(k, dtype=np.int32)
    for document in near:
        if sums[document] > heap[0]:
            _replace_lowest(heap, items, sums[document], 0)
    return float(heap[0])


@compiled
def _place(documents: Positions, start: int, end: int, document: int) -> int:
    """The first place from ``start`` on whose document is not below ``document``, by a galloping search."""
    step = 1
    while start + step < end and documents[start + step] < document:
        start += step
        step *= 2
    stop = min(start + step + 1, end)
    while start < stop:
        middle = (start + stop) // 2
        if documents[middle] < document:
            start = middle + 1
        else:
            stop = middle
    return start


@compiled
def _least(query: Query, terms: Array, promising: Positions, sums: Floats) -> float:
    """The lowest sum of the promising documents, with terms added that were not read."""
    lowest = np.inf
    for document in promising:
        total = sums[document]
        for t in terms:
            place = _place(query.documents, query.starts[t], query.ends[t], document)
            if place < query.ends[t] and query.documents[place] == document:
                total += max(query.times[t] * (query.weights[place] - query.base[t]), 0.0)
        lowest = min(lowest, total)
    return lowest


@compiled
def _reaching(memory: Memory, count: int, least: float) -> Positions:
    """The documents that were seen with sums of at least ``least``."""
    touched = memory.touched[:count]
    return touched[memory.sums[touched] >= least]


@compiled
def _add(query: Query, t: int, near: Positions, sums: Floats) -> None:
    """Adds a term to the sums of some documents that were seen."""
    if len(near) * LOOKUP_COST < query.ends[t] - query.starts[t]:
        near.sort()
        place = query.starts[t]
        for document in near:
            place = _place(query.documents, place, query.ends[t], document)
            if place < query.ends[t] and query.documents[place] == document:
                sums[document] += query.times[t] * (query.weights[place] - query.base[t])
        return
    for place in range(query.starts[t], query.ends[t]):
        document = query.documents[place]
        gain = query.times[t] * (query.weights[place] - query.base[t])
        sums[document] += gain if sums[document] != 0 else 0


@compiled
def _scores(query: Query, near: Positions) -> Floats:
    """The scores of a few documents (ascending), in which the terms are added in the order of the query."""
    added = np.empty((len(query.starts), len(near)))
    for t in range(len(query.starts)):
        place = query.starts[t]
        for j in range(len(near)):
            place = _place(query.documents, place, query.ends[t], near[j])
            has = place < query.ends[t] and query.documents[place] == near[j]
            added[t, j] = query.weights[place] if has else query.base[t]
    scores = np.zeros(len(near))
    for t in query.sequence:
        scores += added[t]
    return scores
