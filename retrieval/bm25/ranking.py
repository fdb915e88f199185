"""The best documents of a query, found without scoring all of them, in exactly the order that scoring all would give.

In a large collection few documents are candidates (see ``pruning``); they alone are scored, in the query's own order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from qabench.retrieval.bm25.arrays import Array, Floats, Mask
from qabench.retrieval.bm25.postings import Postings
from qabench.retrieval.bm25.pruning import Search

SMALL = 4096  # documents; below, scoring all is quicker than choosing whom to score


def top(postings: Postings, terms: Sequence[int], k: int, mask: Mask | None = None) -> tuple[Array, Floats]:
    """The ``k`` best documents and their scores, the best first, equal scores by ascending position.

    Args:
        postings: the index.
        terms: the query's terms, in its order, repeated ones too; may be empty.
        k: how many documents; fewer are given where there are no more.
        mask: which documents may be given, one truth value a document; None for all.
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
    times = Counter(terms)
    if allowed <= SMALL or 4 * k >= allowed or any(postings.highest[term] < 0 for term in times):
        return top_of(postings.scores(terms), k, mask)
    candidates = Search(postings, times, k, mask).candidates()
    scores = postings.scores_of(terms, candidates)
    order = np.lexsort((candidates, -scores))[:k]
    return candidates[order].astype(np.int64), scores[order]


def best_of(scores: Floats, k: int) -> Array:
    """The positions of the ``k`` largest scores, the largest first, equal ones by ascending position."""
    if 4 * k < len(scores):
        bound = np.partition(scores, len(scores) - k)[len(scores) - k]
        above = np.flatnonzero(scores > bound)
        level = np.flatnonzero(scores == bound)[: k - len(above)]
        return np.concatenate((above[np.argsort(-scores[above], kind="stable")], level))
    return np.argsort(-scores, kind="stable")[:k]


def top_of(scores: Floats, k: int, mask: Mask | None = None) -> tuple[Array, Floats]:
    """``top`` where all documents are scored already."""
    if mask is None:
        best = best_of(scores, k)
    else:
        places = np.flatnonzero(mask)
        best = places[best_of(scores[places], k)]
    return best, scores[best]
