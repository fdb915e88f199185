"""Search, pages and their text together."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from qabench.io.workers import DaemonPool
from qabench.retrieval.web.cache import WebCache
from qabench.retrieval.web.extract import Extractor
from qabench.retrieval.web.fetch import READ, FetchedPage, PageFetcher
from qabench.retrieval.web.provider import SearchProvider
from qabench.retrieval.web.search import Searcher

NO_TEXT = "no text"
UNREADABLE = "unreadable"  # extraction takes too long


@dataclass(frozen=True, slots=True)
class WebPage:
    """A page's text, or why there is none; see ``FetchedPage`` for outcome and detail."""

    url: str
    outcome: str
    text: str = ""
    detail: str = ""


class Web:
    """Pages of the web for queries; safe for several threads."""

    def __init__(self, provider: SearchProvider, cache: WebCache | None = None) -> None:
        self._extractor = Extractor()
        self.extractor = self._extractor.name
        self.provider = provider
        self.cache = cache or WebCache()
        self._searcher = Searcher(provider, self.cache)
        self._fetcher = PageFetcher(self.cache, provider.pages)
        self._threads = DaemonPool(provider.pages.at_once, "qabench-web")

    def search(self, query: str) -> list[str]:
        """Return addresses of pages, best first. Raises SearchFailed."""
        return self._searcher.search(query)

    def read(self, urls: Sequence[str]) -> list[WebPage]:
        """Return one result per URL, in order."""
        return self._threads.map(self._read, urls)

    def close(self) -> None:
        """Close all connections. Pages in progress fail."""
        self._threads.close()
        self._searcher.close()
        self._fetcher.close()
        self._extractor.close()

    def _read(self, url: str) -> WebPage:
        fetched = self._fetcher.fetch(url)
        if fetched.outcome != READ:
            return WebPage(url, fetched.outcome, detail=fetched.detail)
        text = self._text(fetched)
        if text is None:
            return WebPage(url, UNREADABLE, detail="no text within the time limit")
        return WebPage(url, READ if text.strip() else NO_TEXT, text)

    def _text(self, fetched: FetchedPage) -> str | None:
        """Return the page's text, None if it is unreadable; cached, because extraction can take seconds."""
        key = f"{self.extractor} {fetched.charset} {hashlib.sha256(fetched.html).hexdigest()}"
        if (entry := self.cache.get("texts", key)) is None:
            entry = {"text": self._extractor.text(fetched.html, fetched.charset)}
            self.cache.put("texts", key, entry)
        text: str | None = entry["text"]
        return text
