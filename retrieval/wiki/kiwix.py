"""Offline Wikipedia: a book (ZIM file) on a Kiwix server."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, urljoin
from xml.etree import ElementTree

from qabench.io.http import HttpClient
from qabench.io.http_error import HttpError
from qabench.retrieval.wiki.markdown import article_to_markdown
from qabench.retrieval.wiki.page import (
    RETRY,
    PageMissing,
    WikiError,
    WikiPage,
    address_of,
    check_search,
)

BASE_VARIABLE = "FANOUTQA_KIWIX_BASE"
BOOK_VARIABLE = "FANOUTQA_KIWIX_ZIMNAME"
# The path before a book's name in URLs. Servers since version 3.4 use the first, older ones the
# second.
BOOK_PREFIXES = ("/content/", "/")


class Kiwix:
    """A book of a Kiwix server.

    Its pages have the date of the book, not of the dataset's epoch, and are not cached. The server
    is used even if QABENCH_OFFLINE forbids network access, because it is meant for offline use.
    """

    def __init__(self, base: str, book: str, *, client: HttpClient | None = None) -> None:
        self.base = base.rstrip("/")
        self.book = book
        # Signatures contain this name.
        self.name = f"the Kiwix book {book} at {address_of(self.base)}"
        self.client = client or HttpClient(retry=RETRY)

    def search(self, query: str, results: int = 10) -> list[WikiPage]:
        """Return the results of the book's full-text search (see ``wiki_search``)."""
        check_search(query, results)
        # Without "format", the server returns HTML.
        asked = {
            "pattern": query,
            "start": 0,
            "pageLength": results,
            "books.name": self.book,
            "format": "xml",
        }
        try:
            return self.client.get(f"{self.base}/search", _read_feed, params=asked)[:results]
        except HttpError as error:
            raise WikiError(f"searching the book {self.book!r} failed: {error}") from error

    def lookup(self, title: str) -> WikiPage | list[str]:
        """Return the page with exactly this title. Disambiguation pages count as pages."""
        page = WikiPage(title)
        self.content(page)
        return page

    def content(self, evidence: Any) -> str:
        """Return a page's Markdown. The page is found by its URL on this server, or by its title."""
        page = WikiPage.of(evidence)
        addresses = [urljoin(f"{self.base}/", page.url or "")]
        # Links from this server begin with its address. The URL of an evidence is Wikipedia's.
        if not page.url or not addresses[0].startswith(f"{self.base}/"):
            path = quote(page.title.strip().replace(" ", "_"), safe="/:,;@&=+$!*'()")
            book = quote(self.book)
            addresses = [f"{self.base}{prefix}{book}/{path}" for prefix in BOOK_PREFIXES if path]
        for address in addresses:
            try:
                return article_to_markdown(self.client.get(address).text)
            except HttpError as error:
                if error.status != 404:
                    raise WikiError(str(error)) from error
        raise PageMissing(page, f"the book {self.book!r} of {self.base} has no such page")


def _read_feed(response: Any) -> list[WikiPage]:
    """Return the results in the RSS feed of a search."""
    try:
        feed = ElementTree.fromstring(response.content)
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        # An unknown encoding in the feed raises LookupError.
        raise HttpError("not XML", response.text, transient=True) from error
    results = [(item.findtext("title"), item.findtext("link")) for item in feed.iter("item")]
    return [WikiPage(title, url=link) for title, link in results if title and link]
