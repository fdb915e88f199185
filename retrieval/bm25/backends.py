"""Backends that score documents: our inverted index and, for comparison, the packages bm25s and rank_bm25."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from qabench.errors import InputError, MissingExtra
from qabench.retrieval.bm25.arrays import Array, Floats, Mask
from qabench.retrieval.bm25.formulas import Parameters
from qabench.retrieval.bm25.postings import Postings
from qabench.retrieval.bm25.ranking import columns_of, top, top_of
from qabench.retrieval.bm25.vocabulary import StoredVocabulary

if TYPE_CHECKING:
    from qabench.retrieval.bm25.columns import Columns

BACKENDS = ("qabench", "bm25s", "rank_bm25")
# Method -> class of rank_bm25.
RANK_BM25 = {"okapi": "BM25Okapi", "bm25+": "BM25Plus", "bm25l": "BM25L"}
# bm25s does not have okapi, and its bm25l is the formula of the paper, while ours is that of rank_bm25.
BM25S = ("bm25+", "lucene", "atire", "robertson")


class Scorer(Protocol):
    """Scores documents for the terms of a query, in the query's order and with repetitions."""

    def scores(self, terms: Sequence[str]) -> Floats:
        """The score of every document."""

    def top(self, terms: Sequence[str], k: int, mask: Mask | None) -> tuple[Array, Floats]:
        """The positions and scores of the k best documents in ``mask`` (None for all documents)."""


class InvertedScorer:
    """The backend of qabench: scores from postings."""

    def __init__(self, postings: Postings, vocabulary: Mapping[str, int] | StoredVocabulary) -> None:
        self.postings = postings
        self.vocabulary = vocabulary

    def __getstate__(self) -> dict[str, Any]:
        # Another process makes its own coarse gains.
        return {name: value for name, value in vars(self).items() if name != "_columns"}

    @functools.cached_property
    def _columns(self) -> Columns | None:
        return columns_of(self.postings)

    def scores(self, terms: Sequence[str]) -> Floats:
        """The score of every document."""
        self.postings.check_source()
        return self.postings.scores(self._numbers(terms))

    def top(self, terms: Sequence[str], k: int, mask: Mask | None) -> tuple[Array, Floats]:
        """The k best documents, without scoring all of them."""
        self.postings.check_source()
        return top(self.postings, self._numbers(terms), k, mask, self._columns)

    def _numbers(self, terms: Sequence[str]) -> list[int]:
        return [number for term in terms if (number := self.vocabulary.get(term)) is not None]


class _ScoringAll:
    """A backend that scores all documents to find the k best."""

    def scores(self, terms: Sequence[str]) -> Floats:
        """The score of every document."""
        raise NotImplementedError

    def top(self, terms: Sequence[str], k: int, mask: Mask | None) -> tuple[Array, Floats]:
        """The k best documents."""
        return top_of(self.scores(terms), k, mask)


class Bm25sScorer(_ScoringAll):
    """Scores from the package bm25s, without numba."""

    def __init__(self, documents: Sequence[Sequence[str]], parameters: Parameters, dtype: str) -> None:
        _check("bm25s", parameters.method, BM25S)
        try:
            import bm25s
        except ImportError:
            raise _missing("bm25s") from None
        self._size = len(documents)
        options = {name: getattr(parameters, name) for name in ("method", "k1", "b", "delta")}
        self._bm25 = bm25s.BM25(**options, dtype=dtype, backend="numpy")
        self._bm25.index([list(document) for document in documents], show_progress=False)

    def scores(self, terms: Sequence[str]) -> Floats:
        """The score of every document; zeros if no term is in the vocabulary."""
        known = [term for term in terms if term in self._bm25.vocab_dict]
        return np.asarray(self._bm25.get_scores(known), dtype=np.float64) if known else np.zeros(self._size)


class RankBm25Scorer(_ScoringAll):
    """Scores from the package rank_bm25, which FanOutQA's official retriever uses."""

    def __init__(self, documents: Sequence[Sequence[str]], parameters: Parameters) -> None:
        _check("rank_bm25", parameters.method, RANK_BM25)
        try:
            import rank_bm25
        except ImportError:
            raise _missing("rank_bm25") from None
        own = {"epsilon": parameters.epsilon} if parameters.method == "okapi" else {"delta": parameters.delta}
        kind: Any = getattr(rank_bm25, RANK_BM25[parameters.method])
        self._bm25 = kind(documents, k1=parameters.k1, b=parameters.b, **own)

    def scores(self, terms: Sequence[str]) -> Floats:
        """The score of every document."""
        return np.asarray(self._bm25.get_scores(terms), dtype=np.float64)


def _check(backend: str, method: str, methods: Any) -> None:
    if method not in methods:
        raise InputError(f"the backend {backend} does not support the method {method!r}; allowed: {', '.join(methods)}")


def _missing(package: str) -> MissingExtra:
    return MissingExtra(f"the backend {package} is not installed: pip install 'qabench[retrieval]'")
