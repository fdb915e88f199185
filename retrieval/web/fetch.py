"""Fetches pages politely: robots.txt, a delay per host, limits, public addresses only, and a cache on disk."""

from __future__ import annotations

import re
import threading
import time
from dataclasses import dataclass
from urllib.parse import urljoin, urlsplit

from qabench.io.http import retry_after
from qabench.retrieval.web.cache import WebCache
from qabench.retrieval.web.limits import PageLimits
from qabench.retrieval.web.robots import allows, crawl_delay, rules_of
from qabench.retrieval.web.transfer import Response, Transfer, Unread

READ = "read"
DAY = 86400.0  # after a day robots.txt is read again (RFC 9309), and a failure that may pass is tried again
LONGEST_WAIT = 30.0  # seconds; a host that asks for more between two requests is not asked
RETRIED = frozenset({429, 502, 503, 504})
REDIRECTS = frozenset({301, 302, 303, 307, 308})
HTML = ("text/html", "application/xhtml+xml")
CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]{1,40})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class FetchedPage:
    """The result of fetching one URL.

    Attributes:
        url: as it was asked for.
        outcome: "read", or the reason why there is no page: "robots.txt", "timeout", "status 404", "not HTML",
            "too large", "blocked address", "connection failed", "too many redirects", "invalid URL" or others.
        detail: more about a failure.
        html: the page; empty without one.
        charset: as the server declared it.
    """

    url: str
    outcome: str
    detail: str = ""
    html: bytes = b""
    charset: str | None = None


class PageFetcher:
    """Fetches pages within limits; safe for several threads.

    Args:
        cache: where pages and failures are kept. Failures that may pass, such as timeouts, are kept for a day.
        limits: see ``PageLimits``.
    """

    def __init__(self, cache: WebCache, limits: PageLimits) -> None:
        self.cache = cache
        self.limits = limits
        self._transfer = Transfer(limits)
        self._lock = threading.Lock()
        self._busy: dict[str, threading.Lock] = {}
        self._next: dict[str, float] = {}

    def fetch(self, url: str) -> FetchedPage:
        """The page of a URL, from the cache if it is there. Failures are outcomes, not exceptions."""
        with self._lock_of(url):  # a thread that wants the same page waits and finds it in the cache
            if (known := self._known(url)) is not None:
                return known
            passing = False
            try:
                page = self._page(url)
            except Unread as error:
                page = FetchedPage(url, error.reason, error.detail)
                passing = error.passing
            except ValueError as error:  # a URL that urllib cannot split
                page = FetchedPage(url, "invalid URL", str(error)[:200])
            self._keep(page, passing)
            return page

    def close(self) -> None:
        """Closes the connections."""
        self._transfer.close()

    def _lock_of(self, url: str) -> threading.Lock:
        with self._lock:
            return self._busy.setdefault(url, threading.Lock())

    def _keep(self, page: FetchedPage, passing: bool) -> None:
        html = page.html.decode("latin-1")  # one character per byte
        about = {"outcome": page.outcome, "detail": page.detail, "charset": page.charset, "passing": passing}
        self.cache.put("pages", self._key(page.url), about | {"html": html})

    def _key(self, url: str) -> str:
        # A page that may not be fetched under one policy may be fetched under the other.
        return f"private {url}" if self.limits.private_addresses else url

    def _known(self, url: str) -> FetchedPage | None:
        found = self.cache.get("pages", self._key(url))
        if found and found["passing"]:
            found = self.cache.get("pages", self._key(url), DAY)
        if found is None:
            return None
        html = found["html"].encode("latin-1")
        return FetchedPage(url, found["outcome"], found["detail"], html, found["charset"])

    def _page(self, url: str) -> FetchedPage:
        response = self._following(url)
        kind = response.headers.get("content-type", "")
        if kind and kind.partition(";")[0].strip().lower() not in HTML:
            raise Unread("not HTML", kind[:100])
        charset = CHARSET.search(kind)
        return FetchedPage(url, READ, "", response.body, charset[1] if charset else None)

    def _following(self, url: str, *, robots: bool = True) -> Response:
        """The response with status 200 that a URL leads to; every target's rules and address are checked."""
        for _ in range(self.limits.redirects + 1):
            delay = self._allowed(url) if robots else 0.0
            response = self._patiently(url, max(delay, self.limits.delay))
            if response.status not in REDIRECTS:
                break
            url = urljoin(url, response.headers.get("location", ""))
        else:
            raise Unread("too many redirects", f"more than {self.limits.redirects}")
        if robots and response.status != 200:
            raise Unread(f"status {response.status}", passing=response.status >= 500 or response.status == 429)
        return response

    def _patiently(self, url: str, delay: float) -> Response:
        """The response to one request, when it is the host's turn; repeated once if the failure may pass."""
        self._wait_for_turn(url, delay)
        try:
            response = self._transfer.get(url)
            asked = retry_after(response.headers.get("retry-after")) or delay
            if response.status not in RETRIED or asked > LONGEST_WAIT:
                return response
        except Unread as error:
            if not error.passing or error.reason == "timeout":
                raise
            asked = delay
        self._wait_for_turn(url, delay, asked)
        return self._transfer.get(url)

    def _wait_for_turn(self, url: str, delay: float, asked: float = 0.0) -> None:
        """Sleeps until the host may be asked again, and takes that turn."""
        host = urlsplit(url).netloc.lower()
        with self._lock:
            now = time.monotonic()
            turn = max(now + asked, self._next.get(host, 0.0))
            if turn - now > LONGEST_WAIT + self.limits.timeout * self.limits.results:
                raise Unread("host is busy", f"{host}: {turn - now:.0f} s until its next turn", passing=True)
            self._next[host] = turn + delay
        time.sleep(max(0.0, turn - now))

    def _allowed(self, url: str) -> float:
        """The seconds between requests that the host's robots.txt asks for. Raises Unread if it forbids the URL."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise Unread("invalid URL", url[:200])
        rules = self._rules(f"{parts.scheme}://{parts.netloc}/robots.txt")
        if not allows(rules, url):
            raise Unread("robots.txt", "the host's robots.txt forbids this page")
        if (delay := crawl_delay(rules)) > LONGEST_WAIT:
            raise Unread("robots.txt", f"the host's robots.txt asks for {delay:g} s between requests")
        return delay

    def _rules(self, url: str) -> str:
        with self._lock_of(url):  # one thread reads a host's rules, the others wait for them
            if (known := self.cache.get("robots", self._key(url), DAY)) is not None:
                return self._known_rules(known)
            value = {"rules": "", "reason": "", "detail": ""}
            try:
                value["rules"] = rules_of(self._following(url, robots=False))
            except Unread as error:
                if not error.passing:
                    raise
                value |= {"reason": error.reason, "detail": f"robots.txt: {error.detail}"}
            self.cache.put("robots", self._key(url), value)
            return self._known_rules(value)

    @staticmethod
    def _known_rules(value: dict[str, str]) -> str:
        if value["reason"]:  # a host whose rules are unknown is not asked
            raise Unread(value["reason"], value["detail"], passing=True)
        return value["rules"]
