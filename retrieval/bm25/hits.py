"""The hits of a query: documents and scores, best first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from qabench.errors import InputError
from qabench.io.tables import Displayed, Table
from qabench.retrieval.bm25.building import Origin
from qabench.retrieval.bm25.rows import joined_text
from qabench.retrieval.bm25.search import Array

# The number of hits that ``print`` and notebooks show.
HITS_SHOWN = 10


class Ranking(Displayed):
    """The best documents of a query, best first. Iterating gives (document, score) pairs."""

    __slots__ = ()
    # The name of the column with the documents.
    documents_are = "position"

    def __iter__(self) -> Iterator[tuple[Any, float]]:
        raise NotImplementedError

    def __getitem__(self, rank: int) -> tuple[Any, float]:
        """Return the (document, score) pair at a rank, from 0."""
        if not isinstance(rank, int | np.integer) or isinstance(rank, bool):
            raise InputError(
                f"the rank {rank!r:.60} is not an integer; for several, use list(hits)"
            )
        return list(self)[rank]

    def tables(self) -> list[Table]:
        """Return the best documents, as ``print`` and notebooks show them."""
        rows: list[list[Any]] = [
            [rank, document, f"{score:.4f}"] for rank, (document, score) in enumerate(self, 1)
        ]
        more = []
        if len(rows) > HITS_SHOWN:
            more.append(f"and {len(rows) - HITS_SHOWN:,} more")
        columns = ["rank", self.documents_are, "score"]
        return [Table(f"{len(rows):,} hits", columns, rows[:HITS_SHOWN], more)]

    def to_pandas(self) -> Any:
        """Return all documents as a pandas DataFrame: rank, position or id, score."""
        import pandas as pd

        rows = [(rank, *pair) for rank, pair in enumerate(self, 1)]
        return pd.DataFrame(rows, columns=["rank", self.documents_are, "score"])


@dataclass(frozen=True, slots=True)
class IndexedDocuments:
    """The documents of an index, from which hits get their ids and texts.

    Attributes:
        origin: positions and ids of the documents.
        dataset: the indexed dataset, which has the texts. None if it is not available.
    """

    origin: Origin
    dataset: Any = None


class Hits(Ranking):
    """Positions and scores of a query's best documents, best first.

    Iterating gives (position, score) pairs. Hits with the same positions and scores are equal. The
    lists of positions and scores can be replaced, for example by a reranker's results. Ids and
    texts follow the positions.

    The hits of a batch share two arrays, one row per query. A row becomes a list when it is first
    read, because building the lists of ten documents takes as long as the search itself.

    Args:
        positions: the positions, or an array with the positions of a batch.
        scores: the scores, in the same form.
        documents: the documents of the index.
        row: the row of the query in the arrays of a batch.
    """

    # This is not a dataclass, because its fields could not be properties.
    __slots__ = ("_documents", "_positions", "_row", "_scores")

    def __init__(
        self,
        positions: list[int] | Array,
        scores: list[float] | Array,
        documents: IndexedDocuments | None = None,
        row: int = 0,
    ) -> None:
        self._positions = positions
        self._scores = scores
        self._documents = documents
        self._row = row

    @property
    def positions(self) -> list[int]:
        """Return the positions of the documents."""
        positions = self._positions
        if not isinstance(positions, list):
            positions = self._positions = positions[self._row].tolist()
        return positions

    @positions.setter
    def positions(self, positions: list[int]) -> None:
        self._positions = positions

    @property
    def scores(self) -> list[float]:
        """Return the scores of the documents."""
        scores = self._scores
        if not isinstance(scores, list):
            scores = self._scores = scores[self._row].tolist()
        return scores

    @scores.setter
    def scores(self, scores: list[float]) -> None:
        self._scores = scores

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Hits):
            return NotImplemented
        return self.positions == other.positions and self.scores == other.scores

    __hash__ = None  # type: ignore[assignment]  # the lists can be changed

    def __reduce__(self) -> tuple[Any, ...]:
        # Only the row of this query is pickled, not the arrays of the whole batch.
        return Hits, (self.positions, self.scores, self._documents)

    def __len__(self) -> int:
        return len(self.positions)

    def __iter__(self) -> Iterator[tuple[int, float]]:
        return zip(self.positions, self.scores, strict=True)

    @property
    def ids(self) -> list[str]:
        """Return the documents' ids, or their positions as strings if the index has no ids."""
        if self._documents is None or self._documents.origin.ids is None:
            return list(map(str, self.positions))
        origin = self._documents.origin
        ids = self._documents.origin.ids
        return [ids[document] for document in origin.documents_at(self.positions).tolist()]

    @property
    def texts(self) -> list[str]:
        """Return the texts of the documents, as they were indexed.

        Raises:
            InputError: the index has no dataset with the texts. An index has one if it was built
                from a ``datasets.Dataset``, or attached to one by ``add_bm25_index``.
        """
        if self._documents is None or self._documents.dataset is None:
            raise InputError(
                "the index stores no texts: build it by BM25Index.from_dataset from a datasets.Dataset, or "
                "attach it by add_bm25_index(dataset, index=index)"
            )
        columns = self._documents.origin.columns or []
        # The user may have set a format in which texts are not Python strings.
        rows = self._documents.dataset.select_columns(columns).with_format(None)[self.positions]
        return [joined_text(texts) for texts in zip(*(rows[name] for name in columns), strict=True)]

    def tables(self) -> list[Table]:
        """Return the best documents with their ids, as ``print`` and notebooks show them."""
        tables = Ranking.tables(self)
        if not self._has_ids:
            return tables
        (table,) = tables
        rows = [[*row[:2], id, *row[2:]] for row, id in zip(table.rows, self.ids, strict=False)]
        return [replace(table, columns=["rank", "position", "id", "score"], rows=rows)]

    def to_pandas(self) -> Any:
        """Return all documents as a pandas DataFrame: rank, position, id if there are ids, score."""
        frame = Ranking.to_pandas(self)
        if self._has_ids:
            frame.insert(2, "id", self.ids)
        return frame

    @property
    def _has_ids(self) -> bool:
        return self._documents is not None and self._documents.origin.ids is not None
