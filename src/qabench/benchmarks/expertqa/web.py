"""Passages of web pages for ExpertQA's answers, found and ranked as the authors' scripts do.

Source: ``retrieve_and_read.py`` and ``post_hoc_cite.py`` below ``modeling/response_collection`` of
https://github.com/chaitanyamalaviya/ExpertQA. On purpose, a search API replaces their scraping of Google's result page,
trafilatura replaces newspaper3k, and pages are fetched only where robots.txt allows it.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from qabench.benchmarks.expertqa.passages import CHUNK_SIZE, OVERLAP, Found, Passage, check_sizes
from qabench.benchmarks.expertqa.rankers import encoder_of
from qabench.retrieval import BM25Index
from qabench.retrieval.dense import DenseIndex, Encoder
from qabench.retrieval.web.fetch import READ
from qabench.retrieval.web.provider import load_provider
from qabench.retrieval.web.web import Web, WebPage

NOT_KNOWN = "I don't know."  # the authors' answer without any page
PDF, GOOGLE, DENIED = "PDF", "a page of Google", "access denied"


@dataclass(frozen=True)
class WebPassages:
    """Passages of the pages that a search engine finds."""

    web: Web
    encoder: Encoder | None
    chunk_size: int
    overlap: int

    def find(self, query: str, ranked_by: str, k: int) -> Found:
        """The k best passages of the pages found for a query, with the outcome of each page.

        Args:
            query: is sent to the search engine.
            ranked_by: the passages are ranked by their similarity to it.
            k: the number of passages.

        Raises:
            SearchFailed: the search engine failed.
        """
        results = self.web.search(query)
        urls, skipped = official_urls(results)
        pages = [*skipped, *map(_checked, self.web.read(urls))]
        passages = [
            Passage(f"{page.url}#{n}", text, page.url)
            for page in pages
            if page.outcome == READ
            for n, text in enumerate(split_page(page.text, self.chunk_size, self.overlap))
        ]
        about = {"query": query, "results": len(results), "passages": len(passages), "pages": list(map(_shown, pages))}
        return Found([passages[i] for i in self._best(passages, ranked_by, k)], (about,))

    def signature(self) -> dict[str, object]:
        """The fields of signatures that say where passages come from."""
        return {
            "web": self.web.provider.name,
            "results": self.web.provider.pages.results,
            "pages": self.web.extractor,
            "chunks": f"{self.chunk_size}/{self.overlap}",
            "page_ranker": self.encoder.name if self.encoder else "bm25",
        }

    def _best(self, passages: Sequence[Passage], ranked_by: str, k: int) -> list[int]:
        """Positions of the best passages. Kept on disk: a resumed run encodes nothing twice."""
        texts = [passage.text for passage in passages]
        if not texts:
            return []
        name = self.encoder.name if self.encoder else "bm25"
        digest = hashlib.sha256(json.dumps([ranked_by, texts]).encode()).hexdigest()
        key = f"{name} {k} {digest}"
        if (known := self.web.cache.get("rankings", key)) is None:
            index = DenseIndex(texts, self.encoder) if self.encoder else BM25Index(texts)
            known = {"positions": index.search(ranked_by, k).positions}
            self.web.cache.put("rankings", key, known)
        positions: list[int] = known["positions"]
        return positions


@cache
def load_web(
    search: str, ranker: str, encoder: str | None, chunk_size: int = CHUNK_SIZE, overlap: int = OVERLAP
) -> WebPassages:
    """The web as a source of passages; cached by arguments.

    Args:
        search: a preset or a TOML file; see ``qabench.retrieval.web.provider.load_provider``.
        ranker, encoder: see ``encoder_of``.
        chunk_size: pages are split into passages of at most this many characters.
        overlap: the number of characters that adjacent passages share, at most.

    Raises:
        InputError: the configuration, ranker or sizes are invalid; names the option or variable.
        MissingExtra: the extra ``web``, or that of the ranker, is not installed.
    """
    check_sizes(chunk_size, overlap)
    provider = load_provider(search)
    return WebPassages(Web(provider), encoder_of(ranker, encoder), chunk_size, overlap)


def official_urls(results: Sequence[str]) -> tuple[list[str], list[WebPage]]:
    """The URLs to fetch, sorted and without anchors, and the results that the authors skip.

    They skip PDF files and Google's own pages, except for what Google Scholar links to.
    """
    urls: set[str] = set()
    skipped: dict[str, WebPage] = {}
    scholar = "https://scholar.google.com/scholar_url?url="
    for result in results:
        url = result
        if url.startswith(f"{scholar}http"):
            url = url.removeprefix(scholar).partition("&")[0]
        elif "google.com/" in url:
            skipped[url] = WebPage(url, GOOGLE)
            continue
        if url.endswith(".pdf"):
            skipped[url] = WebPage(url, PDF)
        else:
            urls.add(url.partition("#")[0])
    return sorted(urls), list(skipped.values())


def split_page(text: str, size: int = CHUNK_SIZE, overlap: int = OVERLAP) -> list[str]:
    """Splits a text at spaces into passages of at most ``size`` characters, exactly as the authors' splitter.

    Words are joined until the next one would exceed the size. A passage begins with the last words of the previous one,
    at most ``overlap`` characters of them. Longer words, and newlines, are never split.

    Source: ``CharacterTextSplitter(separator=" ")`` of langchain.
    """
    found: list[str] = []
    words: deque[str] = deque()
    length = 0
    for word in filter(None, text.split(" ")):
        if words and length + 1 + len(word) > size:
            found.append(" ".join(words))
            while length > overlap or (words and length + 1 + len(word) > size):
                length -= len(words.popleft()) + bool(words)
        length += len(word) + bool(words)
        words.append(word)
    found.append(" ".join(words))
    return [passage for passage in map(str.strip, found) if passage]


def record(searches: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The record of a question's searches for logs: the number of pages by outcome, and every page."""
    counts = Counter(page["outcome"] for search in searches for page in search["pages"])
    return {"outcomes": dict(counts.most_common()), "searches": list(searches)}


def _checked(page: WebPage) -> WebPage:
    """The page, without its text if a server refused it in words; the authors look for the same two words."""
    if "Access" in page.text and "Denied" in page.text:
        return replace(page, outcome=DENIED, text="")
    return page


def _shown(page: WebPage) -> dict[str, Any]:
    shown: dict[str, Any] = {"url": page.url, "outcome": page.outcome}
    if page.detail:
        shown["detail"] = page.detail
    return shown | ({"characters": len(page.text)} if page.text else {})
