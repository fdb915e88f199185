"""The engines that bm25.py compares: how each one indexes and searches."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from typing import Any

import numpy as np

from qabench.retrieval import BM25Index
from qabench.retrieval.bm25.tokenizers import tokenize, words


class Engine:
    """One engine. ``method`` is qabench's method with the same formula; None if there is none."""

    package: str | None = None
    method: str | None = "okapi"
    slow = False

    def tokens(self, texts: Sequence[str]) -> Any:
        """Preparation that does not count as indexing time."""
        return tokenize(words, texts)

    def index(self, prepared: Any) -> None:
        raise NotImplementedError

    def query(self, text: str) -> Any:
        """Preparation that does not count as query time."""
        return words(text)

    def search(self, query: Any, k: int) -> tuple[Sequence[int], Sequence[float]]:
        raise NotImplementedError

    def batch(self, queries: Sequence[Any], k: int) -> None:
        for query in queries:
            self.search(query, k)


class Ours(Engine):
    def tokens(self, texts: Sequence[str]) -> Any:
        return texts

    def index(self, prepared: Any) -> None:
        self.made = BM25Index(prepared, self.method or "okapi")

    def query(self, text: str) -> Any:
        return text

    def search(self, query: Any, k: int) -> tuple[Sequence[int], Sequence[float]]:
        hits = self.made.search(query, k)
        return hits.positions, hits.scores

    def batch(self, queries: Sequence[Any], k: int) -> None:
        self.made.search_batch(queries, k)


class OursPlus(Ours):
    method = "bm25+"


class OursLucene(Ours):
    method = "lucene"


class RankBm25(Engine):
    package = "rank_bm25"
    slow = True

    def index(self, prepared: Any) -> None:
        import rank_bm25

        self.made = rank_bm25.BM25Okapi(prepared)

    def search(self, query: Any, k: int) -> tuple[Sequence[int], Sequence[float]]:
        scores = self.made.get_scores(query)
        best = np.argsort(scores)[::-1][:k]
        return best.tolist(), scores[best].tolist()


class RankBm25Rs(Engine):
    package = "rank_bm25_rs"

    def index(self, prepared: Any) -> None:
        import rank_bm25_rs

        self.made = rank_bm25_rs.BM25Okapi(prepared)

    def search(self, query: Any, k: int) -> tuple[Sequence[int], Sequence[float]]:
        scores = np.asarray(self.made.get_scores(query))
        best = np.argsort(scores)[::-1][:k]
        return best.tolist(), scores[best].tolist()


class Bm25s(Engine):
    package = "bm25s"
    method = "bm25+"
    backend = "numpy"

    def index(self, prepared: Any) -> None:
        import bm25s

        self.made = bm25s.BM25(method=self.method, delta=1.0, backend=self.backend)
        self.made.index(prepared, show_progress=False)

    def search(self, query: Any, k: int) -> tuple[Sequence[int], Sequence[float]]:
        positions, scores = self.made.retrieve([query], k=k, show_progress=False, n_threads=0)
        return positions[0].tolist(), scores[0].tolist()

    def batch(self, queries: Sequence[Any], k: int) -> None:
        self.made.retrieve(list(queries), k=k, show_progress=False, n_threads=len(os.sched_getaffinity(0)))


class Bm25sLucene(Bm25s):
    method = "lucene"


class Bm25sNumba(Bm25s):
    package = "numba"
    backend = "numba"


class Bm25sNumbaLucene(Bm25sNumba):
    method = "lucene"


class Tantivy(Engine):
    package = "tantivy"
    method = None

    def tokens(self, texts: Sequence[str]) -> Any:
        return texts

    def index(self, prepared: Any) -> None:
        import tantivy

        schema = tantivy.SchemaBuilder().add_text_field("text").add_integer_field("position", stored=True).build()
        self.made = tantivy.Index(schema)
        writer = self.made.writer(heap_size=256_000_000, num_threads=len(os.sched_getaffinity(0)))
        for position, text in enumerate(prepared):
            writer.add_document(tantivy.Document(text=text, position=position))
        writer.commit()
        writer.wait_merging_threads()
        self.made.reload()
        self.searcher = self.made.searcher()

    def query(self, text: str) -> Any:
        return self.made.parse_query(" ".join(words(text)), ["text"])

    def search(self, query: Any, k: int) -> tuple[Sequence[int], Sequence[float]]:
        hits = self.searcher.search(query, k).hits
        return [self.searcher.doc(address)["position"][0] for _, address in hits], [score for score, _ in hits]


class Fts5(Engine):
    method = None
    slow = True

    def tokens(self, texts: Sequence[str]) -> Any:
        return texts

    def index(self, prepared: Any) -> None:
        self.made = sqlite3.connect(":memory:")
        self.made.execute("CREATE VIRTUAL TABLE passages USING fts5(text)")
        self.made.executemany("INSERT INTO passages (rowid, text) VALUES (?, ?)", enumerate(prepared))
        self.made.commit()

    def query(self, text: str) -> Any:
        return " OR ".join(f'"{term}"' for term in words(text))

    def search(self, query: Any, k: int) -> tuple[Sequence[int], Sequence[float]]:
        found = "SELECT rowid, -rank FROM passages WHERE passages MATCH ? ORDER BY rank LIMIT ?"
        rows = self.made.execute(found, (query, k)).fetchall()
        return [row[0] for row in rows], [row[1] for row in rows]


ENGINES: dict[str, type[Engine]] = {
    "qabench okapi": Ours,
    "qabench bm25+": OursPlus,
    "qabench lucene": OursLucene,
    "rank_bm25": RankBm25,
    "rank_bm25_rs": RankBm25Rs,
    "bm25s numpy, bm25+": Bm25s,
    "bm25s numba, bm25+": Bm25sNumba,
    "bm25s numpy, lucene": Bm25sLucene,
    "bm25s numba, lucene": Bm25sNumbaLucene,
    "tantivy": Tantivy,
    "SQLite FTS5": Fts5,
}
