"""The scores of the package ``rank_bm25``, computed by the package itself."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from qabench.errors import MissingExtra, unknown_name
from qabench.retrieval.bm25.building import InvertedScorer
from qabench.retrieval.bm25.counts import TermCounts
from qabench.retrieval.bm25.formulas import Parameters
from qabench.retrieval.bm25.search import Array, Floats, Mask, Results, Search, top

try:
    import rank_bm25
except ImportError:
    raise MissingExtra(
        "the backend rank_bm25 is not installed: pip install 'qabench[retrieval]'"
    ) from None

CLASSES = {"okapi": rank_bm25.BM25Okapi, "bm25+": rank_bm25.BM25Plus, "bm25l": rank_bm25.BM25L}


class RankBM25Scorer(InvertedScorer):
    """An inverted index that is searched by a ``rank_bm25`` class.

    Args:
        counts: see ``RankBM25Search``.
        parameters: see ``RankBM25Search``.
    """

    def __init__(self, counts: TermCounts, parameters: Parameters) -> None:
        super().__init__(counts, parameters)
        self._search = RankBM25Search(counts, parameters)
        # Infinity means that the search was chosen, so the compiled search does not replace it.
        self._queries = math.inf


class RankBM25Search(Search):
    """Searches documents, given as lists of term numbers, with a ``rank_bm25`` class.

    Args:
        counts: how often each term occurs in each document.
        parameters: the method and its parameters.

    Raises:
        InputError: the package does not have the method.
    """

    def __init__(self, counts: TermCounts, parameters: Parameters) -> None:
        options = parameters.used()
        method = str(options.pop("method"))
        if method not in CLASSES:
            raise unknown_name("rank_bm25 has no method", method, CLASSES)

        self._counts = counts

        # Terms are numbered by first occurrence, so rank_bm25 adds up their idf in the same order
        # as if it had read the texts.
        order = np.argsort(counts.documents, kind="stable")
        terms = np.repeat(np.arange(len(counts.vocabulary)), np.diff(counts.starts))
        numbers = np.repeat(terms[order], counts.counts[order])
        documents = np.split(numbers, np.cumsum(counts.lengths)[:-1])
        self._bm25 = CLASSES[method]([document.tolist() for document in documents], **options)

    def scores(self, terms: Sequence[int]) -> Floats:
        return np.asarray(self._bm25.get_scores(terms), dtype=np.float64)

    def have_a_term(self, terms: Sequence[int], documents: Array) -> Mask:
        return np.isin(documents, self._matching(terms))

    def top_matching(self, terms: Sequence[int], k: int, mask: Mask | None) -> Results:
        near = self._matching(terms)
        if mask is not None:
            near = near[mask[near]]
        best, scores = top(self.scores(terms)[near], k)
        return near[best].tolist(), scores

    def _matching(self, terms: Sequence[int]) -> Array:
        """Return the documents with a term of the query, ascending."""
        starts = self._counts.starts
        parts = [self._counts.documents[starts[term] : starts[term + 1]] for term in terms]
        # NumPy cannot join an empty list of arrays, so an empty array comes first.
        return np.unique(np.concatenate([self._counts.documents[:0], *parts]))

    def top(self, terms: Sequence[int], k: int, mask: Mask | None) -> Results:
        return top(self.scores(terms), k, mask)
