"""Finds the best documents of a query without scoring all documents, but with exactly the same ranking.

In a large collection, only few documents are candidates (see ``pruning``, and ``kernel`` if numba is installed). Only
these are scored, term by term in the order of the query.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from qabench.retrieval.bm25.arrays import Array, Floats, Mask
from qabench.retrieval.bm25.postings import Postings
from qabench.retrieval.bm25.pruning import Search

if TYPE_CHECKING:
    from qabench.retrieval.bm25.columns import Columns

SMALL = 4096  # documents; for fewer, scoring all of them takes less time than importing numba
FEW_POSTINGS = 100_000  # of a query's terms; for fewer, scoring all documents is faster than pruning without numba


def top(
    postings: Postings, terms: Sequence[int], k: int, mask: Mask | None = None, columns: Columns | None = None
) -> tuple[Array, Floats]:
    """The ``k`` best documents and their scores, best first, equal scores by ascending position.

    Args:
        postings: the index.
        terms: the terms of the query in order, with repetitions; may be empty.
        k: the number of documents; fewer are returned if there are not enough.
        mask: the documents that may be returned, one boolean per document; None for all.
        columns: see ``columns_of``; with them, the compiled search is faster.
    """
    allowed = postings.size if mask is None else int(np.count_nonzero(mask))
    k = min(k, allowed)
    if k == 0:
        return np.empty(0, dtype=np.int64), np.empty(0)
    if mask is not None and allowed <= SMALL < postings.size:
        candidates = np.flatnonzero(mask).astype(np.int32)
        scores = postings.scores_of(terms, candidates)
        best = best_of(scores, k)
        return candidates[best].astype(np.int64), scores[best]
    if allowed <= SMALL or 4 * k >= allowed:
        return top_of(postings.scores(terms), k, mask)
    if (kernel := _kernel()) is not None:
        return kernel.search(postings, terms, k, mask, columns) or top_of(postings.scores(terms), k, mask)
    times = Counter(terms)
    few = sum(map(postings.frequency, times)) <= FEW_POSTINGS
    if few or any(postings.highest[term] < 0 for term in times):
        return top_of(postings.scores(terms), k, mask)
    candidates = Search(postings, times, k, mask).candidates()
    scores = postings.scores_of(terms, candidates)
    order = np.lexsort((candidates, -scores))[:k]
    return candidates[order].astype(np.int64), scores[order]


def columns_of(postings: Postings) -> Columns | None:
    """Coarse gains of frequent terms, which searches of these postings fill and use; None if none would use them."""
    if postings.size <= SMALL or (kernel := _kernel()) is None:
        return None
    columns: Columns = kernel.Columns(postings.size)
    return columns


@functools.cache
def _kernel() -> Any:
    """The compiled search, or None without numba, whose import takes half a second."""
    try:
        from qabench.retrieval.bm25 import kernel
    except (ImportError, RuntimeError):  # numba raises RuntimeError if no folder for its cache is writable
        return None
    return kernel


def best_of(scores: Floats, k: int) -> Array:
    """The positions of the ``k`` largest scores, largest first, equal scores by ascending position."""
    if 4 * k < len(scores):
        bound = np.partition(scores, len(scores) - k)[len(scores) - k]
        above = np.flatnonzero(scores > bound)
        level = np.flatnonzero(scores == bound)[: k - len(above)]
        return np.concatenate((above[np.argsort(-scores[above], kind="stable")], level))
    return np.argsort(-scores, kind="stable")[:k]


def top_of(scores: Floats, k: int, mask: Mask | None = None) -> tuple[Array, Floats]:
    """The same as ``top``, from the scores of all documents."""
    if mask is None:
        best = best_of(scores, k)
    else:
        places = np.flatnonzero(mask)
        best = places[best_of(scores[places], k)]
    return best, scores[best]
