"""The inverted index: for each term, the documents that contain it and its weights in them, as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from qabench.retrieval.bm25.arrays import Array, Floats, Positions
from qabench.retrieval.bm25.formulas import Parameters

MOST_ADDENDS = 1 << 17  # of a query's terms to the scores of all documents, as one array: few fit in the cache
POSTINGS_PER_STEP = 1 << 18  # few enough that temporary arrays stay in the processor's cache


@dataclass(frozen=True, slots=True)
class Collection:
    """Statistics of the collection that scores depend on: the idf of each term and the mean document length."""

    idf: Floats
    mean_length: float


@dataclass(frozen=True, slots=True)
class Postings:
    """A sparse matrix of documents and terms, stored term by term (compressed sparse columns).

    Attributes:
        starts: the start of each term's postings, and the end of the last; int64, terms + 1.
        documents: positions of documents, ascending for each term; int32.
        weights: the addends of the term to the scores of these documents; float64 or float32.
        base: the addend of each term to the score of a document without it; float64, one per term.
        highest: the largest weight of each term minus its base; float64, one per term.
        size: the number of documents.
    """

    starts: Array
    documents: Positions
    weights: Array
    base: Floats
    highest: Floats
    size: int

    def frequency(self, term: int) -> int:
        """The number of documents that contain ``term``."""
        return int(self.starts[term + 1] - self.starts[term])

    def check_source(self) -> None:
        """Raises InputError if the arrays are in a file that changed and can no longer be read."""

    def span(self, term: int) -> tuple[int, int]:
        """The start and the end of the term's postings."""
        return int(self.starts[term]), int(self.starts[term + 1])

    def spans(self, terms: Array) -> tuple[Array, Array]:
        """The starts and the ends of several terms' postings."""
        return self.starts[terms], self.starts[terms + 1]

    def of(self, term: int) -> tuple[Positions, Array]:
        """The documents that contain ``term``, and its weights in them."""
        start, end = self.span(term)
        return self.documents[start:end], self.weights[start:end]

    def lookup(self, term: int, documents: Positions) -> Floats:
        """The addend of ``term`` to the score of each of ``documents`` (ascending int32 positions)."""
        having, weights = self.of(term)
        return self._found(term, documents, having, weights, places_of(documents, having))

    def _found(self, term: int, documents: Positions, having: Positions, weights: Array, places: Array) -> Floats:
        found = having.take(places, mode="clip") == documents
        return np.where(found, weights.take(places, mode="clip"), self.base[term])

    def scores(self, terms: Sequence[int]) -> Floats:
        """The score of every document; ``terms`` in the query's order, with repetitions.

        The additions are in the same order as in ``rank_bm25``, so that the same scores are equal.
        """
        if not terms:
            return np.zeros(self.size)
        base = self.base[list(terms)]
        having, weights = zip(*map(self.of, terms), strict=True)
        if not base.any():
            return np.asarray(np.bincount(np.concatenate(having), np.concatenate(weights), self.size), dtype=np.float64)
        if len(terms) * self.size <= MOST_ADDENDS:
            addends = np.empty((len(terms), self.size))
            addends[:] = base[:, None]
            rows = np.repeat(np.arange(0, addends.size, self.size), list(map(len, having)))
            addends.ravel()[rows + np.concatenate(having)] = np.concatenate(weights)
            return np.asarray(np.add.reduce(addends))  # row by row
        scores = np.zeros(self.size)
        for number, documents in enumerate(having):
            raised = scores[documents] + weights[number]
            scores += base[number]
            scores[documents] = raised
        return scores

    def scores_of(self, terms: Sequence[int], documents: Positions) -> Floats:
        """``scores(terms)[documents]``, to the last bit, for a few documents (ascending int32 positions)."""
        added = {term: self.lookup(term, documents) for term in dict.fromkeys(terms)}
        scores = np.zeros(len(documents))
        for term in terms:
            scores += added[term]
        return scores


def places_of(documents: Positions, having: Positions) -> Array:
    """The insertion points of ``documents`` in ``having``; both ascending."""
    # Both are int32: for different types, numpy would copy all postings first.
    return having.searchsorted(documents)


def weigh(
    starts: Array,
    documents: Positions,
    counts: Array,
    lengths: Array,
    parameters: Parameters,
    dtype: str,
    collection: Collection | None = None,
) -> Postings:
    """Computes the weights of postings from the counts of each term in each document.

    Args:
        starts: see ``Postings``.
        documents: see ``Postings``.
        counts: how often the term of each posting occurs in its document.
        lengths: the number of terms of each document.
        parameters: the method and its parameters.
        dtype: the type of the weights, "float64" or "float32".
        collection: the statistics of the whole collection; by default, those of these documents.
    """
    frequencies = np.diff(starts)
    if collection is None:
        collection = Collection(parameters.idf(len(lengths), frequencies), float(lengths.sum()) / len(lengths))
    idf = collection.idf
    relative = parameters.relative_lengths(lengths, collection.mean_length)
    base = parameters.base(idf)
    weights = np.empty(len(documents), dtype=dtype)
    highest = np.empty(len(idf))
    first = 0
    while first < len(idf):
        last = max(first + 1, int(np.searchsorted(starts, starts[first] + POSTINGS_PER_STEP)) - 1)
        part = slice(starts[first], starts[last])
        each = np.repeat(idf[first:last], frequencies[first:last])
        weights[part] = parameters.weights(each, counts[part], relative[documents[part]])
        begins = starts[first:last] - starts[first]
        highest[first:last] = np.maximum.reduceat(weights[part], begins) - base[first:last]
        first = last
    return Postings(starts, documents, weights, base, highest, len(lengths))
