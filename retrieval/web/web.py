"""Search, pages and their text together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from qabench.retrieval.web.cache import WebCache
from qabench.retrieval.web.extract import extractor, main_text
from qabench.retrieval.web.fetch import READ, FetchedPage, PageFetcher
from qabench.retrieval.web.provider import SearchProvider
from qabench.retrieval.web.search import Searcher

NO_TEXT = "no text"


@dataclass(frozen=True, slots=True)
class WebPage:
    """A page's text, or why there is none; see ``FetchedPage`` for outcome and detail."""

    url: str
    outcome: str
    text: str = ""
    detail: str = ""


class Web:
    """Pages of the web for queries; safe for several threads.

    Args:
        provider: the search API, with the limits for pages.
        cache: where everything is kept; by default in qabench's cache.

    Raises:
        MissingExtra: the extra ``web`` is not installed.
    """

    def __init__(self, provider: SearchProvider, cache: WebCache | None = None) -> None:
        self.extractor = extractor()
        self.provider = provider
        self.cache = cache or WebCache()
        self._searcher = Searcher(provider, self.cache)
        self._fetcher = PageFetcher(self.cache, provider.pages)
        self._threads = ThreadPoolExecutor(provider.pages.at_once, thread_name_prefix="qabench-web")

    def search(self, query: str) -> list[str]:
        """Addresses of pages, best first. Raises SearchFailed."""
        return self._searcher.search(query)

    def read(self, urls: Sequence[str]) -> list[WebPage]:
        """One result per URL, in order."""
        return list(self._threads.map(self._read, urls))

    def close(self) -> None:
        """Closes all connections, after the pages in progress."""
        self._threads.shutdown(cancel_futures=True)
        self._searcher.close()
        self._fetcher.close()

    def _read(self, url: str) -> WebPage:
        return page_of(self._fetcher.fetch(url))


def page_of(fetched: FetchedPage) -> WebPage:
    """The page with its text; a page without main text has the outcome "no text"."""
    if fetched.outcome != READ:
        return WebPage(fetched.url, fetched.outcome, detail=fetched.detail)
    text = main_text(fetched.html, fetched.charset)
    return WebPage(fetched.url, READ if text.strip() else NO_TEXT, text)


def outcomes(pages: Sequence[WebPage]) -> dict[str, int]:
    """How many pages had each outcome, the most frequent first."""
    return dict(Counter(page.outcome for page in pages).most_common())
