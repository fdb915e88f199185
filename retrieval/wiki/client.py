"""Wikipedia for FanOutQA: search it, and read its pages as Markdown.

``FANOUTQA_WIKIPEDIA_TYPE=kiwix`` with ``FANOUTQA_KIWIX_BASE`` and ``FANOUTQA_KIWIX_ZIMNAME`` chooses a Kiwix server
instead of Wikipedia itself.
"""

from __future__ import annotations

import functools
import os
from typing import Any, Protocol

from qabench.errors import InputError
from qabench.retrieval.wiki import cache as wiki_cache
from qabench.retrieval.wiki import kiwix as wiki_kiwix
from qabench.retrieval.wiki import mediawiki as wiki_mediawiki
from qabench.retrieval.wiki.kiwix import Kiwix
from qabench.retrieval.wiki.mediawiki import MediaWiki
from qabench.retrieval.wiki.page import WikiPage

TYPE_VARIABLE = "FANOUTQA_WIKIPEDIA_TYPE"
TYPES = ("live", "kiwix")
VARIABLES = (
    TYPE_VARIABLE,
    wiki_kiwix.BASE_VARIABLE,
    wiki_kiwix.BOOK_VARIABLE,
    wiki_mediawiki.VARIABLE,
    wiki_cache.VARIABLE,
    "QABENCH_CACHE",
    "HOME",
)


class Wikipedia(Protocol):
    """The interface of both kinds of Wikipedia."""

    @property
    def name(self) -> str:
        """The source of the pages, for signatures: "dated" for Wikipedia at the dataset's epoch."""

    def lookup(self, title: str) -> WikiPage | list[str]:
        """The page of a title, redirects followed; or the titles that a disambiguation page lists, sorted.

        Raises:
            PageMissing: no page has this title. WikiError: the server could not be asked.
        """

    def search(self, query: str, results: int = 10) -> list[WikiPage]:
        """See ``wiki_search``."""

    def content(self, evidence: Any) -> str:
        """See ``wiki_content``."""


def wiki_search(query: str, results: int = 10) -> list[WikiPage]:
    """The pages that Wikipedia finds for a query, the best first.

    The search is today's, as it is for the official package: a page that it finds may be younger than the epoch, and
    ``wiki_content`` then raises ``PageMissing``.

    Args:
        query: what to search for, in the words and operators of the wiki's search.
        results: the most pages to give, 1 to 500.

    Returns:
        Pages with title, pageid (None from a Kiwix server) and url; an empty list where nothing is found.

    Raises:
        InputError: an empty query, ``results`` out of range, or wrong settings of the environment.
        WikiError: the server could not be asked.

    Source: ``fanoutqa.wiki_search``, https://github.com/zhudotexe/fanoutqa.
    """
    return wikipedia().search(query, results)


def wiki_content(evidence: Any) -> str:
    """A page's text at the dataset's epoch (2023-11-20), in Markdown with tables and infoboxes.

    Looked up in the cache first (see ``WikiCache``; a cache filled by the official package, or from its authors'
    tarball, is read as it is), then asked for and kept. The revision is the evidence's ``revid``, or where that is
    unknown the newest at the epoch, of the page with its ``pageid`` or else its title; redirects of that time are
    followed.

    Args:
        evidence: a row of ``necessary_evidence``, a page of ``wiki_search``, or any object with title, pageid, revid.

    Returns:
        The Markdown, never empty; see ``to_markdown`` for its form.

    Raises:
        PageMissing: there was no such page at the epoch. (The official package gives "" and keeps that.)
        WikiError: the page is in no cache and could not be asked for.
        InputError: the evidence names no page, or the environment's settings are wrong.

    Source: ``fanoutqa.wiki_content``, https://github.com/zhudotexe/fanoutqa.
    """
    return wikipedia().content(evidence)


def wikipedia() -> Wikipedia:
    """The Wikipedia that the environment names; the same object for as long as the environment stays the same.

    Raises:
        InputError: FANOUTQA_WIKIPEDIA_TYPE is unknown, or Kiwix is chosen and its other variables are not set.
    """
    return _chosen(tuple(os.environ.get(name) for name in VARIABLES))


@functools.lru_cache(maxsize=1)
def _chosen(_: tuple[str | None, ...]) -> Wikipedia:
    kind = os.environ.get(TYPE_VARIABLE) or "live"
    if kind not in TYPES:
        raise InputError(f"{TYPE_VARIABLE} is {kind!r}; allowed: {', '.join(TYPES)}, or not set for live")
    if kind == "live":
        return MediaWiki()
    names = (wiki_kiwix.BASE_VARIABLE, wiki_kiwix.BOOK_VARIABLE)
    base, book = (os.environ.get(name, "") for name in names)
    if not base or not book:
        missing = ", ".join(name for name, value in zip(names, (base, book), strict=True) if not value)
        raise InputError(
            f"{TYPE_VARIABLE} is kiwix, and {missing} is not set: name the server, such as http://localhost:8888, and "
            "the book as it stands in the addresses of its pages"
        )
    return Kiwix(base, book)
