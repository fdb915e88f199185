"""A BM25 index attached to a ``datasets.Dataset``, searched by the dataset's own methods."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from datasets import Dataset
from datasets.search import BaseIndex, BatchedSearchResults, SearchResults

from qabench.data.arguments import checked_string
from qabench.errors import InputError
from qabench.retrieval.bm25.index import BM25Index
from qabench.retrieval.bm25.rows import checked_columns, rows_of


class AttachedIndex(BaseIndex):
    """A BM25 index with the interface that ``datasets`` has for vector indexes. Queries are strings."""

    def __init__(self, index: BM25Index) -> None:
        self.index = index

    def search(self, query: str, k: int = 10, **kwargs: Any) -> SearchResults:
        """Return the scores and positions of the k best rows (see ``BM25Index.search``)."""
        hits = self.index.search(query, k, **kwargs)
        return SearchResults(hits.scores, hits.positions)

    def search_batch(
        self, queries: Sequence[str], k: int = 10, **kwargs: Any
    ) -> BatchedSearchResults:
        """Return the results of ``search`` for each query."""
        batch = self.index.search_batch(queries, k, **kwargs)
        return BatchedSearchResults(
            [hits.scores for hits in batch], [hits.positions for hits in batch]
        )

    def save(self, file: Any, storage_options: dict[str, Any] | None = None) -> None:
        """Write the index to a file, for ``BM25Index.load``."""
        if storage_options:
            raise InputError("a BM25 index is saved to a local file, without storage_options")
        self.index.save(file)

    def __deepcopy__(self, memo: dict[int, Any]) -> AttachedIndex:
        # ``datasets`` copies a dataset with its indexes when its format is changed. The copy of an
        # index shares its arrays, which are replaced, not changed, when either index is updated.
        return AttachedIndex(copy.copy(self.index))


def add_bm25_index(
    dataset: Any,
    column: str | Sequence[str] | None = None,
    index_name: str | None = None,
    index: BM25Index | None = None,
    **options: Any,
) -> Any:
    """Attach a BM25 index to a dataset, like ``add_faiss_index`` for vectors.

    ``dataset.search(name, query, k)``, ``search_batch``, ``get_nearest_examples`` and
    ``get_nearest_examples_batch`` then work, also with ``mask=``, ``where=`` and
    ``matching_only=``. ``get_index(name).index`` is the ``BM25Index``, and
    ``get_index(name).save(path)`` saves it.

    ``drop_index(name)`` removes the index. ``datasets`` requires this before ``select``, ``filter``
    and other methods that move rows.

    Args:
        dataset: a ``datasets.Dataset``, not a streaming one.
        column: the text column, or several. By default, the columns of ``index``, or "text".
        index_name: the name of the index. By default, the name of the first column.
        index: an existing index, such as one of the dataset's first rows. A copy of it is updated
            to the dataset (see ``BM25Index.update``). By default, a new index is built.
        **options: passed to ``BM25Index.from_dataset``.

    Returns:
        The same dataset, to which the index was attached.

    Raises:
        InputError: not a ``datasets.Dataset``, a column that is missing or not text, or an index of
            other columns.
    """
    if not isinstance(dataset, Dataset):
        # Raises an error of its own for splits, and for values that are not rows.
        rows_of(dataset)
        raise InputError(
            f"an index can be attached to a datasets.Dataset, not to a {type(dataset).__name__}: "
            "datasets.Dataset has from_pandas, from_list and others"
        )
    if index_name is not None:
        checked_string(index_name, "index_name")
    if index is None:
        column = "text" if column is None else column
        index = BM25Index.from_dataset(dataset, column, **options)
    elif options:
        raise InputError(
            f"{', '.join(options)} cannot be set for an existing index; omit index= to build one"
        )
    else:
        column = _columns_of(index, column)
        index = copy.copy(index)
        index.update(dataset)
    name = index_name or checked_columns("column", column)[0]
    # ``_indexes`` is private, but ``datasets`` has no public method to add another kind of index.
    dataset._indexes[name] = AttachedIndex(index)
    return dataset


def _columns_of(index: BM25Index, column: str | Sequence[str] | None) -> list[str]:
    """Return the text columns of an existing index.

    Raises:
        InputError: the index was built from strings, or from other columns than ``column``.
    """
    if not isinstance(index, BM25Index):
        raise InputError(f"index is a {type(index).__name__}; expected a BM25Index")
    columns = index.columns
    if columns is None:
        raise InputError(
            "the index was built from strings, not from a dataset's columns, so it cannot follow a dataset: "
            "build one with BM25Index.from_dataset, or omit index="
        )
    if column is not None and columns != checked_columns("column", column):
        named = ", ".join(checked_columns("column", column))
        raise InputError(
            f"the index is of the column {', '.join(columns)}, not of {named}: pass an index of {named}, "
            "or omit index= to build one"
        )
    return columns
