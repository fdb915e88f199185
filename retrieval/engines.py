"""Search engines with an index of their own, with one interface: ``search`` returns documents with their texts."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol

from qabench.errors import InputError
from qabench.io.tables import Displayed, Table
from qabench.retrieval.bm25.hits import HITS_SHOWN

TEXTS = ("contents", "text")  # fields with the text of a document; the first that exists is used
SOURCES = ("url", "title")  # fields with its source


@dataclass(frozen=True, slots=True)
class Document:
    """A document of a search engine.

    Attributes:
        id: its id in the engine.
        text: its text.
        source: its address or title; "" if unknown.
    """

    id: str
    text: str
    source: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class DocumentHits(Displayed):
    """The result of one query to a search engine, the best document first. Iterating gives (id, score) pairs.

    Attributes:
        documents: the documents.
        scores: their scores.
    """

    documents: list[Document]
    scores: list[float]

    def __len__(self) -> int:
        return len(self.documents)

    def __iter__(self) -> Iterator[tuple[str, float]]:
        return zip(self.ids, self.scores, strict=True)

    @property
    def ids(self) -> list[str]:
        """The ids of the documents."""
        return [document.id for document in self.documents]

    def tables(self) -> list[Table]:
        """The best documents, as ``print`` and notebooks show them."""
        first = islice(enumerate(self, 1), HITS_SHOWN)
        rows: list[list[Any]] = [[rank, id, f"{score:.4f}"] for rank, (id, score) in first]
        more = [f"and {len(self) - HITS_SHOWN:,} more"] if len(self) > HITS_SHOWN else []
        return [Table(f"{len(self):,} hits", ["rank", "id", "score"], rows, more)]


class SearchEngine(Protocol):
    """A search engine: the interface of ``BM25Index``, with documents instead of positions."""

    @property
    def name(self) -> str:
        """The index and its version, for signatures."""

    @property
    def ranker(self) -> str:
        """What ranks the documents, for signatures."""

    def __len__(self) -> int:
        """The number of documents."""

    def search(self, query: str, k: int = 10) -> DocumentHits:
        """The k best documents for a query, best first."""

    def search_batch(self, queries: Iterable[str], k: int = 10) -> list[DocumentHits]:
        """``search`` for each query."""


@dataclass(frozen=True, slots=True)
class Engine:
    """How users name a search engine, "NAME:" and ``where``, and "module:function" that opens it."""

    where: str
    opens: str


ENGINES: Mapping[str, Engine] = {
    "lucene": Engine("DIR", "qabench.retrieval.lucene:LuceneIndex"),
    "opensearch": Engine("URL/INDEX", "qabench.retrieval.opensearch:open_opensearch"),
    "elasticsearch": Engine("URL/INDEX", "qabench.retrieval.opensearch:open_elasticsearch"),
    "index": Engine("DIR", "qabench.retrieval.stored_engine:StoredEngine"),
}


def engine_forms() -> str:
    """The allowed forms of ``open_engine``'s argument, for messages."""
    return ", ".join(f"{name}:{engine.where}" for name, engine in ENGINES.items())


def open_engine(retriever: str) -> SearchEngine:
    """Opens the search engine of ``--retriever``.

    Args:
        retriever: "lucene:DIR" (a Lucene index; see ``LuceneIndex``), "opensearch:URL/INDEX" or
            "elasticsearch:URL/INDEX" (see ``open_opensearch``), or "index:DIR" (of ``qabench index build``).

    Raises:
        InputError: another form, or the index does not exist or cannot be used.
        MissingExtra: the engine's packages are not installed.
    """
    name, _, where = retriever.partition(":")
    if name not in ENGINES or not where:
        raise InputError(f"the retriever is {retriever!r}; allowed: {engine_forms()}")
    module, _, function = ENGINES[name].opens.partition(":")
    engine: SearchEngine = getattr(importlib.import_module(module), function)(where)
    return engine


def document_of(fields: Mapping[str, Any], id: str, texts: Iterable[str] = TEXTS) -> Document | None:
    """The document with these fields; None if none of ``texts`` is a string."""
    text = next((fields[name] for name in texts if isinstance(fields.get(name), str)), None)
    source = next((str(fields[name]) for name in SOURCES if fields.get(name)), "")
    return None if text is None else Document(id, text, source)
