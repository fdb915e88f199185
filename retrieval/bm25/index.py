"""BM25 over texts and over columns of datasets: the scores of ``rank_bm25``, to the last bit, far faster.

Sources: Robertson and Zaragoza, The Probabilistic Relevance Framework: BM25 and Beyond, 2009; Lu, BM25S: Orders of
magnitude faster lexical search via eager sparse scoring, 2024, for weights computed when the index is built.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from qabench.errors import InputError, QabenchError
from qabench.processes import map_parallel
from qabench.retrieval.bm25.arrays import Floats, Mask
from qabench.retrieval.bm25.backends import Scorer
from qabench.retrieval.bm25.building import Content, build, check_belongs
from qabench.retrieval.bm25.formulas import METHODS, Parameters
from qabench.retrieval.bm25.reading import Source
from qabench.retrieval.bm25.stored import load, save
from qabench.retrieval.bm25.tokenizers import Tokenizer, tokenize, words

__all__ = ["METHODS", "BM25Index", "Hits", "Tokenizer", "words"]

QUERIES_A_PROCESS = 250  # of a collection of a hundred thousand documents


@dataclass(frozen=True, slots=True)
class Hits:
    """What one query found, the best first: positions of documents in the index's order, and their scores."""

    positions: list[int]
    scores: list[float]


class BM25Index:
    """A BM25 index of texts.

    Ties: documents of equal score come by ascending position, always. ``rank_bm25`` leaves the order of ties to
    numpy's unstable argsort, which differs from one processor to the next: scores and groups of ties are the same.

    What is empty: a document without terms scores as one that has none of the query's terms; a term that no document
    has counts nothing; a query without known terms gives every document the score 0, so the first k come back; a k
    beyond the collection gives all of it. No documents at all, or not one term in them, is an error.

    Args:
        texts: the documents, in any iterable; read once, about a million characters at a time, and not kept.
        method: "bm25+", "okapi" or "bm25l" (``rank_bm25``'s BM25Plus, BM25Okapi and BM25L; the last multiplies the
            paper's weight by the term's count), "lucene", "atire" or "robertson" (as in bm25s).
        k1, b: saturation of repetitions, from 0; share of length normalisation, 0 to 1.
        delta: of bm25+ (1 by default) and bm25l (0.5); the others have none.
        epsilon: okapi's floor for terms of negative idf, a share of the mean idf.
        tokenizer: from a text to its terms, for documents and queries alike: ``Words`` (the default, also with stop
            words or a stemmer), ``FanOutQAWords``, or any function; of one with a method ``batch`` that is used.
        backend: "qabench"; or "bm25s" or "rank_bm25", to have that package score: slower, all terms in memory.
        dtype: "float64", equal to rank_bm25 to the last bit; or "float32", two thirds of the memory, scores off by
            about 1e-7 of their size.
        progress: is told the number of documents done, block by block.

    Raises:
        InputError: an unknown method, backend or dtype, a parameter out of its range, something that is no text, no
            document, or not one term in all of them.
        MissingExtra: the package of another backend is not installed.
    """

    _content: Content

    def __init__(
        self,
        texts: Iterable[str] | Source,
        method: str = "bm25+",
        k1: float = 1.5,
        b: float = 0.75,
        delta: float | None = None,
        epsilon: float = 0.25,
        tokenizer: Tokenizer = words,
        backend: str = "qabench",
        dtype: str = "float64",
        progress: Callable[[int], None] | None = None,
    ) -> None:
        source = texts if isinstance(texts, Source) else Source.of_texts(texts)
        parameters = Parameters.of(method, k1, b, delta, epsilon)
        self._content = build(source, parameters, tokenizer, backend, dtype, progress)

    @classmethod
    def from_texts(cls, texts: Iterable[str], **options: Any) -> Self:
        """An index of texts; see the class."""
        return cls(texts, **options)

    @classmethod
    def from_dataset(
        cls, dataset: Any, column: str | Sequence[str] = "text", filters: str | Sequence[str] = (), **options: Any
    ) -> Self:
        """An index of a dataset's rows; several columns are joined by a newline.

        Args:
            dataset: a ``datasets.Dataset``, a streaming ``IterableDataset``, or anything that gives rows as dicts.
            column: the name of a text column, or several.
            filters: columns of texts, numbers or truth values by which a search can be narrowed; see ``search``.
            **options: see the class.

        Raises:
            InputError: a row has no such column, or something else than text in it.
        """
        return cls(Source.of_dataset(dataset, column, filters), **options)

    def __len__(self) -> int:
        """The number of documents."""
        return self._content.size

    @property
    def size(self) -> int:
        """The number of documents."""
        return self._content.size

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer, for documents and queries."""
        return self._content.tokenizer

    @property
    def scorer(self) -> Scorer:
        """Computes the scores."""
        return self._content.scorer

    @property
    def parameters(self) -> Parameters:
        """The method and its parameters."""
        return self._content.parameters

    def scores(self, query: str) -> Floats:
        """The query's score for every document, float64; zeros when it has no term that the index knows."""
        terms = tokenize(self.tokenizer, [query])[0]
        with _enough_memory(self.size):
            return self._content.scorer.scores(terms)

    def search(self, query: str, k: int = 10, *, mask: Any = None, where: Mapping[str, Any] | None = None) -> Hits:
        """The ``min(k, documents)`` best documents; among equal scores the one that stands first comes first.

        Args:
            query: a text.
            k: how many, at least 1.
            mask: one truth value a document, which may be given; scores stay those of the whole collection.
            where: by filter column a value, or several any of which will do: ``{"chapter": 3}``.

        Raises:
            InputError: k below 1, a mask of another length or type, a column that is no filter, or a value that no
                document has.
        """
        return self._hits(tokenize(self.tokenizer, checked_queries([query]))[0], checked_k(k), self._mask(mask, where))

    def search_batch(
        self,
        queries: Iterable[str],
        k: int = 10,
        *,
        mask: Any = None,
        where: Mapping[str, Any] | None = None,
        workers: int | None = None,
    ) -> list[Hits]:
        """``search`` for each query, tokenized together, over all processors where there are many.

        Args:
            queries, k, mask, where: see ``search``.
            workers: processes; None for one a processor, where the batch is worth it, 1 for none. Linux alone has more
                than one: they are forked and share the index's memory.
        """
        k, allowed = checked_k(k), self._mask(mask, where)
        terms = tokenize(self.tokenizer, checked_queries(queries))
        least = QUERIES_A_PROCESS * 100_000 // self.size
        return map_parallel(lambda query: self._hits(query, k, allowed), terms, workers, least)

    def save(self, path: str | Path) -> None:
        """Writes the index to one file, whole or not at all; see ``load``.

        Raises:
            InputError: the backend is another package, or the tokenizer has no name (a lambda).
            QabenchError: it cannot be written; what was there stays.
        """
        save(self._content, Path(path))

    @classmethod
    def load(
        cls,
        path: str | Path,
        dataset: Any = None,
        *,
        tokenizer: Tokenizer | None = None,
        memory_map: bool = True,
        verify: bool = False,
    ) -> Self:
        """Opens a saved index. Its postings stay on the disk until a query uses them.

        Args:
            path: the file.
            dataset: the dataset or the texts that the index must belong to; None skips this check. A dataset with the
                fingerprint that ``datasets`` gave the indexed one is not read; any other is read in full.
            tokenizer: needed if the index was built with a custom function; must have the same name.
            memory_map: False reads and checks the whole file now.
            verify: check all postings now, which reads the whole file.

        Raises:
            InputError: not an index, another format, another dataset or tokenizer, or damaged. Header, vocabulary and
                tables are checked here; the postings of a term when a search first uses it, so that the search raises.
        """
        index = cls.__new__(cls)
        index._content = load(Path(path), dataset, tokenizer, memory_map, verify)
        return index

    def check_belongs(self, dataset: Any) -> None:
        """Raises InputError unless the index was made of this dataset's rows, or of these texts; see ``load``."""
        check_belongs(self._content, dataset)

    def _hits(self, terms: Sequence[str], k: int, mask: Mask | None) -> Hits:
        with _enough_memory(self.size):
            positions, scores = self._content.scorer.top(terms, k, mask)
        return Hits(positions.tolist(), scores.tolist())

    def _mask(self, mask: Any, where: Mapping[str, Any] | None) -> Mask | None:
        chosen = None if where is None else self._content.filters.mask(where)
        if mask is None:
            return chosen
        given = np.asarray(mask)
        if given.dtype != bool or given.shape != (self.size,):
            raise InputError(
                f"the mask has type {given.dtype} and shape {given.shape}; expected {self.size} truth values"
            )
        return given if chosen is None else given & chosen


@contextmanager
def _enough_memory(documents: int) -> Iterator[None]:
    try:
        yield
    except MemoryError:
        raise QabenchError(f"not enough memory for a search among {documents} documents") from None


def checked_k(k: int) -> int:
    """``k``. Raises InputError if it is below 1."""
    if k < 1:
        raise InputError(f"k is {k}; it is the number of documents to give, at least 1")
    return k


def checked_queries(queries: Iterable[str]) -> list[str]:
    """The queries in a list. Raises InputError if one is not a string."""
    if isinstance(queries, str):
        raise InputError("one query was given where a list of queries is expected: put it in a list")
    found = list(queries)
    for number, query in enumerate(found):
        if not isinstance(query, str):
            raise InputError(f"query {number} is {query!r:.60}; expected a text")
    return found
