"""Passages for ExpertQA's answers, from a corpus, a search engine's index, or web pages.

Pages are found and ranked as the authors' scripts do (``retrieve_and_read.py`` and
``post_hoc_cite.py`` below ``modeling/response_collection`` of
https://github.com/chaitanyamalaviya/ExpertQA), with three intended differences: a search API
replaces scraping Google's result page, trafilatura replaces newspaper3k, and pages are fetched only
if robots.txt allows it.
"""

from __future__ import annotations

import hashlib
import json
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from qabench.data.rows import Json
from qabench.errors import InputError, unknown_name
from qabench.models.encoder import API_MODEL, MODEL, ApiEncoder, SentenceEncoder
from qabench.retrieval import BM25Index
from qabench.retrieval.corpus import read_documents, read_rows
from qabench.retrieval.dense import DenseIndex, Encoder
from qabench.retrieval.documents import Document
from qabench.retrieval.engines import open_engine
from qabench.retrieval.web.fetch import READ, WebPage
from qabench.retrieval.web.provider import load_provider
from qabench.retrieval.web.web import Web

BM25, DENSE, API = "bm25", "dense", "api"
# The authors split web pages into passages of at most this many characters, with this overlap.
CHUNK_SIZE, OVERLAP = 1000, 200
# The outcomes of pages that count as not read, besides those of ``qabench.retrieval.web.fetch``.
PDF, GOOGLE, DENIED = "PDF", "a page of Google", "access denied"
SCHOLAR = "https://scholar.google.com/scholar_url?url="


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The passages for a query, best first, and for the log a record of each web search."""

    passages: Sequence[Document]
    searches: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True)
class Passages:
    """The passages of a corpus, or of a search engine's index.

    Attributes:
        name: the identity of the corpus, for signatures.
        ranker: the name of the method that ranks passages.
        size: the number of passages.
        ranked: a function that returns the k best passages for a query, best first.
    """

    name: str
    ranker: str
    size: int
    ranked: Callable[[str, int], Sequence[Document]]

    def find(self, query: str, ranked_by: str, k: int) -> SearchResult:
        """Return the k best passages for a query, best first."""
        # Only web passages are ranked by ``ranked_by``. Here, they are ranked by the query.
        return SearchResult(self.ranked(query, k))

    def signature(self) -> dict[str, object]:
        """Return the fields of signatures that describe the source of passages."""
        return {"corpus": self.name, "passages": self.size, "ranker": self.ranker}


@dataclass(frozen=True)
class WebPassages:
    """Passages of the pages that a search engine finds."""

    web: Web
    encoder: Encoder | None

    def find(self, query: str, ranked_by: str, k: int) -> SearchResult:
        """Return the k best passages of the pages that a query finds, and how each page was read.

        Raises:
            SearchFailed: the search engine failed.
        """
        results = self.web.search(query)
        urls, skipped = official_urls(results)
        # The log also lists skipped results, so that it accounts for every result of the search.
        pages = [*skipped, *map(_denied_as_unread, self.web.read(urls))]
        passages = []
        for page in pages:
            if page.outcome == READ:
                for n, text in enumerate(split_page(page.text)):
                    passages.append(Document(f"{page.url}#{n}", text, page.url))
        log = {
            "query": query,
            "results": len(results),
            "passages": len(passages),
            "pages": [_shown(page) for page in pages],
        }
        best = [passages[position] for position in self._best(passages, ranked_by, k)]
        return SearchResult(best, (log,))

    def signature(self) -> dict[str, object]:
        """Return the fields of signatures that describe the source of passages."""
        return {
            "web": self.web.provider.name,
            "results": self.web.provider.pages.results,
            "pages": self.web.extractor,
            "chunks": f"{CHUNK_SIZE}/{OVERLAP}",
            "page_ranker": self._ranker,
        }

    @property
    def _ranker(self) -> str:
        """Return the name of the encoder, or "bm25", for signatures and the cache."""
        if self.encoder is None:
            return BM25
        return self.encoder.name

    def _best(self, passages: Sequence[Document], ranked_by: str, k: int) -> list[int]:
        """Return the positions of the best passages, from the cache if a run is resumed."""
        texts = [passage.text for passage in passages]
        digest = hashlib.sha256(json.dumps([ranked_by, texts]).encode()).hexdigest()
        key = f"{self._ranker} {k} {digest}"

        # The ranking is cached, because calls of an encoder behind an API cost money.
        def ranking() -> Json:
            index = DenseIndex(texts, self.encoder) if self.encoder else BM25Index(texts)
            return {"positions": index.search(ranked_by, k).positions}

        if not texts:
            return []
        positions: list[int] = self.web.cache.kept("rankings", key, ranking)["positions"]
        return positions


PassageSource = Passages | WebPassages
"""A source of passages: a corpus, a search engine's index, or the web."""


@cache
def encoder_of(ranker: str, encoder: str | None) -> Encoder | None:
    """Return the encoder of a ranker, or None for "bm25".

    For the ranker "dense", ``encoder`` is the name or folder of a sentence-transformers model (by
    default BAAI/bge-small-en-v1.5). For "api", it is a model of an OpenAI-compatible API (by default
    text-embedding-ada-002).
    """
    if ranker == BM25:
        if encoder:
            raise InputError("an encoder has no effect with ranker=bm25; add -T ranker=dense")
        return None
    if ranker == DENSE:
        return SentenceEncoder(encoder or MODEL)
    if ranker == API:
        return ApiEncoder(encoder or API_MODEL)
    raise unknown_name("unknown ranker", ranker, (BM25, DENSE, API))


@cache
def engine_passages(retriever: str, named_by_user: bool) -> Passages:
    """Return the documents of a search engine's index as passages, which are not split.

    Args:
        retriever: the engine and its index, as ``qabench.retrieval.engines.open_engine`` takes
            them.
        named_by_user: whether the user named the engine in this call, rather than a log.
    """
    engine = open_engine(retriever, named_by_user=named_by_user)

    def search(query: str, k: int) -> Sequence[Document]:
        return engine.search(query, k).documents

    return Passages(engine.name, engine.ranker, len(engine), search)


@cache
def load_passages(
    corpus: str, ranker: str = BM25, encoder: str | None = None, *, whole: bool = False
) -> Passages:
    """Load a corpus with its index.

    ``corpus`` is a file (.jsonl, .json, .csv, .tsv, .parquet) with the column "text" and optionally
    "id", and "url" or "title". Rows without text are skipped. Texts longer than ``CHUNK_SIZE``
    are split into passages (see ``split_page``) unless ``whole`` is True. See ``encoder_of`` for
    ranker and encoder. Vectors are kept in qabench's cache. A corpus is loaded once per process, so
    later changes of the file have no effect.
    """
    model = encoder_of(ranker, encoder)
    documents: list[Document] = []
    for document in read_documents(read_rows(Path(corpus)), corpus)[0]:
        if whole or len(document.text) <= CHUNK_SIZE:
            documents.append(document)
            continue
        passages = split_page(document.text)
        if len(passages) == 1:
            documents.append(replace(document, text=passages[0]))
            continue
        for n, text in enumerate(passages):
            documents.append(replace(document, id=f"{document.id}#{n}", text=text))
    texts = [document.text for document in documents]
    index = DenseIndex(texts, model, keep=True) if model else BM25Index(texts)

    def search(query: str, k: int) -> list[Document]:
        # By default, BM25 returns k passages even if some share no word with the query. Lucene,
        # which the authors used, leaves these out.
        options: dict[str, Any] = {}
        if isinstance(index, BM25Index):
            options["matching_only"] = True
        hits = index.search(query, k, **options)
        return [documents[position] for position in hits.positions]

    with Path(corpus).open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()[:12]
    ranked_by = model.name if model else BM25
    return Passages(f"{Path(corpus).name}@{digest}", ranked_by, len(documents), search)


@cache
def load_web(search: str, ranker: str, encoder: str | None = None) -> WebPassages:
    """Return the web as a source of passages.

    ``search`` is a preset or a TOML file (see ``qabench.retrieval.web.provider.load_provider``).
    See ``encoder_of`` for the other arguments.
    """
    return WebPassages(Web(load_provider(search)), encoder_of(ranker, encoder))


def official_urls(results: Sequence[str]) -> tuple[list[str], list[WebPage]]:
    """Return the URLs to fetch, sorted and without anchors, and the results that are skipped.

    Like the authors' scripts, this skips PDF files and Google's own pages. A Google Scholar link to
    another page is replaced by the address of that page.
    """
    urls: set[str] = set()
    skipped: dict[str, WebPage] = {}
    for result in results:
        url = result
        if url.startswith(f"{SCHOLAR}http"):
            url = url.removeprefix(SCHOLAR).partition("&")[0]
        elif "google.com/" in url:
            skipped[url] = WebPage(url, GOOGLE)
            continue
        if url.endswith(".pdf"):
            skipped[url] = WebPage(url, PDF)
        else:
            urls.add(url.partition("#")[0])
    # The authors remove duplicates with numpy.unique, which sorts.
    return sorted(urls), list(skipped.values())


def split_page(text: str, size: int = CHUNK_SIZE, overlap: int = OVERLAP) -> list[str]:
    """Split a text at spaces into passages of at most ``size`` characters.

    Words are joined until the next one would exceed the size. A passage begins with the last words
    of the previous passage, up to ``overlap`` characters. A word longer than ``size`` is not split.
    Words are separated by spaces only, not by newlines. The result equals that of the authors'
    splitter, langchain's ``CharacterTextSplitter(separator=" ")``.
    """
    passages: list[str] = []
    words: deque[str] = deque()
    length = 0
    for word in filter(None, text.split(" ")):
        if words and length + 1 + len(word) > size:
            passages.append(" ".join(words))
            # Drop the first words of the previous passage until at most ``overlap`` characters are
            # left, and the next word fits.
            while length > overlap or (words and length + 1 + len(word) > size):
                length -= len(words.popleft()) + bool(words)
        length += len(word) + bool(words)
        words.append(word)
    passages.append(" ".join(words))
    return [passage for passage in map(str.strip, passages) if passage]


def _denied_as_unread(page: WebPage) -> WebPage:
    """Return the page. If its text says that access is denied, it counts as not read."""
    # The authors' scripts look for these words.
    if "Access" in page.text and "Denied" in page.text:
        return replace(page, outcome=DENIED, text="")
    return page


def _shown(page: WebPage) -> Json:
    return {
        "url": page.url,
        "outcome": page.outcome,
        "detail": page.detail,
        "characters": len(page.text),
    }
