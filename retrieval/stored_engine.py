"""An index of ``qabench index build`` as a search engine: it reads the texts from the indexed file or dataset."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from qabench.errors import InputError
from qabench.retrieval.bm25.hits import Hits
from qabench.retrieval.bm25.sharded import ShardedIndex
from qabench.retrieval.engines import Document, DocumentHits


class StoredEngine:
    """A sharded BM25 index with the texts of its documents; their ids are their positions.

    Args:
        folder: the folder of the index.

    Raises:
        InputError: it is not a complete index, or its source no longer exists or has changed.
    """

    def __init__(self, folder: str | Path) -> None:
        self.index = ShardedIndex(folder)
        self.name = f"{Path(self.index.info()['source']).name}@{len(self.index)}"
        self.ranker = str(self.index.parameters.method)
        self._texts([0])

    def __len__(self) -> int:
        """The number of documents."""
        return len(self.index)

    def search(self, query: str, k: int = 10) -> DocumentHits:
        """The k best documents for a query, best first; none if no document contains a word of it."""
        return self._documents(self.index.search(query, k))

    def search_batch(self, queries: Iterable[str], k: int = 10) -> list[DocumentHits]:
        """``search`` for each query."""
        return [self._documents(hits) for hits in self.index.search_batch(queries, k)]

    def _documents(self, hits: Hits) -> DocumentHits:
        if not any(hits.scores):
            return DocumentHits([], [])
        texts = self._texts(hits.positions)
        return DocumentHits(
            [Document(str(i), text) for i, text in zip(hits.positions, texts, strict=True)], hits.scores
        )

    def _texts(self, positions: Sequence[int]) -> list[str]:
        texts = self.index.texts(positions)
        if texts is None:
            source = self.index.info()["source"]
            raise InputError(f"{self.index.folder} is the index of {source}, which no longer exists or has changed")
        return texts
