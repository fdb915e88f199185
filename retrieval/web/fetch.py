"""Fetch web pages politely, and return their text.

The fetcher respects robots.txt, delays and limits, requests public addresses only, and caches pages
on disk.
"""

from __future__ import annotations

import functools
import gzip
import hashlib
import json
import threading
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

from qabench.data.rows import Json
from qabench.errors import MissingExtra
from qabench.io.files import cache_dir, replacing
from qabench.io.http import HttpClient, Retry
from qabench.io.http_error import HttpError, status_error
from qabench.io.limits import Limits
from qabench.io.redaction import printable
from qabench.retrieval.web.extract import EXTRA, Extractor
from qabench.retrieval.web.provider import PageLimits

READ, NO_TEXT = "read", "no text"
MAX_REDIRECTS = 5
# The largest size of a page after decompression: a few compressed bytes can become gigabytes.
MAX_BYTES = 5 << 20
# After a day, robots.txt is read again (RFC 9309), and a transient failure is tried again.
DAY = 86400.0
# If a host asks for more seconds than this between two requests, its pages are not fetched.
LONGEST_WAIT = 30.0
ONCE_MORE = Retry(attempts=2, first_wait=1.0, longest_wait=LONGEST_WAIT)
HTML = ("text/html", "application/xhtml+xml")
ACCEPTED = "text/html,application/xhtml+xml;q=0.9,text/plain;q=0.1"
AGENT = "qabench"
# At most this many bytes of a robots.txt are read, the minimum that RFC 9309 requires.
LARGEST_RULES = 500 << 10


class WebCache:
    """A cache on disk of searches, pages, texts and rankings.

    A second run sees the same evidence, and fetches only what failed for a transient reason more than
    a day ago. There is one compressed JSON file per entry. A damaged file counts as missing.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or cache_dir() / "web"

    def get(self, kind: str, key: str) -> Json | None:
        """Return the entry of a key, or None. Entries marked ``passing`` expire after a day."""
        try:
            entry = json.loads(gzip.decompress(self._path(kind, key).read_bytes()))
            value: Json = entry["value"]
            old = value.get("passing") and time.time() - entry["time"] > DAY
            # File names are digests of keys, so another key could have the same file.
            if entry["key"] != key or old:
                return None
            return value
        except (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError, zlib.error):
            return None

    def put(self, kind: str, key: str, value: Json) -> None:
        """Store an entry. Raises QabenchError if it cannot be written."""
        entry = json.dumps({"key": key, "time": time.time(), "value": value}).encode()
        with replacing(self._path(kind, key)) as file:
            file.write(gzip.compress(entry, compresslevel=6, mtime=0))

    def kept(self, kind: str, key: str, make: Callable[[], Json]) -> Json:
        """Return the entry of a key. If there is none, call ``make`` and store the result."""
        value = self.get(kind, key)
        if value is None:
            value = make()
            self.put(kind, key, value)
        return value

    def _path(self, kind: str, key: str) -> Path:
        name = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
        return self.folder / kind / name[:2] / f"{name[:32]}.json.gz"


@dataclass(frozen=True, slots=True)
class WebPage:
    """A page's text, or why there is none.

    Attributes:
        url: the requested URL.
        outcome: "read", "no text", or the reason of an ``HttpError``, such as "robots.txt",
            "timeout", "status 404", "not HTML", "too large" or "blocked address".
        text: the main text, or "" if there is none.
        detail: the details of a failure, or "".
    """

    url: str
    outcome: str
    text: str = ""
    detail: str = ""


class PageFetcher:
    """Fetches pages within limits, and extracts their text. It is thread-safe."""

    def __init__(self, cache: WebCache, limits: PageLimits) -> None:
        self.cache, self.limits, self.extractor = cache, limits, Extractor()
        addresses: Any = "private" if limits.private_addresses else "public"
        allowed = Limits(MAX_BYTES, limits.timeout, redirects="none", addresses=addresses)
        self._client = HttpClient(allowed, headers={"Accept": ACCEPTED})
        self._lock = threading.Lock()
        self._busy: dict[str, threading.RLock] = {}
        self._turns: dict[str, HttpClient] = {}

    def fetch(self, url: str) -> WebPage:
        """Return the text of a URL's page, or the reason why there is none."""
        # The key has the policy for private addresses, because it decides which pages may be fetched.
        key = f"{self.extractor.name} {self.limits.private_addresses} {url}"
        with self._lock_of(url):
            # A second thread with the same URL waits, and then reads the cache.
            entry = self.cache.kept("pages", key, lambda: self._entry(url))
        return WebPage(url, entry["outcome"], entry["text"], entry["detail"])

    def _entry(self, url: str) -> Json:
        """Request a page, and return its entry for the cache."""
        try:
            response = self._following(url)
            kind = response.headers.get("content-type") or HTML[0]
            if kind.partition(";")[0].strip().lower() not in HTML:
                raise HttpError("not HTML", kind)
            text = self.extractor.text(response.content, response.charset_encoding)
            outcome = READ if text.strip() else NO_TEXT
            detail, passing = "", False
        except HttpError as error:
            outcome, detail, passing, text = error.reason, error.detail, error.transient, ""
        except ValueError as error:
            # urllib cannot split this URL.
            outcome, detail, passing, text = "invalid URL", printable(error, 200), False, ""
        return {"outcome": outcome, "detail": detail, "passing": passing, "text": text}

    def _lock_of(self, url: str) -> threading.RLock:
        with self._lock:
            # The lock is reentrant, because a page can be the robots.txt of its host.
            return self._busy.setdefault(url, threading.RLock())

    def _following(self, url: str, *, robots: bool = True) -> Any:
        """Return the response to a URL. Follows redirects, and checks the target of each."""
        for _ in range(MAX_REDIRECTS + 1):
            # robots.txt itself may always be read: checking it against its own rules would recurse.
            delay = 0.0
            if robots:
                delay = self._allowed_delay(url)
            response = self._patiently(url, delay)
            if not response.has_redirect_location:
                break
            url = urljoin(url, response.headers["location"])
        else:
            raise HttpError("too many redirects", f"more than {MAX_REDIRECTS}")
        if robots and response.status_code != 200:
            raise status_error(response)
        return response

    def _patiently(self, url: str, delay: float) -> Any:
        """Return a response after the per-host delay. Transient failures are retried once."""
        host = urlsplit(url).netloc.lower()
        with self._lock:
            # Each host has its own client, so that requests do not wait for another host's delay.
            turns = self._turns.setdefault(host, HttpClient(retry=ONCE_MORE, in_flight=1))
            turns.delay = max(delay, turns.delay, self.limits.delay)

        def attempt() -> Any:
            response = self._client.once(url)
            failure = status_error(response)
            if failure.transient:
                raise failure
            return response

        return turns.retrying(attempt)

    def _allowed_delay(self, url: str) -> float:
        """Return how many seconds a host's robots.txt asks to wait between requests.

        Raises:
            HttpError: the URL is invalid, or robots.txt forbids it, asks for too long a wait, or
                cannot be read.
        """
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise HttpError("invalid URL", url)
        try:
            rules = _parser().parse(self._rules(f"{parts.scheme}://{parts.netloc}/robots.txt"))
        except HttpError as error:
            if error.status is not None:
                error.reason, error.detail = "robots.txt", f"robots.txt: {error}"
            raise
        if not rules.can_fetch(url, AGENT):
            raise HttpError("robots.txt", "the host's robots.txt forbids this page")
        if (delay := float(rules.crawl_delay(AGENT) or 0)) > LONGEST_WAIT:
            raise HttpError(
                "robots.txt", f"the host's robots.txt asks for {delay:g} s between requests"
            )
        return delay

    def _rules(self, url: str) -> str:
        """Return a host's robots.txt, or "" if it has none (4xx).

        Raises:
            HttpError: the rules are unknown (5xx, 429), so that no page may be fetched.
        """

        def ask() -> Json:
            response = self._following(url, robots=False)
            if response.status_code != 200 and not 400 <= response.status_code < 500:
                raise status_error(response)
            rules = response.content[:LARGEST_RULES] if response.status_code == 200 else b""
            return {"rules": str(rules, "utf-8", "replace"), "passing": True}

        with self._lock_of(url):
            # One thread reads a host's robots.txt, while the others wait for it.
            return str(self.cache.kept("rules", url, ask)["rules"])


@functools.cache
def _parser() -> Any:
    try:
        import protego
    except ImportError as error:
        raise MissingExtra(f"fetching web pages needs {error.name}: {EXTRA}") from None
    return protego.Protego
