"""The search of ``pruning``, compiled by numba (extra ``fast``): the same documents and scores, to the last bit.

Terms are read by falling highest gain until no other document can be among the k best; of the rest, only postings of
documents that still can. Terms that lower scores (a negative idf) are read first: the sums are then lower bounds of the
gains, and the highest weights of unread terms give upper bounds. Coarse gains bound what frequent terms add, so that
their postings are read for the final scores only (see ``columns``). The module can only be imported with numba.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from qabench.retrieval.bm25.arrays import Array, Floats, Mask, Positions
from qabench.retrieval.bm25.columns import Coarse, Columns, refined, scan
from qabench.retrieval.bm25.compiled import TINY, compiled, replace_lowest
from qabench.retrieval.bm25.lookups import LOOKUP_COST, Query, add_term, lowest_sum, scores_of
from qabench.retrieval.bm25.postings import Postings


class Memory(NamedTuple):
    """Arrays with one element per document, reused by each thread: allocating them takes longer than a search.

    Attributes:
        sums: the gains so far, of a document that was seen never exactly 0; zeros between searches. In 32 bits, because
            reading them takes most of the time; they only decide which documents are scored.
        touched: the documents that were seen, in the order in which they were.
    """

    sums: Array
    touched: Positions


def search(
    postings: Postings, terms: Sequence[int], k: int, mask: Mask | None, columns: Columns | None
) -> tuple[Array, Floats] | None:
    """The positions and scores of the k best documents; None if fewer than k have a term that raises their score.

    The arguments are those of ``ranking.top``, where k is at most the number of documents that may be returned.
    """
    places = {term: place for place, term in enumerate(dict.fromkeys(terms))}
    if not places:
        return None
    distinct = np.array(list(places))
    columns = columns or _NO_COLUMNS
    starts, ends = postings.spans(distinct)
    positions, scores = find(
        _read_only(postings.documents),
        _read_only(postings.weights),
        starts,
        ends,
        postings.base[distinct],
        postings.highest[distinct],
        np.array([places[term] for term in terms]),
        _ALL if mask is None else _read_only(mask),
        columns.values,
        columns.lows,
        columns.steps,
        np.array(columns.rows(postings, list(places))),
        k,
        _memory(postings.size),
    )
    return (positions.astype(np.int64), scores) if len(positions) else None


def _read_only(array: Array) -> Array:
    """A read-only view: numba would compile everything a second time for arrays that can be written."""
    if array.flags.writeable:
        array = array.view()
        array.flags.writeable = False
    return array


_threads = threading.local()
_NO_COLUMNS = Columns(0)
_ALL: Mask = _read_only(np.empty(0, dtype=bool))


def _memory(size: int) -> Memory:
    memory: Memory | None = getattr(_threads, "memory", None)
    if memory is None or len(memory.sums) < size:
        memory = Memory(np.zeros(size, dtype=np.float32), np.empty(size + 1, dtype=np.int32))
        _threads.memory = memory
    return memory


@compiled
def find(
    documents: Positions,
    weights: Array,
    starts: Array,
    ends: Array,
    base: Floats,
    highest: Floats,
    sequence: Array,
    allowed: Mask,
    values: Array,
    lows: Floats,
    steps: Floats,
    rows: Array,
    k: int,
    memory: Memory,
) -> tuple[Positions, Floats]:
    """See ``best``. The arguments are those of ``Query`` and ``Columns``, and the row of each distinct term."""
    times = np.zeros(len(starts), dtype=np.int64)
    for t in sequence:
        times[t] += 1
    gains = times * highest
    order = np.argsort(-gains)
    query = Query(documents, weights, starts, ends, base, times, gains, sequence, order[rows[order] < 0], allowed)
    frequent = rows >= 0
    own, factors = rows[frequent], times[frequent]
    own_steps, low = steps[own] * factors, (lows[own] * factors).sum()
    widest = np.argsort(-own_steps)
    step = own_steps.sum()
    coarse = Coarse(values, own[widest], own_steps[widest], low, step, low + 255 * step)
    return best(query, coarse, k, memory)


@compiled
def best(query: Query, coarse: Coarse, k: int, memory: Memory) -> tuple[Positions, Floats]:
    """The positions and scores of the k best documents; empty if fewer than k have a term that raises their score."""
    order = query.rare
    left = np.full(len(order) + 1, coarse.most)  # the most that each term in this order and all after it can add
    for i in range(len(order) - 1, -1, -1):
        left[i] = left[i + 1] + max(query.gains[order[i]], 0.0)
    # n numbers added up in two orders differ by less than n units in the last place of the largest sum, of 32 bits.
    largest = np.abs(query.gains).sum() + np.abs(query.times * query.base).sum() + 255 * coarse.step
    slack = 8 * (len(query.sequence) + 2) * 1.2e-7 * largest
    first, count, bound = _read_terms(query, coarse, k, memory, left, slack)
    if bound - left[first] <= slack and len(coarse.rows):
        count, least = scan(coarse, k, bound - slack, memory.sums, query.allowed, memory.touched, count)
        bound = max(bound, least)
    left -= coarse.most
    near, bound = refined(coarse, memory.touched[:count], memory.sums, k, bound, left[first] + slack)
    for i in range(first, len(order)):
        if query.gains[order[i]] <= 0 or len(near) <= 2 * k:
            break
        add_term(query, order[i], near, memory.sums)
        bound = max(bound, _largest(memory.sums, near, k) - coarse.step)
        near = near[memory.sums[near] >= bound - left[i + 1] - slack]
    memory.sums[memory.touched[:count]] = 0
    if bound <= slack:
        near = near[:0]
    near.sort()
    scores = scores_of(query, near)
    ranking = np.argsort(-scores, kind="mergesort")[:k]  # stable: equal scores by ascending position
    return near[ranking], scores[ranking]


@compiled
def _read_terms(
    query: Query, coarse: Coarse, k: int, memory: Memory, left: Floats, slack: float
) -> tuple[int, int, float]:
    """Reads terms until a document that was not seen can no longer be among the k best.

    Returns:
        The place in ``query.rare`` of the first term that was not read, the number of documents seen, and a bound: at
        least k documents have this gain.
    """
    order = query.rare
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
            bound = max(bound, lowest + coarse.low)
            unread = order[i + 1 :]
            cheap = len(unread) and query.ends[unread[0]] - query.starts[unread[0]] > LOOKUP_COST * k * len(unread)
            if cheap or len(coarse.rows):
                bound = max(bound, lowest_sum(query, coarse, unread if cheap else unread[:0], found, memory.sums))
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
        memory.sums[document] = total if abs(total) > TINY else TINY
        if total > lowest:
            replace_lowest(heap, found, total, document)
            lowest = heap[0]
    return count, lowest


@compiled
def _largest(sums: Array, near: Positions, k: int) -> float:
    """The k-th largest sum of some documents; minus infinity if there are fewer."""
    heap, items = np.full(k, -np.inf), np.empty(k, dtype=np.int32)
    for document in near:
        if sums[document] > heap[0]:
            replace_lowest(heap, items, sums[document], 0)
    return float(heap[0])
