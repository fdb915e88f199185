"""Wikipedia at the dataset's epoch, from the MediaWiki action API."""

from __future__ import annotations

import os
import warnings
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit

from qabench.data.rows import Json
from qabench.errors import QabenchError
from qabench.io.addresses import is_this_machine
from qabench.io.environment import offline_variable
from qabench.io.http import HttpClient, read_json
from qabench.io.http_error import HttpError, retry_after
from qabench.io.redaction import quoted
from qabench.retrieval.wiki.cache import WikiCache
from qabench.retrieval.wiki.markdown import parsed, to_markdown
from qabench.retrieval.wiki.page import (
    EPOCH,
    RETRY,
    PageMissing,
    WikiError,
    WikiPage,
    address_of,
    check_search,
    valid_id,
)

T = TypeVar("T")
ENGLISH_WIKIPEDIA = "https://en.wikipedia.org/w/api.php"
VARIABLE = "QABENCH_WIKIPEDIA_API"
WITHOUT_NETWORK = (
    "Pages in the cache can be read: fill it with `qabench wiki prefetch` on a machine with network access, or "
    "with the authors' archive. Or use a ZIM file (QABENCH_ZIM) or a Kiwix server (FANOUTQA_WIKIPEDIA_TYPE=kiwix)"
)
# The parameter maxlag: the wiki refuses a request while its database servers lag by more seconds.
MAXLAG_SECONDS = 5
MAX_REDIRECTS = 3
# Transient errors that the API reports with status 200.
TRANSIENT_ERRORS = ("maxlag", "ratelimited", "internal_api_error")
# The API's codes for revisions that were deleted or hidden.
GONE = ("nosuchrevid", "missingtitle", "permissiondenied", "missingcontent", "cantaccessrevision")


class MediaWiki:
    """The pages of a wiki at the epoch, with a cache."""

    def __init__(
        self,
        api: str | None = None,
        *,
        cache: WikiCache | None = None,
        client: HttpClient | None = None,
    ) -> None:
        self.api = api or os.environ.get(VARIABLE) or ENGLISH_WIKIPEDIA
        # Signatures contain this name.
        self.name = "dated"
        other_wiki = ""
        if self.api != ENGLISH_WIKIPEDIA:
            other_wiki = address_of(self.api)
        if other_wiki:
            self.name = f"the wiki at {other_wiki}"
        self.cache = cache or WikiCache(wiki=other_wiki)
        self.client = client or HttpClient(retry=RETRY)

    def search(self, query: str, results: int = 10) -> list[WikiPage]:
        """Return the results of the wiki's search, including pages that are newer than the epoch."""
        check_search(query, results)
        answer = self._ask(
            {"action": "query", "list": "search", "srsearch": query, "srlimit": results}
        )
        return [_hit(hit) for hit in _member(answer, list, "query", "search")]

    def lookup(self, title: str) -> WikiPage | list[str]:
        """Return the page with a title, or the sorted titles that a disambiguation page lists.

        Redirects are followed. As in the official package, titles and redirects are today's. If
        requests to the wiki are forbidden, only a cached page with exactly this title is found.
        """
        if self._forbidden_by() and (pageid := self.cache.pageid_of(title)) is not None:
            return WikiPage(title, pageid)
        page = WikiPage(title)
        about = {"prop": "pageprops", "ppprop": "disambiguation", "redirects": 1}
        answer = self._first_page(about | _which(page))
        if "pageid" not in answer:
            raise PageMissing(page, _why_missing(answer))
        target = WikiPage(_member(answer, str, "title"), _id(answer, "pageid"))
        # For disambiguation pages, the property exists, with an empty value.
        if "disambiguation" not in str(answer.get("pageprops")):
            return target
        return _options(self._html(self._at_epoch(target)))

    def content(self, evidence: Any) -> str:
        """Return a page's Markdown at the epoch (see ``wiki_content``)."""
        page = WikiPage.of(evidence)
        text = self.cached(page)
        if text is not None:
            return text
        pageid, text = self.fetch(page)
        try:
            self.keep(page, pageid, text)
        except QabenchError as error:
            # The page was downloaded, so return it even if the disk is full.
            warnings.warn(f"{error}; the page is not cached", stacklevel=2)
        return text

    def cached(self, page: WikiPage) -> str | None:
        """Return the cached Markdown of a page, found by its id or its title, or None."""
        pageid = page.pageid
        if pageid is None:
            pageid = self.cache.pageid_of(page.title)
        if pageid is None:
            return None
        return self.cache.read(pageid)

    def keep(self, page: WikiPage, pageid: int, text: str) -> None:
        """Store a downloaded page in the cache. Raises QabenchError if it cannot be written."""
        self.cache.write(pageid, text)
        if page.pageid is None:
            self.cache.remember_title(page.title, pageid)

    def fetch(self, page: WikiPage) -> tuple[int, str]:
        """Download a page from the wiki and return its id and its Markdown at the epoch.

        If the page was a redirect at the epoch, the id belongs to the page itself, and the Markdown
        to the redirect's target.
        """
        try:
            first = page
            if not page.pageid or not page.revid:
                first = self._at_epoch(page)
            revision = first
            html = self._html(revision)
            redirects = 0
            while (target := _redirect_target(html)) is not None:
                redirects += 1
                if redirects > MAX_REDIRECTS:
                    reason = f"it was the start of more than {MAX_REDIRECTS} redirects at the epoch"
                    raise PageMissing(page, reason)
                revision = self._at_epoch(WikiPage(target))
                html = self._html(revision)
        except PageMissing as error:
            # The error may be about the target of a redirect, but should name the requested page.
            raise PageMissing(page, error.reason) from None
        text = to_markdown(html)
        if not text.strip():
            reason = f"its revision {revision.revid}, the newest at the epoch {EPOCH}, is blank"
            raise PageMissing(page, reason)
        return first.pageid or 0, text

    def _at_epoch(self, page: WikiPage) -> WikiPage:
        """Return the page with its id and its newest revision at the epoch."""
        # The API lists revisions from the newest to the oldest, beginning at "rvstart".
        about = {"prop": "revisions", "rvprop": "ids|timestamp", "rvlimit": 1, "rvstart": EPOCH}
        answer = self._first_page(about | _which(page))
        if not answer.get("revisions") and not page.pageid:
            # If the page was renamed after the epoch, its old title is a redirect without revisions
            # before the epoch.
            answer = self._first_page(about | _which(page) | {"redirects": 1})
        if not answer.get("revisions"):
            raise PageMissing(page, _why_missing(answer))
        newest = _member(answer, list, "revisions")[0]
        return WikiPage(_member(answer, str, "title"), _id(answer, "pageid"), _id(newest, "revid"))

    def _first_page(self, which: Json) -> Json:
        """Return the first page in the response to a query."""
        query = _member(self._ask({"action": "query", **which}), dict, "query")
        if not query.get("pages"):
            return {"invalidreason": "the title leads to another wiki"}
        page: Json = _member({"page": _member(query, list, "pages")[0]}, dict, "page")
        return page

    def _html(self, revision: WikiPage) -> str:
        try:
            answer = self._ask({"action": "parse", "oldid": revision.revid or 0, "prop": "text"})
        except WikiError as error:
            if isinstance(cause := error.__cause__, HttpError) and cause.reason in GONE:
                raise PageMissing(revision, f"{cause.detail} ({cause.reason})") from None
            raise
        return _member(answer, str, "parse", "text")

    def _forbidden_by(self) -> str | None:
        """Return the variable that forbids requests. HF_HUB_OFFLINE does not forbid a local wiki."""
        variable = offline_variable()
        if variable == "HF_HUB_OFFLINE" and is_this_machine(urlsplit(self.api).hostname):
            return None
        return variable

    def _ask(self, params: Json) -> Json:
        if variable := self._forbidden_by():
            raise WikiError(
                f"cannot request {self.api}, because {variable} is set. {WITHOUT_NETWORK}"
            )
        common = {"format": "json", "formatversion": 2, "maxlag": MAXLAG_SECONDS}
        try:
            return self.client.get(self.api, _read_answer, params=common | params)
        except HttpError as error:
            message = str(error)
            if error.unreachable:
                message += f". {WITHOUT_NETWORK}"
            raise WikiError(message) from error


def _which(page: WikiPage) -> Json:
    """Return the query parameters that select a page by its id or, if unknown, its title."""
    if page.pageid:
        return {"pageids": page.pageid}
    if "|" in page.title:
        # The API would split such a title into several titles.
        raise PageMissing(page, "a title cannot contain '|'")
    return {"titles": page.title}


def _read_answer(response: Any) -> Json:
    answer = read_json(response)
    if not isinstance(answer, dict):
        raise HttpError("not a JSON object", response.text, transient=True)
    if "error" in answer:
        fields = answer["error"] if isinstance(answer["error"], dict) else {}
        code, info = str(fields.get("code", "unknown")), str(fields.get("info", "no details"))
        wait = retry_after(response.headers)
        raise HttpError(code, info, transient=code.startswith(TRANSIENT_ERRORS), wait=wait)
    return answer


def _member(answer: Any, kind: type[T], *path: str) -> T:
    """Return the value at a path of keys. Raises WikiError if it is missing or has another type."""
    value = answer
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    if not isinstance(value, kind):
        raise WikiError(
            f"the wiki's response has no {'.'.join(path)} of type {kind.__name__}: {quoted(answer, 200)}"
        )
    return value


def _id(answer: Any, name: str) -> int:
    """Return the id of a page or a revision, checked because it becomes part of file names."""
    number = valid_id(answer.get(name)) if isinstance(answer, dict) else None
    if number is None:
        raise WikiError(
            f"the wiki's response has no {name} that is a positive number: {quoted(answer, 200)}"
        )
    return number


def _hit(hit: Any) -> WikiPage:
    title = _member(hit, str, "title")
    return WikiPage(
        title,
        _id(hit, "pageid"),
        url=f"https://en.wikipedia.org/wiki/{quote(title.replace(' ', '_'))}",
    )


def _redirect_target(html: str) -> str | None:
    """Return the title of the target of a redirect page, or None if the page is not a redirect."""
    if 'class="redirectMsg"' not in html:
        return None
    element = parsed(html)
    for name in ("redirectMsg", "redirectText"):
        element = element and element.find(class_=name)
    link = element and element.find("a")
    if not link:
        return None
    # The part after "#" is a section of the target.
    return str(link.get_text()).partition("#")[0]


def _options(html: str) -> list[str]:
    """Return the first link of each item of a disambiguation page, sorted."""
    titles, visited = [], set()
    for link in parsed(html).find_all("a"):
        element = link.parent
        # If an element was visited before, its list item has an earlier link.
        while element is not None and id(element) not in visited:
            visited.add(id(element))
            if element.name == "li" and "tocsection" not in "".join(element.get("class") or []):
                titles.append(link.get_text())
            element = element.parent
    return sorted(titles)


def _why_missing(answer: Json) -> str:
    return str(answer.get("invalidreason") or f"the wiki had no such page at the epoch {EPOCH}")
