"""A BM25 index attached to a ``datasets.Dataset``, searched by the dataset's own methods; no server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from datasets.search import BaseIndex, BatchedSearchResults, SearchResults

from qabench.errors import InputError
from qabench.retrieval.bm25.index import BM25Index


class AttachedIndex(BaseIndex):
    """What ``datasets`` asks of an index. It has no vectors; queries are texts."""

    def __init__(self, index: BM25Index) -> None:
        self.index = index

    def search(self, query: str, k: int = 10, **kwargs: Any) -> SearchResults:
        """Scores and positions of the k best rows; ``mask`` and ``where`` as in ``BM25Index.search``."""
        hits = self.index.search(query, k, **kwargs)
        return SearchResults(hits.scores, hits.positions)

    def search_batch(self, queries: Sequence[str], k: int = 10, **kwargs: Any) -> BatchedSearchResults:
        """The same of each query."""
        found = self.index.search_batch(queries, k, **kwargs)
        return BatchedSearchResults([hits.scores for hits in found], [hits.positions for hits in found])

    def save(self, file: Any) -> None:
        """``BM25Index.save``."""
        self.index.save(file)

    @classmethod
    def load(cls, file: Any) -> AttachedIndex:
        """``BM25Index.load``."""
        return cls(BM25Index.load(file))

    def __deepcopy__(self, memo: dict[int, Any]) -> AttachedIndex:
        return self  # datasets copies a dataset with all it has for each change of format; an index never changes


def add_bm25_index(
    dataset: Any,
    column: str | Sequence[str] = "text",
    index_name: str | None = None,
    index: BM25Index | None = None,
    **options: Any,
) -> Any:
    """Attaches a BM25 index to a dataset, as ``add_faiss_index`` attaches one of vectors.

    Then ``dataset.search(name, query, k)``, ``search_batch``, ``get_nearest_examples`` and
    ``get_nearest_examples_batch`` work, with ``mask=`` and ``where=`` too; ``drop_index(name)`` takes it off, which
    ``datasets`` asks for before ``select``, ``filter`` and whatever else moves rows.

    Args:
        dataset: a ``datasets.Dataset``, not a streaming one.
        column: the text column, or several.
        index_name: its name; by default the column, or the first of several.
        index: an index of this very dataset, built or loaded before; None builds one.
        **options: of ``BM25Index.from_dataset``.

    Returns:
        The dataset.

    Raises:
        InputError: not a dataset in memory or on disk, a column that is not there or not text, or an index of another
            dataset.
    """
    columns = [column] if isinstance(column, str) else list(column)
    if index is None:
        index = BM25Index.from_dataset(_searchable(dataset), columns, **options)
    elif options:
        raise InputError(f"an index was given, so {', '.join(options)} cannot be chosen any more")
    else:
        index.check_belongs(_searchable(dataset))
    _attach(dataset, index_name or columns[0], AttachedIndex(index))
    return dataset


def _searchable(dataset: Any) -> Any:
    if not hasattr(dataset, "get_nearest_examples") or not isinstance(getattr(dataset, "_indexes", None), dict):
        raise InputError(f"an index is attached to a datasets.Dataset, not to a {type(dataset).__name__}")
    return dataset


def _attach(dataset: Any, name: str, index: AttachedIndex) -> None:
    # The one place that knows this private attribute: datasets has no public way to add an index of another kind.
    dataset._indexes[name] = index
