"""Looks up a few documents in the postings of a query's terms, for the compiled search (``kernel``)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from qabench.retrieval.bm25.arrays import Array, Floats, Mask, Positions
from qabench.retrieval.bm25.columns import Coarse
from qabench.retrieval.bm25.compiled import compiled

LOOKUP_COST = 30  # the cost of looking up a document in a term's postings, in postings read


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
        rare: the terms without coarse gains, highest gain first.
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
    rare: Array
    allowed: Mask


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
def lowest_sum(query: Query, coarse: Coarse, terms: Array, promising: Positions, sums: Array) -> float:
    """The lowest sum of the promising documents, with the frequent terms and other terms added that were not read."""
    lowest = np.inf
    for document in promising:
        total = sums[document] + coarse.low - coarse.step
        for i in range(len(coarse.rows)):
            total += coarse.steps[i] * coarse.values[coarse.rows[i], document]
        for t in terms:
            place = _place(query.documents, query.starts[t], query.ends[t], document)
            if place < query.ends[t] and query.documents[place] == document:
                total += max(query.times[t] * (query.weights[place] - query.base[t]), 0.0)
        lowest = min(lowest, total)
    return lowest


@compiled
def add_term(query: Query, t: int, near: Positions, sums: Array) -> None:
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
def scores_of(query: Query, near: Positions) -> Floats:
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
