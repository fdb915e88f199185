"""Coarse gains of frequent terms in all documents, one byte each: bounds for which no postings are read.

The postings of a word like "the" take longer to read than those of all rare terms of a query, but the word adds little:
bounds show that almost all of its documents cannot be among the best. Only the compiled search uses them.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from qabench.retrieval.bm25.arrays import Array, Floats, Mask, Positions
from qabench.retrieval.bm25.compiled import TINY, compiled, replace_lowest
from qabench.retrieval.bm25.postings import Postings

SHARE = 32  # a term is frequent if at least one of so many documents contains it
MOST_TERMS, MOST_BYTES = 256, 1 << 28
BLOCK = 2048  # documents whose bounds are computed together
NONE = -1


class Coarse(NamedTuple):
    """The coarse gains of a query's frequent terms, the one with the widest range of gains first.

    A document's gain from a term is at most ``low + value * step``, and less than one step lower.

    Attributes:
        values: one byte for each row and document.
        rows: the row of each term.
        steps: the step of each term, times how often the query has it.
        low: the sum of the lows, likewise.
        step: the sum of the steps.
        most: the most that all terms together can add.
    """

    values: Array
    rows: Array
    steps: Floats
    low: float
    step: float
    most: float


class Columns:
    """The coarse gains of the frequent terms that queries had so far.

    Args:
        size: the number of documents.

    Attributes:
        values: one byte for each row and document; only rows in use take memory.
        lows: the lowest gain of each row.
        steps: the difference of gains that is one unit of ``values``.
    """

    def __init__(self, size: int) -> None:
        rows = min(MOST_TERMS, MOST_BYTES // size) if size else 0
        self.values = np.zeros((rows, size), dtype=np.uint8)
        self.lows: Floats = np.zeros(rows)
        self.steps: Floats = np.zeros(rows)
        self._rows: dict[int, int] = {}
        self._used = 0
        self._lock = threading.Lock()

    def rows(self, postings: Postings, terms: Sequence[int]) -> list[int]:
        """The row of each term; ``NONE`` if it is rare, or if there is none left."""
        try:
            return [self._rows[term] for term in terms]
        except KeyError:
            return [self._rows[term] if term in self._rows else self._add(postings, term) for term in terms]

    def _add(self, postings: Postings, term: int) -> int:
        start, end = postings.span(term)
        row = NONE
        if (end - start) * SHARE >= postings.size:
            with self._lock:
                if self._used < len(self.values):
                    row = self._used
                    self._used += 1
        if row != NONE:
            documents, weights = postings.documents[start:end], postings.weights[start:end]
            self.lows[row], self.steps[row] = _fill(documents, weights, postings.base[term], self.values[row])
        self._rows[term] = row  # last: from now on, other threads use it
        return row


@compiled
def _fill(documents: Positions, weights: Array, base: float, values: Array) -> tuple[float, float]:
    low = min(0.0, weights.min() - base)
    step = (max(0.0, weights.max() - base) - low) / 255
    scale = 1 / step if step > 0 else 0.0
    values[:] = min(255, math.ceil(-low * scale))
    for place in range(len(documents)):
        values[documents[place]] = min(255, math.ceil((weights[place] - base - low) * scale))
    return low, step


@compiled
def refined(
    coarse: Coarse, documents: Positions, sums: Array, k: int, bound: float, rest: float
) -> tuple[Positions, float]:
    """The documents that can still be among the k best, with the most that the terms can add added to their sums.

    Args:
        coarse: the terms.
        documents: documents that were seen.
        sums: see ``Memory``.
        k: how many documents are searched.
        bound: a gain that at least k documents have.
        rest: the most that is missing in the sums: that of other terms that were not read, and rounding errors.

    Returns:
        The documents, and a better bound.
    """
    near, totals = np.empty_like(documents), np.empty(len(documents))
    kept = 0
    for document in documents:
        near[kept], totals[kept] = document, sums[document] + coarse.most
        kept += totals[kept] >= bound - rest
    for i in range(len(coarse.rows)):  # one column after another, without branches: the processor waits for memory less
        values, step = coarse.values[coarse.rows[i]], coarse.steps[i]
        here = 0
        for j in range(kept):
            near[here], totals[here] = near[j], totals[j] - step * (255 - values[near[j]])
            here += totals[here] >= bound - rest
        kept = here
    near, totals = near[:kept], totals[:kept]
    heap, items = np.full(k, -np.inf), np.empty(k, dtype=np.int32)
    for j in range(kept):
        sums[near[j]] = totals[j] if abs(totals[j]) > TINY else TINY
        if totals[j] > heap[0]:
            replace_lowest(heap, items, totals[j], 0)
    bound = max(bound, heap[0] - coarse.step)
    return near[totals >= bound - rest], bound


@compiled
def scan(
    coarse: Coarse, k: int, least: float, sums: Array, allowed: Mask, touched: Positions, count: int
) -> tuple[int, float]:
    """Adds documents without a sum to ``touched``: those that can be among the k best, and whose sum can be ``least``.

    Returns:
        The new ``count``, and a gain that at least k documents have; minus infinity if there are not so many.
    """
    # In whole numbers of 16 bits, so that the loops are vectorized; rounded up, so that they are bounds.
    unit = max(255 * coarse.step / (65535 - 255 * len(coarse.steps)), 1e-300)
    factors = (coarse.steps / unit).astype(np.uint16) + np.uint16(1)
    slack = int(factors.sum()) + 255 * len(factors)  # more than the difference from a document's gain
    bound = int(max(0.0, min(np.floor((least - coarse.low) / unit), 65536.0)))
    heap, items = np.full(k, -1.0), np.empty(k, dtype=np.int32)
    totals = np.empty(BLOCK, dtype=np.uint16)
    size = coarse.values.shape[1]
    for start in range(0, size, BLOCK):
        part = totals[: min(BLOCK, size - start)]
        part[:] = 0
        for i in range(len(factors)):
            _add_scaled(part, coarse.values[coarse.rows[i], start : start + BLOCK], factors[i])
        if _maximum(part) < bound:
            continue
        for j in range(len(part)):
            if part[j] < bound or sums[start + j] != 0 or (len(allowed) and not allowed[start + j]):
                continue
            sums[start + j] = TINY
            touched[count] = start + j
            count += 1
            if part[j] > heap[0]:
                replace_lowest(heap, items, part[j], 0)
                bound = max(bound, int(heap[0]) - slack)
    return count, coarse.low + unit * (heap[0] - slack) if heap[0] >= 0 else -np.inf


@compiled
def _add_scaled(totals: Array, values: Array, factor: int) -> None:
    for j in range(len(totals)):
        totals[j] += np.uint16(factor * values[j])


@compiled
def _maximum(totals: Array) -> int:
    largest = np.uint16(0)
    for total in totals:
        largest = max(largest, total)
    return int(largest)
