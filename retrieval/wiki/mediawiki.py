"""Wikipedia as it was at the dataset's epoch, through the MediaWiki action API."""

from __future__ import annotations

import os
import warnings
from typing import Any, TypeVar

from qabench.errors import InputError, QabenchError
from qabench.http import retry_after
from qabench.limits import TooLarge, json_of
from qabench.retrieval.wiki.cache import WikiCache
from qabench.retrieval.wiki.http import Answer, PoliteClient, TryAgain
from qabench.retrieval.wiki.markdown import parsed, to_markdown
from qabench.retrieval.wiki.page import EPOCH, PageMissing, WikiError, WikiPage, valid_id, wikipedia_url
from qabench.sources.resolve import offline_variable

T = TypeVar("T")
ENGLISH_WIKIPEDIA = "https://en.wikipedia.org/w/api.php"
VARIABLE = "QABENCH_WIKIPEDIA_API"
MOST_RESULTS = 500
MAXLAG_SECONDS = 5
MAX_REDIRECTS = 3
# The API reports these with status 200; they pass.
PASSING_ERRORS = ("maxlag", "ratelimited", "internal_api_error")
GONE = ("nosuchrevid", "missingtitle", "permissiondenied", "missingcontent", "cantaccessrevision")


class MediaWiki:
    """A wiki's pages at the epoch, kept in a cache.

    Args:
        api: the URL of the wiki's ``api.php``; by default QABENCH_WIKIPEDIA_API, else the English Wikipedia's.
        cache: where pages are kept; by default ``WikiCache()``.
        client: what asks; its settings say how many requests are under way at once and how patiently.
    """

    def __init__(
        self, api: str | None = None, *, cache: WikiCache | None = None, client: PoliteClient | None = None
    ) -> None:
        self.api = api or os.environ.get(VARIABLE) or ENGLISH_WIKIPEDIA
        self.cache = cache or WikiCache()
        self.client = client or PoliteClient()

    def search(self, query: str, results: int = 10) -> list[WikiPage]:
        """The wiki's own search, as it is today, so a page may be younger than the epoch; see ``wiki_search``."""
        if not query.strip() or not 1 <= results <= MOST_RESULTS:
            raise InputError(f"query {query!r}, results {results}: needs a query and 1 to {MOST_RESULTS} results")
        found = self._ask({"action": "query", "list": "search", "srsearch": query, "srlimit": results})
        return [_hit(hit) for hit in _member(found, list, "query", "search")]

    name = "dated"

    def lookup(self, title: str) -> WikiPage | list[str]:
        """The page of a title; see ``Wikipedia.lookup``. Titles and redirects are today's, as upstream.

        If the network is forbidden: the page of exactly this title, if it is cached.
        """
        if offline_variable() and (known := self.cache.pageid_of(title)) is not None:
            return WikiPage(title, known)
        asked = WikiPage(title)
        if "|" in title:
            raise PageMissing(asked, "no page's title has a '|'")
        which: dict[str, str | int] = {"titles": title, "redirects": 1}
        page = self._first_page({"prop": "pageprops", "ppprop": "disambiguation", **which})
        if page.get("missing") or page.get("invalid") or "pageid" not in page:
            raise PageMissing(asked, _why_missing(page, asked))
        found = WikiPage(_member(page, str, "title"), _id(page, "pageid"))
        if "disambiguation" not in (page.get("pageprops") or {}):
            return found
        return _options(self._html(asked, self._at_epoch(found)))

    def content(self, evidence: Any) -> str:
        """A page's Markdown at the epoch; see ``wiki_content``."""
        page = WikiPage.of(evidence)
        text = self.cached(page)
        if text is not None:
            return text
        pageid, text = self.fetch(page)
        try:
            self.keep(page, pageid, text)
        except QabenchError as error:  # the page is here: a full disk is no reason to withhold it
            warnings.warn(f"{error}; the page is not cached", stacklevel=2)
        return text

    def cached(self, page: WikiPage) -> str | None:
        """A page's Markdown from the cache, or None. A page without id is found if it was once looked up here."""
        pageid = self.cache.pageid_of(page.title) if page.pageid is None else page.pageid
        return None if pageid is None else self.cache.read(pageid)

    def keep(self, page: WikiPage, pageid: int, text: str) -> None:
        """Puts a fetched page into the cache. Raises QabenchError where it cannot be written."""
        self.cache.write(pageid, text)
        if page.pageid is None:
            self.cache.remember_title(page.title, pageid)

    def fetch(self, page: WikiPage) -> tuple[int, str]:
        """A page's id and Markdown at the epoch, from the wiki.

        A page that was a redirect at the epoch gives the page that it led to then, under its own id.

        Raises:
            PageMissing: the wiki has no such page, had none at the epoch, hides it, or it was blank.
            WikiError: the wiki could not be asked.
        """
        found = page if page.pageid and page.revid else self._at_epoch(page)
        first = found
        for _ in range(MAX_REDIRECTS + 1):
            html = self._html(page, found)
            target = _redirect_target(html)
            if target is None:
                break
            found = self._at_epoch(WikiPage(target), asked=page)
        else:
            raise PageMissing(page, f"it was a redirect at the epoch, and led to more than {MAX_REDIRECTS} others")
        text = to_markdown(html)
        if not text.strip():
            raise PageMissing(page, f"its revision {found.revid}, the newest at the epoch {EPOCH}, is blank")
        return first.pageid or 0, text

    def _at_epoch(self, page: WikiPage, asked: WikiPage | None = None) -> WikiPage:
        """The page with its id and its newest revision at the epoch."""
        if "|" in page.title and not page.pageid:  # the API would take it for several titles
            raise PageMissing(asked or page, "no page's title has a '|'")
        which: dict[str, str | int] = {"pageids": page.pageid} if page.pageid else {"titles": page.title}
        answer = self._revision(which)
        if not answer.get("revisions") and not page.pageid:
            # The title may be a redirect that is younger than the epoch: the page has been renamed since.
            answer = self._revision(which | {"redirects": 1})
        if not answer.get("revisions"):
            raise PageMissing(asked or page, _why_missing(answer, page))
        newest = _member(answer, list, "revisions")[0]
        return WikiPage(_member(answer, str, "title"), _id(answer, "pageid"), _id(newest, "revid"))

    def _revision(self, which: dict[str, str | int]) -> dict[str, Any]:
        newest: dict[str, str | int] = {"prop": "revisions", "rvprop": "ids|timestamp", "rvlimit": 1, "rvstart": EPOCH}
        return self._first_page({**newest, **which})

    def _first_page(self, which: dict[str, str | int]) -> dict[str, Any]:
        """The first page in the answer to a query."""
        answer = self._ask({"action": "query", **which})
        pages = _member(answer, dict, "query").get("pages", [])
        if not isinstance(pages, list) or not all(isinstance(one, dict) for one in pages):
            raise WikiError(f"the wiki's answer has no list of pages: {answer!r:.200}")
        return pages[0] if pages else {"invalid": True, "invalidreason": "the title leads to another wiki"}

    def _html(self, asked: WikiPage, found: WikiPage) -> str:
        try:
            answer = self._ask({"action": "parse", "oldid": found.revid or 0, "prop": "text"})
        except _ApiError as error:
            if error.code in GONE:
                raise PageMissing(asked, f"{error.info} ({error.code})") from None
            raise
        return str(_member(answer, str, "parse", "text"))

    def _ask(self, params: dict[str, str | int]) -> dict[str, Any]:
        if variable := offline_variable():
            raise WikiError(
                f"{self.api} is not asked, because {variable} is set. Pages in the cache can be read: fill it with "
                "`qabench wiki prefetch` where there is a network, or with `qabench wiki import-cache`"
            )
        common: dict[str, str | int] = {"format": "json", "formatversion": 2, "maxlag": MAXLAG_SECONDS}
        return self.client.get(self.api, common | params, _read_answer)


class _ApiError(WikiError):
    """The API refused a request. ``code`` is its word for the reason."""

    def __init__(self, where: str, code: str, info: str) -> None:
        super().__init__(where, code, info)
        self.where, self.code, self.info = where, code, info

    def __str__(self) -> str:
        return f"{self.where} refused the request: {self.info} ({self.code})"


def _read_answer(response: Answer) -> dict[str, Any]:
    try:
        answer = json_of(response.content)
    except TooLarge as error:
        raise WikiError(f"{response.url}: the answer is {error}") from None
    except ValueError as error:
        raise TryAgain(f"the answer is not JSON: {response.text[:80]!r}") from error
    if not isinstance(answer, dict):
        raise TryAgain(f"the answer is not a JSON object: {response.text[:80]!r}")
    if "error" in answer:
        given = answer["error"] if isinstance(answer["error"], dict) else {}
        code, info = str(given.get("code", "unknown")), str(given.get("info", "no details"))
        if code.startswith(PASSING_ERRORS):
            raise TryAgain(f"{info} ({code})", retry_after(response.headers.get("Retry-After")))
        raise _ApiError(response.url, code, info)
    return answer


def _member(answer: Any, kind: type[T], *path: str) -> T:
    """The value at a path of keys. Raises WikiError if it is not there or of another type."""
    value = answer
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    if not isinstance(value, kind):
        raise WikiError(f"the wiki's answer has no {'.'.join(path)} of the type {kind.__name__}: {answer!r:.200}")
    return value


def _id(answer: Any, name: str) -> int:
    """The id of a page or a revision. Ids become parts of file names and requests."""
    number = valid_id(answer.get(name)) if isinstance(answer, dict) else None
    if number is None:
        raise WikiError(f"the wiki's answer has no {name} that is a positive number: {answer!r:.200}")
    return number


def _hit(hit: Any) -> WikiPage:
    title = _member(hit, str, "title")
    return WikiPage(title, _id(hit, "pageid"), url=wikipedia_url(title))


def _redirect_target(html: str) -> str | None:
    """The title that a redirect's page shows as its target, or None where the page is no redirect."""
    if 'class="redirectMsg"' not in html:
        return None
    link = parsed(html).select_one(".redirectMsg .redirectText a")
    return str(link.get_text()).partition("#")[0] if link else None


def _options(html: str) -> list[str]:
    """The titles that a disambiguation page lists, sorted: the first link of each list item, without its contents."""
    items = [item for item in parsed(html).find_all("li") if "tocsection" not in "".join(item.get("class") or [])]
    return sorted(item.a.get_text() for item in items if item.a)


def _why_missing(answer: dict[str, Any], page: WikiPage) -> str:
    if answer.get("invalid"):
        return str(answer.get("invalidreason", "the title is not one that a page can have"))
    if answer.get("missing"):
        return f"the wiki has no page with this {'id' if page.pageid else 'title'}"
    return f"it has no revision at or before the epoch {EPOCH}"
