"""A polite HTTP client: few concurrent requests, retries with backoff, and respect for Retry-After."""

from __future__ import annotations

import contextlib
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from qabench.io.http import retry_after
from qabench.retrieval.wiki.page import WikiError
from qabench.sources.download import Retry

if TYPE_CHECKING:
    import httpx2

T = TypeVar("T")

# Wikimedia requires a User-Agent with contact information.
USER_AGENT = "qabench/{version} (https://github.com/qabench/qabench)"
IN_FLIGHT = 2
MOST_REDIRECTS = 5
LARGEST_ANSWER = 64 << 20  # bytes
LONGEST_ANSWER = 300.0  # seconds; the read timeout alone never ends a server that sends single bytes
RETRY = Retry(attempts=6, first_wait=1.0, longest_wait=120.0, connect_timeout=10.0, read_timeout=60.0)
RETRIED_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class Answer:
    """A response with status 200. ``url`` has no query string."""

    url: str
    headers: Mapping[str, str]
    content: bytes
    text: str


class TryAgain(Exception):
    """A failed attempt that may succeed if repeated. ``asked``: the server's Retry-After in seconds."""

    def __init__(self, reason: str, asked: float | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.asked = asked


class Refused(WikiError):
    """The server refused the request. ``status`` is the HTTP status."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message, status)
        self.message = message
        self.status = status

    def __str__(self) -> str:
        return self.message


class Unreachable(WikiError):
    """No connection to the server, before any response from it."""


class PoliteClient:
    """An HTTP client for one server, safe for several threads.

    At most ``in_flight`` requests run at the same time. Transient failures (no connection, a timeout, an incomplete
    response, status 408, 425, 429 or 5xx) are retried with exponential backoff and jitter. If the server says how long
    to wait (Retry-After), no thread sends a request before. If this is longer than ``retry.longest_wait``, the request
    fails at once.
    """

    def __init__(
        self, in_flight: int = IN_FLIGHT, retry: Retry = RETRY, headers: Mapping[str, str] | None = None
    ) -> None:
        self.in_flight = in_flight
        self.retry = retry
        self.headers = dict(headers or {})
        self._slots = threading.BoundedSemaphore(in_flight)
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._not_before = 0.0
        self._client: httpx2.Client | None = None
        self._reached = False

    def get(self, url: str, params: Mapping[str, Any], read: Callable[[Answer], T]) -> T:
        """Sends a request and returns ``read(response)``; ``read`` can raise ``TryAgain`` to reject the response.

        Raises:
            Refused: the server refused the request (a permanent 4xx status).
            Unreachable: no connection (no network, an unknown host, no server there), and no response before.
            WikiError: no usable response after all attempts, a redirect to another host, or a response that is larger
                than ``LARGEST_ANSWER``.
        """
        failures = 0
        while True:
            self._wait_for_permission()
            with self._slots:
                if self._seconds_left() > 0:  # another thread received a Retry-After while this one waited for a slot
                    continue
                try:
                    return read(self._ask(url, params))
                except TryAgain as error:
                    failures += 1
                    seconds = self._pause(error, failures, url)
            self._sleep(seconds)

    def close(self) -> None:
        """Closes the connections. Requests of other threads that are waiting fail."""
        self._closed.set()
        with self._lock:
            client, self._client = self._client, None
        if client:
            client.close()

    def _ask(self, url: str, params: Mapping[str, Any]) -> Answer:
        import httpx2

        try:
            client = self._connected()
            request = self._request(client, url, params)
            for _ in range(MOST_REDIRECTS + 1):
                response = client.send(request, stream=True)
                self._reached = True
                with contextlib.closing(response):
                    if response.next_request is None:
                        return self._read(response)
                    request = _same_host(request, response.next_request)
        except (httpx2.UnsupportedProtocol, httpx2.InvalidURL, ValueError) as error:
            raise WikiError(f"cannot request {url}: {type(error).__name__}: {error}") from error
        except httpx2.RequestError as error:
            if isinstance(error, httpx2.ConnectError) and not self._reached:
                raise Unreachable(f"no connection to {url}: {error}") from error
            raise TryAgain(f"{type(error).__name__}: {error or 'no details'}") from error
        raise WikiError(f"cannot request {url}: more than {MOST_REDIRECTS} redirects")

    def _request(self, client: httpx2.Client, url: str, params: Mapping[str, Any]) -> httpx2.Request:
        return client.build_request("GET", url, params=dict(params))

    def _read(self, response: httpx2.Response) -> Answer:
        reason = f"the server answered {response.status_code} {response.reason_phrase}".rstrip()
        if response.status_code in RETRIED_STATUS:
            raise TryAgain(reason, retry_after(response.headers.get("Retry-After")))
        if response.status_code != 200:
            raise Refused(f"{response.url}: {reason}", response.status_code)
        body = bytearray()
        give_up = time.monotonic() + LONGEST_ANSWER
        for chunk in response.iter_bytes():
            body += chunk
            if time.monotonic() > give_up:
                raise TryAgain(f"the answer takes longer than {LONGEST_ANSWER:.0f} s")
            if len(body) > LARGEST_ANSWER:
                raise WikiError(f"{response.url}: the response is larger than {LARGEST_ANSWER >> 20} MiB")
        text = body.decode(response.encoding or "utf-8", "replace")
        return Answer(str(response.url.copy_with(query=None)), response.headers, bytes(body), text)

    def _connected(self) -> httpx2.Client:
        import httpx2

        from qabench.evaluation.signature import version

        with self._lock:
            if self._client is None:
                timeout = httpx2.Timeout(self.retry.read_timeout, connect=self.retry.connect_timeout)
                headers = {"User-Agent": USER_AGENT.format(version=version())} | self.headers
                self._client = httpx2.Client(timeout=timeout, headers=headers, follow_redirects=False)
                weakref.finalize(self, self._client.close)
            return self._client

    def _seconds_left(self) -> float:
        """The seconds until the server accepts requests again (from any thread); negative if that time has passed."""
        return self._not_before - time.monotonic()

    def _wait_for_permission(self) -> None:
        self._sleep(0)  # raises if the client was closed
        while (seconds := self._seconds_left()) > 0:
            self._sleep(seconds)

    def _pause(self, error: TryAgain, failures: int, url: str) -> float:
        """The seconds to wait before the next attempt. If the server set this time, the other threads wait too."""
        if error.asked is not None and error.asked > self.retry.longest_wait:
            raise WikiError(f"{url}: {error.reason}; it asks for a wait of {error.asked:.0f} s: try again after that")
        if failures >= self.retry.attempts:
            raise WikiError(f"{url}: {error.reason} (tries: {failures})") from error
        seconds = self.retry.wait(failures, error.asked)
        if error.asked is not None:
            with self._lock:
                self._not_before = max(self._not_before, time.monotonic() + seconds)
        return seconds

    def _sleep(self, seconds: float) -> None:
        if self._closed.wait(seconds):
            raise WikiError("the client was closed while a request waited")


def _same_host(request: httpx2.Request, following: httpx2.Request) -> httpx2.Request:
    """The request of a redirect. Raises WikiError if it leads to another host: only the configured host is used."""
    old, new = request.url, following.url
    upgraded = (old.scheme, new.scheme, old.port, new.port) == ("http", "https", None, None)
    if old.host != new.host or not (upgraded or (old.scheme, old.port) == (new.scheme, new.port)):
        raise WikiError(f"{old.copy_with(query=None)} redirects to another host, which is not allowed: {new!s:.200}")
    return following
