"""Search Wikipedia for FanOutQA, and read its pages as Markdown.

``QABENCH_ZIM`` selects a Kiwix ZIM file instead of Wikipedia itself.
``FANOUTQA_WIKIPEDIA_TYPE=kiwix`` with ``FANOUTQA_KIWIX_BASE`` and ``FANOUTQA_KIWIX_ZIMNAME``
selects a Kiwix server.
"""

from __future__ import annotations

import functools
import os
from typing import Any

from qabench.data.arguments import checked_k, checked_string
from qabench.errors import InputError
from qabench.retrieval.wiki.kiwix import BASE_VARIABLE, BOOK_VARIABLE, Kiwix
from qabench.retrieval.wiki.mediawiki import MediaWiki
from qabench.retrieval.wiki.page import WikiPage
from qabench.retrieval.wiki.zim import ZimFile

ZIM_VARIABLE = "QABENCH_ZIM"
TYPE_VARIABLE = "FANOUTQA_WIKIPEDIA_TYPE"
TYPES = ("live", "kiwix")
# The wiki and the folder of its cache depend on environment variables with these prefixes only.
VARIABLES = ("QABENCH_", "FANOUTQA_", "HOME", "XDG_CACHE_HOME")


Wikipedia = MediaWiki | Kiwix | ZimFile


def wiki_search(query: str, results: int = 10) -> list[WikiPage]:
    """Return the pages that Wikipedia finds for a query, best first.

    Like the official package, this searches today's Wikipedia, so the results may contain pages
    that were created after the dataset's epoch. ``wiki_content`` raises ``PageMissing`` for these.

    Args:
        query: the query, in the syntax of the wiki's search.
        results: the largest number of results, 1 to 500.

    Returns:
        Pages with title, pageid (None from a Kiwix server) and url. An empty list if nothing is
        found.

    Raises:
        InputError: an empty query, ``results`` out of range, or invalid environment variables.
        WikiError: the request failed.

    Source: ``fanoutqa.wiki_search``, https://github.com/zhudotexe/fanoutqa.
    """
    return wikipedia().search(checked_string(query, "query"), checked_k(results, "results"))


def wiki_content(evidence: Any) -> str:
    """Return a page's Markdown at the dataset's epoch (2023-11-20), with tables and infoboxes.

    The page is read from the cache, or downloaded and stored there. Caches of the official package
    and of the authors' tarball are read, too (see ``WikiCache``). The revision is the evidence's
    ``revid`` if it is known, else the newest one that the page with this ``pageid`` or title had at
    the epoch. Redirects of that time are followed.

    Args:
        evidence: a row of ``necessary_evidence``, a result of ``wiki_search``, or any object with
            title, pageid, revid.

    Returns:
        The Markdown, never empty. See ``to_markdown`` for its form.

    Raises:
        PageMissing: there was no such page at the epoch. (The official package returns "" and
            caches it.)
        WikiError: the page is not in a cache, and the request failed.
        InputError: the evidence has neither a page id nor a title, or environment variables are
            invalid.

    Source: ``fanoutqa.wiki_content``, https://github.com/zhudotexe/fanoutqa.
    """
    return wikipedia().content(evidence)


def wikipedia(zim: str | None = None) -> Wikipedia:
    """Return the Wikipedia that the argument or the environment names. The last result is reused."""
    return _chosen(zim, tuple(item for item in os.environ.items() if item[0].startswith(VARIABLES)))


# The variables are part of the cache's key, so a change of the environment gives another object.
@functools.lru_cache(maxsize=1)
def _chosen(zim: str | None, _: tuple[tuple[str, str], ...]) -> Wikipedia:
    if zim := zim or os.environ.get(ZIM_VARIABLE):
        return ZimFile(zim)
    kind = os.environ.get(TYPE_VARIABLE) or "live"
    if kind not in TYPES:
        raise InputError(
            f"{TYPE_VARIABLE} is {kind!r}; allowed: {', '.join(TYPES)}, or not set for live"
        )
    if kind == "live":
        return MediaWiki()
    if missing := [name for name in (BASE_VARIABLE, BOOK_VARIABLE) if not os.environ.get(name)]:
        raise InputError(
            f"{TYPE_VARIABLE} is kiwix, but {', '.join(missing)} is not set: set the server, such as "
            "http://localhost:8888, and the name of the book in the URLs of its pages"
        )
    return Kiwix(os.environ[BASE_VARIABLE], os.environ[BOOK_VARIABLE])
