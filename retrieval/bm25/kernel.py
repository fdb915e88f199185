"""The search of ``pruning``, compiled by numba (extra ``fast``): the same documents and scores, to the last bit.

Frequent terms are read last, and only for documents that can still be among the k best. Terms that lower scores (a
negative idf) are read first: the sums are then lower bounds of the gains, and the highest weights of unread terms give
upper bounds. The module can only be imported with numba. A function is compiled at its first call, and then kept in
numba's cache on the disk.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numba
import numpy as np

from qabench.retrieval.bm25.arrays import Array, Floats, Mask, Positions
from qabench.retrieval.bm25.postings import Postings

LOOKUP_COST = 12  # the cost of looking up a document in a term's postings, in postings read

compiled: Any = numba.njit(cache=True, nogil=True)
_threads = threading.local()


def search(postings: Postings, terms: Sequence[int], k: int, mask: Mask | None) -> tuple[Array, Floats] | None:
    """The positions and scores of the k best documents; None if fewer than k have a term that raises their score.

    The arguments are those of ``ranking.top``, where k is at most the number of documents that may be returned.
    """
    distinct = {term: number for number, term in enumerate(dict.fromkeys(terms))}
    if not distinct:
        return None
    sequence = np.array([distinct[term] for term in terms])
    numbers = np.array(list(distinct))
    starts, ends = np.array([postings.span(term) for term in distinct]).T.copy()
    times = np.bincount(sequence)
    base, highest = postings.base[numbers], postings.highest[numbers]
    allowed = np.empty(0, dtype=bool) if mask is None else mask
    query = starts, ends, base, highest, times, sequence
    positions, scores = best(postings.documents, postings.weights, *query, allowed, k, *_memory(postings.size))
    return (positions.astype(np.int64), scores) if len(positions) else None


def _memory(size: int) -> tuple[Floats, Positions, Mask]:
    """Arrays for a search, reused by each thread: allocating them takes longer than a search."""
    memory: tuple[Floats, Positions, Mask] | None = getattr(_threads, "memory", None)
    if memory is None or len(memory[0]) < size:
        memory = _threads.memory = np.zeros(size), np.empty(size, dtype=np.int32), np.zeros(size, dtype=bool)
    return memory


@compiled
def best(
    documents: Positions,
    weights: Array,
    starts: Array,
    ends: Array,
    base: Floats,
    highest: Floats,
    times: Array,
    sequence: Array,
    allowed: Mask,
    k: int,
    sums: Floats,
    touched: Positions,
    seen: Mask,
) -> tuple[Positions, Floats]:
    """The positions and scores of the k best documents; empty if fewer than k have a term that raises the score.

    Args:
        documents: of ``Postings``.
        weights: of ``Postings``.
        starts: the start of the postings of each distinct term of the query.
        ends: their end.
        base: see ``Postings``, for each of these terms.
        highest: see ``Postings``, for each of these terms.
        times: how often the query has each of these terms.
        sequence: the query, as numbers of these terms.
        allowed: the documents that may be returned; an array of length 0 allows all.
        k: the number of documents, at most the number of allowed ones.
        sums: memory with one element per document, all zero before and afterward.
        touched: memory with one element per document.
        seen: memory with one element per document, all false before and afterward.
    """
    gains = times * highest
    order = np.argsort(-gains)
    left = np.zeros(len(order) + 1)  # the most that each term in this order and those after it can add
    for i in range(len(order) - 1, -1, -1):
        left[i] = left[i + 1] + max(gains[order[i]], 0.0)
    # n numbers added up in two orders differ by less than n units in the last place of the largest sum.
    eps = 2.3e-16 if weights.itemsize == 8 else 1.2e-7
    slack = 8 * (len(sequence) + 2) * eps * (np.abs(gains).sum() + np.abs(times * base).sum())
    bound = -np.inf  # at least k documents have this gain
    promising = np.empty(k, dtype=np.int32)
    count = 0
    for i in range(len(order) - 1, -1, -1):
        t = order[i]
        if gains[t] >= 0:
            break
        count, _ = _read(
            documents,
            weights,
            starts[t],
            ends[t],
            base[t],
            times[t],
            allowed,
            sums,
            touched,
            seen,
            count,
            promising[:0],
        )
    unread = 0
    for i in range(len(order)):
        t = order[i]
        if gains[t] <= 0:
            break
        length = ends[t] - starts[t]
        if i and length > count // 2:
            # All terms of the most promising documents are added up, which gives a better bound.
            if bound > -np.inf:
                bound = max(bound, _least(documents, weights, starts, ends, base, times, order, i, promising, sums))
            least = bound - left[i] - slack
            if least > 0:
                near = 0
                for j in range(count):
                    near += sums[touched[j]] >= least
                if near * LOOKUP_COST < length:
                    break
        found = np.empty(k, dtype=np.int32)
        count, lowest = _read(
            documents, weights, starts[t], ends[t], base[t], times[t], allowed, sums, touched, seen, count, found
        )
        unread = i + 1
        if lowest > bound:
            bound, promising = lowest, found
    near = _reaching(sums, touched[:count], bound - left[unread] - slack)
    gained = sums[near]
    for i in range(count):
        sums[touched[i]] = 0
        seen[touched[i]] = False
    if bound <= slack:
        return near[:0], gained[:0]
    for i in range(unread, len(order)):
        t = order[i]
        if gains[t] <= 0 or len(near) <= 2 * k:
            break
        place = starts[t]
        for j in range(len(near)):
            place = _place(documents, place, ends[t], near[j])
            if place < ends[t] and documents[place] == near[j]:
                gained[j] += times[t] * (weights[place] - base[t])
        bound = max(bound, _kth(gained, k))
        kept = gained >= bound - left[i + 1] - slack
        near, gained = near[kept], gained[kept]
    return _ranked(documents, weights, starts, ends, base, sequence, near, k)


@compiled
def _read(
    documents: Positions, weights: Array, start: int, end: int, base: float, times: int, allowed: Mask,
    sums: Floats, touched: Positions, seen: Mask, count: int, found: Positions,
) -> tuple[int, float]:  # fmt: skip
    """Adds a term to the sums of its documents. Finds those with the highest sums, and the lowest of these sums."""
    k = len(found)
    heap = np.full(k, -np.inf)
    for place in range(start, end):
        document = documents[place]
        if len(allowed) and not allowed[document]:
            continue
        if not seen[document]:
            seen[document] = True
            touched[count] = document
            count += 1
        total = sums[document] + times * (weights[place] - base)
        sums[document] = total
        if k and total > heap[0]:
            _replace_lowest(heap, found, total, document)
    return count, heap[0] if k else -np.inf


@compiled
def _replace_lowest(heap: Floats, items: Positions, value: float, item: int) -> None:
    """Replaces the first element of a heap with the lowest value at the top."""
    i, size = 0, len(heap)
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= value:
            break
        heap[i], items[i] = heap[child], items[child]
        i = child
    heap[i], items[i] = value, item


@compiled
def _kth(values: Floats, k: int) -> float:
    """The k-th largest value; minus infinity if there are fewer."""
    heap, items = np.full(k, -np.inf), np.empty(k, dtype=np.int32)
    for value in values:
        if value > heap[0]:
            _replace_lowest(heap, items, value, 0)
    return heap[0]


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
def _least(
    documents: Positions, weights: Array, starts: Array, ends: Array, base: Floats, times: Array, order: Array, first: int,
    promising: Positions, sums: Floats,
) -> float:  # fmt: skip
    """The lowest gain of the promising documents after all terms."""
    lowest = np.inf
    for document in promising:
        total = sums[document]
        for i in range(first, len(order)):
            t = order[i]
            place = _place(documents, starts[t], ends[t], document)
            if times[t] and place < ends[t] and documents[place] == document:
                total += max(times[t] * (weights[place] - base[t]), 0.0)
        lowest = min(lowest, total)
    return lowest


@compiled
def _reaching(sums: Floats, touched: Positions, least: float) -> Positions:
    """The documents with sums of at least ``least``, ascending."""
    count = 0
    for document in touched:
        count += sums[document] >= least
    found = np.empty(count, dtype=np.int32)
    count = 0
    for document in touched:
        if sums[document] >= least:
            found[count] = document
            count += 1
    found.sort()
    return found


@compiled
def _ranked(
    documents: Positions,
    weights: Array,
    starts: Array,
    ends: Array,
    base: Floats,
    sequence: Array,
    near: Positions,
    k: int,
) -> tuple[Positions, Floats]:
    """The k best of a few documents by their scores, in which the terms are added in the order of the query."""
    added = np.empty((len(starts), len(near)))
    for t in range(len(starts)):
        place = starts[t]
        for j in range(len(near)):
            place = _place(documents, place, ends[t], near[j])
            has = place < ends[t] and documents[place] == near[j]
            added[t, j] = weights[place] if has else base[t]
    scores = np.zeros(len(near))
    for t in sequence:
        for j in range(len(near)):
            scores[j] += added[t, j]
    ranking = np.argsort(-scores, kind="mergesort")[:k]  # stable: equal scores by ascending position
    return near[ranking], scores[ranking]
