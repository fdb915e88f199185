"""The engines that bm25.py compares: how each one indexes and searches."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np

from qabench.retrieval import BM25Index
from qabench.retrieval.bm25.building import InvertedScorer
from qabench.retrieval.bm25.tokenizers import tokenize, words


class Engine:
    """One engine.

    ``package`` is what it needs. ``has_batch`` and ``can_add`` say which functions it has.

    """

    package: str | None = None
    has_batch = False
    can_add = False

    def index(self, texts: Sequence[str]) -> None:
        raise NotImplementedError

    def add(self, texts: Sequence[str]) -> None:
        raise NotImplementedError

    def query(self, text: str) -> Any:
        """Prepare a query; does not count as query time."""
        return words(text)

    def search(self, query: Any, k: int) -> tuple[Sequence[int], Sequence[float]]:
        raise NotImplementedError

    def batch(self, queries: Sequence[Any], k: int) -> None:
        raise NotImplementedError


class Ours(Engine):
    package = "numba"
    has_batch = True
    can_add = True
    method = "okapi"

    def index(self, texts: Sequence[str]) -> None:
        self.engine = BM25Index(texts, self.method)

    def add(self, texts: Sequence[str]) -> None:
        self.engine = copy.copy(self.engine)
        self.engine.add(texts)

    @property
    def postings(self) -> int:
        """The number of pairs of a term and a document that contains it."""
        return len(self.engine._scorer.counts.documents)

    def query(self, text: str) -> Any:
        import numba  # noqa: F401 - small collections use it if it is imported

        return text

    def search(self, query: Any, k: int) -> tuple[Sequence[int], Sequence[float]]:
        hits = self.engine.search(query, k)
        return hits.positions, hits.scores

    def batch(self, queries: Sequence[Any], k: int) -> None:
        self.engine.search_batch(queries, k)


class OursPlus(Ours):
    method = "bm25+"


class OursNumPy(OursPlus):
    package = None
    has_batch = False
    can_add = False

    def query(self, text: str) -> Any:
        InvertedScorer._choose_search = lambda scorer, queries: None  # type: ignore[method-assign]
        return text


class RankBm25(Engine):
    package = "rank_bm25"

    def index(self, texts: Sequence[str]) -> None:
        import importlib

        self.engine = importlib.import_module(self.package or "").BM25Okapi(tokenize(words, texts))

    def search(self, query: Any, k: int) -> tuple[Sequence[int], Sequence[float]]:
        scores = np.asarray(self.engine.get_scores(query))
        best = np.argsort(scores)[::-1][:k]
        return best.tolist(), scores[best].tolist()


class RankBm25Rs(RankBm25):
    package = "rank_bm25_rs"


class Bm25s(Engine):
    package = "bm25s"
    backend = "numpy"
    has_batch = True

    def index(self, texts: Sequence[str]) -> None:
        import bm25s

        self.engine = bm25s.BM25(method="bm25+", delta=1.0, backend=self.backend)
        tokens = bm25s.tokenize(
            list(texts), token_pattern=r"\w+", stopwords=None, show_progress=False
        )
        self.engine.index(tokens, show_progress=False)

    def search(self, query: Any, k: int) -> tuple[Sequence[int], Sequence[float]]:
        positions, scores = self.engine.retrieve([query], k=k, show_progress=False, n_threads=0)
        return positions[0].tolist(), scores[0].tolist()

    def batch(self, queries: Sequence[Any], k: int) -> None:
        self.engine.retrieve(list(queries), k=k, show_progress=False, n_threads=1)


class Bm25sNumba(Bm25s):
    backend = "numba"


class Tantivy(Engine):
    package = "tantivy"

    def index(self, texts: Sequence[str]) -> None:
        import tantivy

        schema = (
            tantivy.SchemaBuilder()
            .add_text_field("text")
            .add_integer_field("position", stored=True)
            .build()
        )
        self.engine = tantivy.Index(schema)
        writer = self.engine.writer(heap_size=256_000_000, num_threads=1)
        for position, text in enumerate(texts):
            writer.add_document(tantivy.Document(text=text, position=position))
        writer.commit()
        writer.wait_merging_threads()
        self.engine.reload()
        self.searcher = self.engine.searcher()

    def query(self, text: str) -> Any:
        return self.engine.parse_query(" ".join(words(text)), ["text"])

    def search(self, query: Any, k: int) -> tuple[Sequence[int], Sequence[float]]:
        hits = self.searcher.search(query, k).hits
        return [self.searcher.doc(address)["position"][0] for _, address in hits], [
            score for score, _ in hits
        ]


ENGINES: dict[str, type[Engine]] = {
    "qabench okapi": Ours,
    "qabench bm25+": OursPlus,
    "qabench bm25+, no numba": OursNumPy,
    "rank_bm25": RankBm25,
    "rank_bm25_rs": RankBm25Rs,
    "bm25s numpy, bm25+": Bm25s,
    "bm25s numba, bm25+": Bm25sNumba,
    "tantivy": Tantivy,
}
