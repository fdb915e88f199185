"""Asking a wiki politely: few requests at once, patient tries again, waiting for as long as the server says."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

from qabench.http import retry_after
from qabench.retrieval.wiki.page import WikiError
from qabench.sources.download import Retry

if TYPE_CHECKING:
    import httpx2

T = TypeVar("T")

# Wikimedia asks that a client say who runs it and where to complain.
USER_AGENT = "qabench/{version} (https://github.com/qabench/qabench)"
IN_FLIGHT = 2
RETRY = Retry(attempts=6, first_wait=1.0, longest_wait=120.0, connect_timeout=10.0, read_timeout=60.0)
RETRIED_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})


class TryAgain(Exception):
    """A failed try that another one may mend. ``asked``: the seconds that the server wants us to wait, if it says."""

    def __init__(self, reason: str, asked: float | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.asked = asked


class Refused(WikiError):
    """The server answered with a status that means no. ``status`` is its number."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message, status)
        self.message = message
        self.status = status

    def __str__(self) -> str:
        return self.message


class PoliteClient:
    """An HTTP client for one server, safe for several threads.

    At most ``in_flight`` requests are under way at once. A try that failed for a passing reason (no connection, a
    time-out, half an answer, status 408, 425, 429 or 5xx) is made again after a wait that doubles, with jitter. Where
    the server says how long to wait (Retry-After), no thread asks anything before; where it says longer than
    ``retry.longest_wait``, the request fails at once and says so.
    """

    def __init__(self, in_flight: int = IN_FLIGHT, retry: Retry = RETRY) -> None:
        self.in_flight = in_flight
        self.retry = retry
        self._slots = threading.BoundedSemaphore(in_flight)
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._not_before = 0.0
        self._client: httpx2.Client | None = None

    def get(self, url: str, params: Mapping[str, str | int], read: Callable[[httpx2.Response], T]) -> T:
        """What ``read`` makes of the answer, which it may refuse by raising ``TryAgain``.

        Raises:
            Refused: the server says no (a status of 4xx that no second try mends).
            WikiError: no answer, or none that could be used, after all tries.
        """
        failures = 0
        while True:
            self._wait_for_permission()
            with self._slots:
                if self._seconds_left() > 0:  # said to another thread while this one waited for a slot
                    continue
                try:
                    return read(self._ask(url, params))
                except TryAgain as error:
                    failures += 1
                    seconds = self._pause(error, failures, url)
            self._sleep(seconds)

    def close(self) -> None:
        """Ends the connections, and the waits of other threads: their requests fail."""
        self._closed.set()
        with self._lock:
            client, self._client = self._client, None
        if client:
            client.close()

    def _ask(self, url: str, params: Mapping[str, str | int]) -> httpx2.Response:
        import httpx2

        try:
            response = self._connected().get(url, params=dict(params))
        except (httpx2.UnsupportedProtocol, httpx2.TooManyRedirects, httpx2.InvalidURL) as error:
            raise WikiError(f"{url} cannot be asked: {type(error).__name__}: {error}") from error
        except httpx2.RequestError as error:
            raise TryAgain(f"{type(error).__name__}: {error or 'no details'}") from error
        reason = f"the server answered {response.status_code} {response.reason_phrase}".rstrip()
        if response.status_code in RETRIED_STATUS:
            raise TryAgain(reason, retry_after(response.headers.get("Retry-After")))
        if response.status_code != 200:
            raise Refused(f"{response.url}: {reason}", response.status_code)
        return response

    def _connected(self) -> httpx2.Client:
        import httpx2

        from qabench.signature import version

        with self._lock:
            if self._client is None:
                timeout = httpx2.Timeout(self.retry.read_timeout, connect=self.retry.connect_timeout)
                headers = {"User-Agent": USER_AGENT.format(version=version())}
                self._client = httpx2.Client(timeout=timeout, headers=headers, follow_redirects=True)
                weakref.finalize(self, self._client.close)
            return self._client

    def _seconds_left(self) -> float:
        """How long the server wants no request from any thread; below 0 when that has passed."""
        return self._not_before - time.monotonic()

    def _wait_for_permission(self) -> None:
        self._sleep(0)  # for the check whether the client was closed
        while (seconds := self._seconds_left()) > 0:
            self._sleep(seconds)

    def _pause(self, error: TryAgain, failures: int, url: str) -> float:
        """The seconds to wait before another try; the other threads wait too where it was the server that said so."""
        if error.asked is not None and error.asked > self.retry.longest_wait:
            raise WikiError(f"{url}: {error.reason}, and wants no request for {error.asked:.0f} s: try again then")
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
