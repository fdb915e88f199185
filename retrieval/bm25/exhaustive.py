"""The inverted index, and its search in NumPy, which scores all documents: the search without numba."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Floats = np.ndarray[Any, np.dtype[np.float64]]
Ints = np.ndarray[Any, np.dtype[np.integer[Any]]]
Mask = np.ndarray[Any, np.dtype[np.bool_]]

MOST_ADDENDS = 1 << 17  # of a query's terms to the scores of all documents, as one array: few fit in the cache


@dataclass(frozen=True, slots=True)
class Postings:
    """A sparse matrix of documents and terms, stored term by term (compressed sparse columns).

    Attributes:
        starts: the start of each term's postings, and the end of the last; int64, terms + 1.
        documents: positions of documents, ascending for each term; int32.
        weights: the addends of the term to the scores of these documents; float64.
        base: the addend of each term to the score of a document without it; float64, one per term.
        highest: the largest weight of each term minus its base; float64, one per term.
        size: the number of documents.
    """

    starts: Array
    documents: Array
    weights: Array
    base: Floats
    highest: Floats
    size: int

    def scores(self, terms: Sequence[int]) -> Floats:
        """Return the score of every document; ``terms`` in the query's order, with repetitions.

        The additions are in the same order as in ``rank_bm25``, so that the same scores are equal.
        """
        base = self.base[list(terms)]
        if not base.any():
            return self._sums(terms, base)
        addends = [(self.documents[part], self.weights[part]) for part in self._parts(terms)]
        if len(terms) * self.size <= MOST_ADDENDS:
            matrix = np.repeat(base[:, None], self.size, axis=1)
            for row, (documents, weights) in zip(matrix, addends, strict=True):
                row[documents] = weights
            return np.asarray(np.add.reduce(matrix))  # row by row
        scores = np.zeros(self.size)
        for addend, (documents, weights) in zip(base, addends, strict=True):
            raised = scores[documents] + weights
            scores += addend
            scores[documents] = raised
        return scores

    def top(self, terms: Sequence[int], k: int, mask: Mask | None) -> tuple[list[int], list[float]]:
        """Return the positions and scores of the ``k`` best documents; see ``top``.

        If all terms add to all documents (bm25+), the gains of the documents are added up, which is faster than scores,
        and only those are scored whose gain is that of the k-th best, but for rounding errors.
        """
        base = self.base[list(terms)]
        if len(terms) * self.size <= MOST_ADDENDS or 4 * k >= self.size or not base.any():
            return top(self.scores(terms), k, mask)
        gains = self._sums(terms, base)
        if mask is not None:
            gains[~mask] = -np.inf
        largest = float((np.abs(base) + self.highest[list(terms)]).sum())
        slack = 4 * (len(terms) + 2) * np.finfo(np.float64).eps * largest
        near = np.flatnonzero(gains >= np.partition(gains, self.size - k)[self.size - k] - slack)
        if len(near) > self.size // 8:
            return top(self.scores(terms), k, mask)
        scores, positions = np.zeros(len(near)), near.astype(np.int32)  # of the type of ``documents``, or it is copied
        for part, addend in zip(self._parts(terms), base, strict=True):
            documents = self.documents[part]
            places = documents.searchsorted(positions)
            present = documents.take(places, mode="clip") == positions
            scores += np.where(present, self.weights[part].take(places, mode="clip"), addend)
        best, values = top(scores, k)
        return near[best].tolist(), values

    def _parts(self, terms: Sequence[int]) -> list[slice]:
        return [slice(self.starts[term], self.starts[term + 1]) for term in terms]

    def _sums(self, terms: Sequence[int], base: Floats) -> Floats:
        """Add up the weights of terms, less ``base``, in the documents that have them, term by term."""
        if not terms:
            return np.zeros(self.size)
        parts = self._parts(terms)
        gains = np.concatenate([self.weights[part] - addend for part, addend in zip(parts, base, strict=True)])
        documents = np.concatenate([self.documents[part] for part in parts])
        return np.asarray(np.bincount(documents, gains, self.size), dtype=np.float64)


def top(scores: Floats, k: int, mask: Mask | None = None) -> tuple[list[int], list[float]]:
    """Return the positions and scores of the ``k`` best documents, best first, equal scores by ascending position.

    Args:
        scores: the score of every document.
        k: the number of documents; fewer are returned if there are not enough.
        mask: the documents that may be returned, one boolean per document; None for all.
    """
    if mask is None:
        best = _best(scores, k)
    else:
        places = np.flatnonzero(mask)
        best = places[_best(scores[places], k)]
    return best.tolist(), scores[best].tolist()


def _best(scores: Floats, k: int) -> Array:
    if 4 * k < len(scores):
        bound = np.partition(scores, len(scores) - k)[len(scores) - k]
        above = np.flatnonzero(scores > bound)
        level = np.flatnonzero(scores == bound)[: k - len(above)]
        return np.concatenate((above[np.argsort(-scores[above], kind="stable")], level))
    return np.argsort(-scores, kind="stable")[:k]
