"""BM25 over strings and over columns of datasets, with the scores of ``rank_bm25`` to the last bit.

Sources: Robertson and Zaragoza, The Probabilistic Relevance Framework: BM25 and Beyond, 2009; Lu, BM25S: Orders of
magnitude faster lexical search via eager sparse scoring, 2024, for weights computed when the index is built.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import numpy as np

from qabench.errors import InputError, QabenchError
from qabench.io.tables import Displayed, Table
from qabench.io.workers import map_parallel
from qabench.retrieval.bm25.arrays import Floats, Mask
from qabench.retrieval.bm25.backends import Scorer
from qabench.retrieval.bm25.building import Content, build, check_belongs
from qabench.retrieval.bm25.formulas import METHODS, Parameters
from qabench.retrieval.bm25.hits import Hits
from qabench.retrieval.bm25.reading import Source
from qabench.retrieval.bm25.stored import load, save
from qabench.retrieval.bm25.tokenizers import Tokenizer, name_of, tokenize, words

__all__ = ["METHODS", "BM25Index", "Hits", "Tokenizer", "words"]

QUERIES_PER_PROCESS = 250  # for a collection of 100,000 documents


class BM25Index(Displayed):
    """A BM25 index of documents.

    Documents with equal scores are ordered by ascending position. ``rank_bm25`` leaves that order to NumPy's unstable
    argsort, which differs between processors.

    A document without terms scores like a document without any term of the query. A query term that is in no document
    adds 0. A query without known terms gives every document the score 0, so the first k are returned. If k is larger
    than the collection, all documents are returned.

    Args:
        texts: an iterable of strings, the documents. It is read once, in blocks; the strings are not stored.
        method: "bm25+", "okapi" or "bm25l" (``BM25Plus``, ``BM25Okapi`` and ``BM25L`` of ``rank_bm25``, whose BM25L
            multiplies the paper's weight by the term's count), or "lucene", "atire" or "robertson" (as in bm25s).
        k1: saturation of repeated terms, 0 or more.
        b: weight of length normalization, 0 to 1.
        delta: the constant of bm25+ (default 1) and bm25l (default 0.5); not used by the other methods.
        epsilon: for okapi, the idf of terms with negative idf, as a fraction of the mean idf.
        tokenizer: a function from a string to its terms, for documents and queries: ``Words`` (the default; it can
            also remove stop words and stem), ``FanOutQAWords``, or any other. A method ``batch`` is used if it exists.
        backend: "qabench"; or "bm25s" or "rank_bm25" to compute scores with that package, which is slower.
        dtype: "float64", equal to ``rank_bm25`` to the last bit; or "float32", with two thirds of the memory and
            relative differences of about 1e-7.
        progress: called with the number of documents processed, after each block.

    Raises:
        InputError: an unknown method, backend or dtype, a parameter out of range, a document that is not a string, no
            documents, or no terms in the documents.
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
    def from_dataset(
        cls, dataset: Any, column: str | Sequence[str] = "text", filters: str | Sequence[str] = (), **options: Any
    ) -> Self:
        """An index of a dataset's rows; several columns are joined by a newline.

        Args:
            dataset: a ``datasets.Dataset``, a streaming ``IterableDataset``, or any iterable of rows as dicts.
            column: the name of one or several string columns.
            filters: columns of strings, numbers or booleans by which a search can be restricted; see ``search``.
            **options: see the class.

        Raises:
            InputError: a row does not have the column, or its value is not a string.
        """
        return cls(Source.of_dataset(dataset, column, filters), **options)

    def __len__(self) -> int:
        """The number of documents."""
        return self._content.size

    def tables(self) -> list[Table]:
        """Size, columns, method and tokenizer, as ``print`` and notebooks show them."""
        content = self._content
        about = {
            "documents": f"{self.size:,}",
            "columns": ", ".join(content.origin.columns or ()),
            "filters": ", ".join(content.origin.filters),
            **{name: f"{value}" for name, value in self.parameters.used().items()},
            "tokenizer": name_of(self.tokenizer),
        }
        return [Table("BM25Index", ["property", "value"], [[name, value] for name, value in about.items() if value])]

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
        """The query's score for every document, float64; zeros if the index knows none of its terms."""
        terms = tokenize(self.tokenizer, [query])[0]
        with _enough_memory(self.size):
            return self._content.scorer.scores(terms)

    def search(self, query: str, k: int = 10, *, mask: Any = None, where: Mapping[str, Any] | None = None) -> Hits:
        """The ``min(k, documents)`` best documents; equal scores are ordered by ascending position.

        Args:
            query: a string.
            k: the number of documents, at least 1.
            mask: one boolean per document: whether it may be returned. Scores are still those of the whole collection.
            where: filter column -> the allowed value, or a list of allowed values, such as ``{"chapter": 3}``.

        Raises:
            InputError: k is below 1, the mask has another length or type, a column is not a filter, or no document has
                the value.
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
        """``search`` for each query, tokenized together, on all processors if there are many queries.

        Args:
            queries: the queries.
            k: see ``search``.
            mask: see ``search``.
            where: see ``search``.
            workers: the number of processes; None: one per processor if the batch is large enough; 1: this process
                only. Only Linux uses more than one: they are forked and share the index's memory.
        """
        k, allowed = checked_k(k), self._mask(mask, where)
        terms = tokenize(self.tokenizer, checked_queries(queries))
        least = QUERIES_PER_PROCESS * 100_000 // self.size
        return map_parallel(lambda query: self._hits(query, k, allowed), terms, workers, least)

    def save(self, path: str | Path) -> None:
        """Writes the index to one file, atomically; see ``load``.

        Raises:
            InputError: the backend is another package, or the tokenizer has no name (a lambda).
            QabenchError: it cannot be written. An existing file is not changed.
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
            dataset: the dataset or the strings that the index must belong to; None skips this check. The dataset is
                not read if its fingerprint in ``datasets`` is that of the indexed dataset.
            tokenizer: needed if the index was built with a custom function; must have the same name.
            memory_map: False reads and checks the whole file now.
            verify: check all postings now, which reads the whole file.

        Raises:
            InputError: not an index, another format, another dataset or tokenizer, or damaged. Header, vocabulary and
                tables are checked here. The postings of a term are checked by the first search that uses them, which
                raises this error.
        """
        index = cls.__new__(cls)
        index._content = load(Path(path), dataset, tokenizer, memory_map, verify)
        return index

    def check_belongs(self, dataset: Any) -> None:
        """Raises InputError unless the index was built from this dataset, or from these strings; see ``load``."""
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
            raise InputError(f"the mask has type {given.dtype} and shape {given.shape}; expected {self.size} booleans")
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
        raise InputError(f"k is {k}; it must be at least 1")
    return k


def checked_queries(queries: Iterable[str]) -> list[str]:
    """The queries in a list. Raises InputError if one is not a string."""
    if isinstance(queries, str):
        raise InputError("expected a list of queries, got a single string: put it in a list")
    found = list(queries)
    for number, query in enumerate(found):
        if not isinstance(query, str):
            raise InputError(f"query {number} is {query!r:.60}; expected a string")
    return found
