"""BM25 over strings and over columns of datasets, with the scores of ``rank_bm25`` to the last bit.

Sources: Robertson and Zaragoza, The Probabilistic Relevance Framework: BM25 and Beyond, 2009. Lu,
BM25S: Orders of magnitude faster lexical search via eager sparse scoring, 2024, for weights that are
stored instead of computed in each query.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from qabench.data.arguments import (
    checked_flag,
    checked_function,
    checked_k,
    checked_path,
    checked_string,
)
from qabench.data.containers import is_iterable
from qabench.data.rows import Json
from qabench.errors import InputError, unknown_name
from qabench.io.tables import Displayed, Table
from qabench.retrieval.bm25.building import (
    Content,
    InvertedScorer,
    build,
    common_start,
    without,
)
from qabench.retrieval.bm25.formulas import Parameters
from qabench.retrieval.bm25.hits import Hits, IndexedDocuments
from qabench.retrieval.bm25.rows import (
    SKIP,
    Source,
    checked_columns,
    checked_empty,
    checked_strings,
    rows_of,
)
from qabench.retrieval.bm25.search import Array, Floats, Ints, Mask, Results
from qabench.retrieval.bm25.storage import load, save
from qabench.retrieval.bm25.tokenizers import Tokenizer, Words, name_of, tokenize, words

BACKENDS = ("qabench", "rank_bm25")


class BM25Index(Displayed):
    """A BM25 index of documents.

    Documents with equal scores are ordered by ascending position. ``rank_bm25`` leaves that order
    to NumPy's unstable argsort, which differs between processors.

    A document without terms scores like a document without any term of the query. A query term that
    is in no document adds 0. A query without known terms gives every document the score 0, so the
    first k are returned. If k is larger than the collection, all documents are returned.

    Args:
        texts: an iterable of strings, the documents. It is read once, in blocks. The strings are
            not stored.
        method: "bm25+", "okapi" or "bm25l" for ``rank_bm25``'s ``BM25Plus``, ``BM25Okapi`` or
            ``BM25L``, which multiplies the paper's weight by the term's count; "bm25l-paper" for
            the paper's weight; or "lucene", "atire" or "robertson", as in bm25s.
        k1: saturation of repeated terms, 0 or more.
        b: weight of length normalization, 0 to 1.
        delta: the constant of bm25+ (default 1), bm25l and bm25l-paper (default 0.5), not used by
            the other methods.
        epsilon: for okapi, the idf of terms with negative idf, as a fraction of the mean idf.
        tokenizer: a function from a string to its terms, for documents and queries: ``Words`` (the
            default; it can also remove stop words and stem), or a custom function. If the
            tokenizer has a method ``batch``, it is called with a list of strings.
        backend: "qabench", or "rank_bm25" to compute scores with that package, which is slower.
            Such an index cannot be changed or saved.
        progress: called after each block, with the number of documents or rows processed so far.

    Raises:
        InputError: an unknown method or backend, a parameter out of range, a document that is not a
            string, no documents, or no terms in the documents.

    Attributes:
        parameters: the method and its parameters.
        tokenizer: the tokenizer, for documents and queries.
        about: a JSON object that is saved with the index, such as where the documents are from.
            Callers may change it.
    """

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
        progress: Callable[[int], None] | None = None,
    ) -> None:
        if checked_string(backend, "backend") not in BACKENDS:
            raise unknown_name("unknown backend", backend, BACKENDS)
        _check_tokenizer(tokenizer)
        if progress is not None:
            checked_function(progress, "progress")
        source = texts if isinstance(texts, Source) else Source(texts)
        self.parameters = Parameters.of(method, k1, b, delta, epsilon)
        self.tokenizer = tokenizer
        self.about: Json = {}
        self._scorer: InvertedScorer
        self._replace(build(source, self.parameters, tokenizer, progress), source.data)
        if backend == "rank_bm25":
            from qabench.retrieval.bm25.reference import RankBM25Scorer

            self._scorer = RankBM25Scorer(self._scorer.counts, self.parameters)

    @classmethod
    def from_dataset(
        cls,
        dataset: Any,
        column: str | Sequence[str] = "text",
        filters: str | Sequence[str] = (),
        ids: str | None = None,
        empty: str = SKIP,
        **options: Any,
    ) -> Self:
        """Build an index of a dataset's rows. Positions are the numbers of rows, from 0.

        The texts of several columns are joined by a newline. Empty ones are left out.

        Args:
            dataset: a ``datasets.Dataset``, a streaming ``IterableDataset``, an Arrow table, a
                pandas or polars frame, or any iterable of dicts.
            column: the name of one or several string columns.
            filters: columns of strings, numbers or booleans by which a search can be restricted.
                See ``search``.
            ids: a column with a unique string or integer in each row, for ``Hits.ids``. The ids are
                saved with the index.
            empty: what to do with rows whose text columns are all empty, blank or None: "skip"
                leaves them out (``skipped`` counts them, and other rows keep their positions),
                "error" raises InputError, and "index" makes them documents without terms, as in
                ``rank_bm25``.
            **options: see the class.

        Raises:
            InputError: a row lacks one of the columns, a text is not a string, or an id is missing or
                repeated.
        """
        columns = checked_columns("column", column)
        if not columns:
            raise InputError("column is empty; name at least one text column")
        filter_columns = tuple(checked_columns("filters", filters))
        if ids is not None and not isinstance(ids, str):
            raise InputError(f"ids is {ids!r:.60}; expected the name of a column")
        source = Source(rows_of(dataset), columns, filter_columns, ids, checked_empty(empty))
        return cls(source, **options)

    def __len__(self) -> int:
        """Return the number of documents."""
        return len(self._origin.digests)

    @property
    def columns(self) -> list[str] | None:
        """Return the text columns of the indexed dataset, or None if the documents were strings."""
        return self._origin.columns

    @property
    def filters(self) -> dict[str, list[Any]]:
        """Return the distinct values of each filter column."""
        values = self._filters.values
        return {column: [json.loads(value) for value in values[column]] for column in values}

    @property
    def positions(self) -> Ints:
        """Return the position of each document, ascending. Removed and skipped rows leave gaps."""
        return self._origin.numbers()

    @property
    def ids(self) -> list[str] | None:
        """Return the ids of the documents, or None if no column with ids was named."""
        return None if self._origin.ids is None else self._origin.ids.all()

    @property
    def skipped(self) -> int:
        """Return the number of positions without a document: skipped rows and removed documents."""
        return self._origin.span - len(self)

    def tables(self) -> list[Table]:
        """Return size, columns, method and tokenizer, as ``print`` and notebooks show them."""
        about = {
            "documents": f"{len(self):,}",
            "columns": ", ".join(self._origin.columns or ()),
            "rows skipped or removed": f"{self.skipped:,}" if self.skipped else "",
            "ids": self._origin.id_column or "",
            "filters": ", ".join(self._origin.filters),
            **{name: str(value) for name, value in self.parameters.used().items()},
            "tokenizer": name_of(self.tokenizer),
        }
        rows = [[name, value] for name, value in about.items() if value]
        return [Table("BM25Index", ["property", "value"], rows)]

    def scores(self, query: str) -> Floats:
        """Return the query's score for every position: an array (positions,) of float64.

        All scores are 0 if no document has any of the query's terms. The score of a position
        without a document is -inf.
        """
        checked_string(query, "the query")
        scores = self._scorer.scores(tokenize(self.tokenizer, [query])[0])
        if self._origin.positions is None:
            return scores
        by_position = np.full(self._origin.span, -np.inf)
        by_position[self._origin.positions] = scores
        return by_position

    def search(
        self,
        query: str,
        k: int = 10,
        *,
        mask: Any = None,
        where: Mapping[str, Any] | None = None,
        matching_only: bool = False,
    ) -> Hits:
        """Return the ``min(k, documents)`` best documents.

        Equal scores are ordered by ascending position.

        Args:
            query: a string.
            k: the number of documents, at least 1.
            mask: one boolean per position: whether the document may be returned. This does not
                change scores.
            where: filter column -> the allowed value, or a list of allowed values, such as
                ``{"chapter": 3}``.
            matching_only: whether documents without any term of the query are left out. Otherwise,
                the result can contain such documents. Their score is 0, or higher for bm25+.

        Raises:
            InputError: k is below 1, the mask has another length or type, a column is not a filter,
                or no document has the value.
        """
        if type(query) is not str:
            checked_string(query, "the query")
        allowed = None
        if mask is not None or where is not None:
            allowed = self._mask(mask, where)
        tokenizer = self.tokenizer
        # The terms of ``Words`` are always valid. Checking them would take time in each query.
        terms = tokenizer(query) if type(tokenizer) is Words else tokenize(tokenizer, [query])[0]
        best = self._scorer.top(terms, checked_k(k), allowed)
        if checked_flag(matching_only, "matching_only"):
            best = self._scorer.only_matching(best, terms, k, allowed)
        return self._hits(best)

    def search_batch(
        self,
        queries: Iterable[str],
        k: int = 10,
        *,
        mask: Any = None,
        where: Mapping[str, Any] | None = None,
        matching_only: bool = False,
    ) -> list[Hits]:
        """Return the hits of ``search`` for each query, in the order of the queries.

        With numba (extra ``fast``), a large batch is searched with one thread per processor. The
        hits are the same as in searches for single queries.
        """
        texts = checked_queries(queries)
        allowed = self._mask(mask, where)
        documents, scores = self._scorer.top_all(self.tokenizer, texts, checked_k(k), allowed)
        if checked_flag(matching_only, "matching_only"):
            hits = []
            for row, terms in enumerate(tokenize(self.tokenizer, texts)):
                best = documents[row].tolist(), scores[row].tolist()
                hits.append(self._hits(self._scorer.only_matching(best, terms, k, allowed)))
            return hits
        if self._origin.positions is not None:
            documents = self._origin.positions[documents]
        names = self._documents
        return [Hits(documents, scores, names, row) for row in range(len(texts))]

    def add(self, documents: Any, progress: Callable[[int], None] | None = None) -> range:
        """Add documents. The result is the same as an index built from all documents at once.

        Only the new documents are tokenized. Each call copies all postings, so one call for many
        documents is faster than many calls. Do not search in other threads meanwhile. If the call
        fails, the index is not changed.

        Args:
            documents: strings, or rows with the columns, filters and ids of the indexed dataset.
                May be an iterator.
            progress: called after each block, with the number of new documents processed so far.

        Returns:
            The range of the new positions. Skipped rows have a position, too.

        Raises:
            InputError: a document is not a string or does not have the columns.
        """
        first = self._origin.span
        source = self._origin.source(documents)
        self._replace(
            build(source, self.parameters, self.tokenizer, progress, before=self._content)
        )
        return range(first, self._origin.span)

    def remove(self, positions: Iterable[int]) -> None:
        """Remove documents. Scores are then as in an index built from the remaining documents.

        The other documents keep their positions, and new documents get new ones. See ``compact``.

        Raises:
            InputError: there is no document at a position, or no document with a term would be
                left. The index is not changed.
        """
        if not is_iterable(positions):
            raise InputError(f"positions is {positions!r:.60}; expected a list of positions")
        removed = list(positions)
        for position in removed:
            # True is the integer 1 in Python: a mask would remove the first two documents.
            if isinstance(position, bool) or not isinstance(position, int | np.integer):
                raise InputError(f"the position {position!r:.60} is not an integer")
            if not 0 <= position < self._origin.span:
                raise InputError(
                    f"no document at position {position} can be removed: positions are from 0 to "
                    f"{self._origin.span - 1}"
                )
        if removed:
            unique = np.unique(np.array(removed, dtype=np.int64))
            content = without(self._content, self.parameters, unique)
            self._replace(content, self._documents.dataset)

    def compact(self) -> Ints:
        """Renumber the documents from 0, in the same order, and return their old positions."""
        before = self.positions
        if self._origin.positions is not None:
            origin = replace(self._origin, span=len(self), positions=None, cache_key=None)
            self._replace(self._content._replace(origin=origin))
        return before

    def update(
        self, dataset: Any, progress: Callable[[int], None] | None = None
    ) -> tuple[int, int]:
        """Add and remove documents until the index equals one built from the dataset.

        Rows that follow a new or moved row are removed and added again. Rows are compared by
        digests.

        Args:
            dataset: strings if the index was built from strings, else any dataset that
                ``from_dataset`` takes.
            progress: called after each block, with the number of documents added so far.

        Returns:
            The number of added and of removed documents.

        Raises:
            InputError: see ``add``.
        """
        if isinstance(dataset, Iterator):
            # The rows are read twice.
            dataset = list(dataset)
        source = self._origin.source(dataset)
        if self._origin.cache_key and self._origin.cache_key == source.fingerprint:
            self._replace(self._content, source.data)
            return 0, 0
        digests, rows, span = source.digests()
        # The steps below can fail, so they change a copy, which replaces the index at the end.
        updated = copy.copy(self)
        updated.compact()
        indexed = self._content.origin.digests
        keep = np.isin(indexed, digests)
        same = _kept(indexed, digests, keep)
        if keep[self._scorer.counts.documents].any():
            updated.remove(np.flatnonzero(~keep))
            updated.compact()
            if same < len(digests):
                updated.add(_from(source.data, int(rows[same])), progress)
        else:
            # ``remove`` would refuse to leave no document with a term, so a new index is built.
            updated._replace(build(source, self.parameters, self.tokenizer, progress))
        positions = None if len(rows) == span else rows
        content = updated._content
        origin = replace(
            content.origin, span=span, positions=positions, cache_key=source.fingerprint
        )
        self._replace(content._replace(origin=origin), source.data)
        return len(self) - same, int(np.count_nonzero(~keep))

    def changes(self, dataset: Any) -> tuple[int, int]:
        """Return how many documents ``update`` would add and remove, without changing the index."""
        digests, _, _ = self._origin.source(dataset).digests()
        indexed = self._content.origin.digests
        same = _kept(indexed, digests, np.isin(indexed, digests))
        return len(digests) - same, len(indexed) - same

    def save(self, path: str | Path) -> None:
        """Write the index to one file, atomically (see ``load``).

        Raises:
            InputError: the tokenizer has no name (a lambda).
            QabenchError: the file cannot be written. An existing file is not changed.
        """
        save(checked_path(path, "path"), self.parameters, self.tokenizer, self._content, self.about)

    @classmethod
    def load(cls, path: str | Path, *, tokenizer: Tokenizer | None = None) -> Self:
        """Open a saved index.

        The checksum of the whole file is checked. The file is memory-mapped, so that processes
        share the postings.

        Args:
            path: the file.
            tokenizer: required if the index was built with a custom function. It must have the same
                name as that function.

        Raises:
            InputError: the file is not an index, has another format, or is damaged, or the
                tokenizer is another one.
        """
        if tokenizer is not None:
            _check_tokenizer(tokenizer)
        index = cls.__new__(cls)
        index.parameters, index.tokenizer, content, index.about = load(
            checked_path(path, "path"), tokenizer
        )
        index._replace(content)
        return index

    @property
    def _content(self) -> Content:
        if type(self._scorer) is not InvertedScorer:
            raise InputError(
                "an index with the backend rank_bm25 cannot be changed or saved: build it again, or without backend="
            )
        return Content(self._scorer, self._filters, self._origin)

    def _replace(self, content: Content, data: Any = None) -> None:
        """Replace the content. If ``data`` is a ``datasets.Dataset``, texts are read from it."""
        self._scorer, self._filters, self._origin = content
        # An ``IterableDataset`` has no attribute ``data``. Its rows cannot be read by position.
        is_dataset = hasattr(data, "select_columns") and hasattr(data, "data")
        self._documents = IndexedDocuments(self._origin, data if is_dataset else None)

    def __getstate__(self) -> dict[str, Any]:
        # Copies and other processes do not get the dataset, which may be much larger than the index.
        return {**self.__dict__, "_documents": IndexedDocuments(self._origin)}

    def _hits(self, best: Results) -> Hits:
        documents, scores = best
        positions = self._origin.positions
        if positions is None:
            return Hits(documents, scores, self._documents)
        return Hits(positions[documents].tolist(), scores, self._documents)

    def _mask(self, mask: Any, where: Mapping[str, Any] | None) -> Mask | None:
        matching = None
        if where is not None:
            matching = self._filters.mask(where)
        if mask is None:
            return matching
        allowed = np.ascontiguousarray(mask)
        span = self._origin.span
        if allowed.dtype != bool or allowed.shape != (span,):
            raise InputError(
                f"the mask has type {allowed.dtype}, shape {allowed.shape}; expected {span} booleans"
            )
        if self._origin.positions is not None:
            allowed = allowed[self._origin.positions]
        if matching is not None:
            allowed = allowed & matching
        return allowed


def _check_tokenizer(tokenizer: object) -> None:
    """Raise InputError if a tokenizer is not a function."""
    if not callable(tokenizer):
        raise InputError(
            f"tokenizer is {tokenizer!r:.60}; expected a function from a string to its terms, such as "
            "Words(stemmer='english')"
        )


def checked_queries(queries: Iterable[str]) -> list[str]:
    """Return the queries in a list. Raises InputError if one is not a string."""
    texts = list(queries) if isinstance(queries, list | tuple) else queries
    if isinstance(texts, list) and texts and set(map(type, texts)) == {str}:
        return texts
    return list(checked_strings(texts, "query"))


def _kept(indexed: Array, digests: Array, keep: Mask) -> int:
    """Set ``keep`` to False for the documents that ``update`` removes, and return how many stay.

    Args:
        indexed: the digests of the indexed documents.
        digests: the digests of the dataset's documents.
        keep: before the call, whether the dataset has each indexed document. After it, whether the
            document stays in the index.
    """
    same = common_start(indexed[keep], digests)
    keep[np.flatnonzero(keep)[same:]] = False
    return same


def _from(data: Any, first: int) -> Any:
    """Return the rows of a dataset, a frame or a list, beginning with the position ``first``."""
    if hasattr(data, "skip"):
        # A ``Dataset`` or an ``IterableDataset``.
        return data.skip(first)
    if hasattr(data, "slice") and hasattr(data, "column_names"):
        # An Arrow table.
        return data.slice(first)
    return data[first:]
