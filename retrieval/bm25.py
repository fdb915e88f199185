"""BM25 over the texts of a dataset's column, in the scores of ``rank_bm25`` and at the speed of ``bm25s``.

Source: Robertson and Zaragoza, The Probabilistic Relevance Framework: BM25 and Beyond, 2009; Lv and Zhai,
Lower-Bounding Term Frequency Normalization, CIKM 2011, for BM25+.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from qabench.errors import InputError, MissingExtra

METHODS = ("bm25+", "bm25l", "lucene", "robertson", "atire")
WORD = re.compile(r"\w+")

Tokenizer = Callable[[str], Sequence[str]]


def words(text: str) -> list[str]:
    """The default tokenizer: runs of Unicode word characters, in lower case."""
    return WORD.findall(text.lower())


@dataclass(frozen=True, slots=True)
class Hits:
    """What one query found, the best first: positions of documents in the index's order, and their scores."""

    positions: list[int]
    scores: list[float]


class BM25Index:
    """A BM25 index of texts in memory.

    Args:
        texts: the documents.
        method: "bm25+" (equal to ``rank_bm25.BM25Plus``), "bm25l", "lucene", "robertson" or "atire".
        k1, b, delta: the formula's parameters; delta counts for "bm25+" and "bm25l" alone.
        tokenizer: from a text to its terms, for documents and queries alike.

    Raises:
        InputError: an unknown method, or not one term in all the documents.
        MissingExtra: bm25s is not installed.
    """

    def __init__(
        self,
        texts: Iterable[str],
        method: str = "bm25+",
        k1: float = 1.5,
        b: float = 0.75,
        delta: float = 1.0,
        tokenizer: Tokenizer = words,
    ) -> None:
        if method not in METHODS:
            raise InputError(f"unknown BM25 method {method!r}; allowed: {', '.join(METHODS)}")
        try:
            import bm25s
        except ImportError:
            raise MissingExtra("a BM25 index needs bm25s: pip install 'qabench[retrieval]'") from None
        self.tokenizer = tokenizer
        documents = [list(tokenizer(text)) for text in texts]
        if not any(documents):
            raise InputError(f"nothing to index: {len(documents)} documents without a single term")
        self.size = len(documents)
        # float64, because float32 differs from rank_bm25 in the seventh digit.
        self._bm25 = bm25s.BM25(method=method, k1=k1, b=b, delta=delta, dtype="float64", backend="numpy")
        self._bm25.index(documents, show_progress=False)

    @classmethod
    def from_dataset(cls, dataset: Any, column: str | Sequence[str] = "text", **options: Any) -> BM25Index:
        """An index of a dataset's rows, streaming or not; several columns are joined by a newline.

        Args:
            dataset: anything that gives rows as dicts, such as a ``datasets.Dataset``.
            column: the name of a text column, or several.
            **options: see the class.

        Raises:
            InputError: a row has no such column, or something else than text in it.
        """
        columns = [column] if isinstance(column, str) else list(column)

        def texts() -> Iterable[str]:
            for position, row in enumerate(dataset):
                parts = [row.get(name) for name in columns]
                if not all(isinstance(part, str) for part in parts):
                    raise InputError(
                        f"row {position} has no text in {', '.join(columns)}; the columns are {', '.join(row)}"
                    )
                yield "\n".join(parts)

        return cls(texts(), **options)

    def __len__(self) -> int:
        return self.size

    def scores(self, query: str) -> np.ndarray[Any, np.dtype[np.float64]]:
        """The query's score for every document, float64; zeros when it has no term that the index knows."""
        known = [term for term in self.tokenizer(query) if term in self._bm25.vocab_dict]
        return np.asarray(self._bm25.get_scores(known), dtype=np.float64) if known else np.zeros(self.size)

    def search(self, query: str, k: int = 10) -> Hits:
        """The ``min(k, len(index))`` best documents; among equal scores the one that stands first comes first."""
        if k < 1:
            raise InputError(f"k is {k}; it is the number of documents to give, at least 1")
        scores = self.scores(query)
        # A stable sort of the negated scores breaks ties by ascending position.
        best = np.argsort(-scores, kind="stable")[:k]
        return Hits(best.tolist(), scores[best].tolist())

    def search_batch(self, queries: Iterable[str], k: int = 10) -> list[Hits]:
        """``search`` for each query."""
        return [self.search(query, k) for query in queries]
