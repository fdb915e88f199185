"""The HTTP client for everything that qabench reads from servers, with retries and limits.

httpx2 is imported when the first request is sent.
"""

from __future__ import annotations

import contextlib
import functools
import gzip
import io
import random
import threading
import time
import weakref
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from qabench.io.environment import package_version
from qabench.io.http_error import HttpError, check_status, text_of
from qabench.io.limits import Limits, json_of

if TYPE_CHECKING:
    import httpx2

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Retry:
    """How often transient failures are retried, and after how many seconds.

    Attributes:
        attempts: the maximum number of attempts in a row without progress.
        first_wait: seconds before the second attempt. The wait is doubled before each further
            attempt, and a random part is subtracted.
        longest_wait: the maximum number of seconds before an attempt. A request fails at once if
            the server asks for a longer wait.
    """

    attempts: int = 5
    first_wait: float = 0.5
    longest_wait: float = 60.0

    def wait(self, error: HttpError, failures: int) -> float:
        """Return the seconds before the next attempt. Raises the error if there is none."""
        if not error.transient or error.unreachable:
            raise error
        if error.wait is not None and error.wait > self.longest_wait:
            error.detail = f"{error.detail or 'the server is busy'}; retry after {error.wait:.0f} s"
            raise error
        if failures >= self.attempts:
            error.detail = f"{error.detail} (tries: {failures})".strip()
            raise error
        if error.wait is not None:
            return error.wait
        doubled = self.first_wait * 2.0 ** min(failures - 1, 30)
        return min(doubled, self.longest_wait) * random.uniform(0.5, 1.0)


class HttpClient:
    """A retrying HTTP client, safe for several threads.

    Transient failures (no connection, a timeout, an incomplete response, status 408, 425, 429 or
    5xx) are retried with exponential backoff, but a host that has never accepted a connection is not
    tried again. If the server says how long to wait (Retry-After), no thread sends a request before
    that time has passed.

    Args:
        limits: the limits of each request.
        retry: see ``Retry``.
        in_flight: the maximum number of simultaneous requests.
        headers: sent with every request.

    Attributes:
        delay: the minimum number of seconds between the starts of two requests. With an
            ``in_flight`` above 1, two threads may start at the same time.
    """

    def __init__(
        self,
        limits: Limits = Limits(),  # noqa: B008
        *,
        retry: Retry = Retry(),
        in_flight: int = 2,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.limits, self.retry, self.in_flight = limits, retry, in_flight
        # Wikimedia requires contact information in the header User-Agent.
        agent = f"qabench/{package_version('qabench')} (https://github.com/qabench/qabench)"
        self.headers = {"User-Agent": agent, "Accept-Encoding": "gzip", **(headers or {})}
        self._slots = threading.BoundedSemaphore(in_flight)
        self._closed = threading.Event()
        self._not_before = self.delay = 0.0
        self._reached: set[str] = set()

    def get(
        self,
        url: str,
        read: Callable[[httpx2.Response], T] = lambda response: response,  # type: ignore[assignment, return-value]
        **options: Any,
    ) -> T:
        """Return ``read(response)`` of a response with status 200, after retries.

        ``read`` can raise a transient ``HttpError`` to reject a response. ``options`` are
        ``params``, ``headers`` and ``json``, a document that is posted. Raises HttpError if no
        response is usable.
        """

        def attempt() -> T:
            response = self.once(url, **options)
            check_status(response, response.text)
            return read(response)

        try:
            return self.retrying(attempt)
        except HttpError as error:
            error.url = url.partition("?")[0]
            raise

    def once(self, url: str, **options: Any) -> httpx2.Response:
        """Return the response to one request. A body is read only for status 200, or if it is JSON.

        Raises:
            HttpError: there is no response.
        """
        import httpx2

        with self.stream(url, **options) as streamed:
            status, headers = streamed.status_code, streamed.headers
            body = b""
            if status == 200 or "json" in headers.get("content-type", ""):
                body = b"".join(streamed.iter_raw())
            body = _unpacked(body, headers.pop("content-encoding", ""), self.limits.max_bytes)
            response = httpx2.Response(status, headers=headers, content=body)
            # This sets an encoding with which the text of the response can be decoded.
            text_of(response)
            return response

    @contextlib.contextmanager
    def stream(self, url: str, **options: Any) -> Iterator[httpx2.Response]:
        """Send one request, and yield its response, whose body must be read inside the block.

        Raises:
            HttpError: there is no response.
        """
        import httpx2

        # This raises HttpError if the client is closed.
        self._sleep(0.0)
        method = "POST" if options.get("json") is not None else "GET"
        try:
            request = self.session.build_request(method, url, **options)
        except (ValueError, httpx2.InvalidURL) as error:
            raise HttpError("invalid URL", f"{url}: {error}") from error
        try:
            with contextlib.closing(self.session.send(request, stream=True)) as response:
                self._reached.add(request.url.host)
                yield response
        except httpx2.RequestError as error:
            timeout = isinstance(error, httpx2.TimeoutException)
            reason = "timeout" if timeout else "connection failed"
            detail = f"{type(error).__name__}: {error}"
            not_connected = isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout)
            unreachable = not_connected and request.url.host not in self._reached
            raise HttpError(reason, detail, transient=True, unreachable=unreachable) from error

    @functools.cached_property
    def session(self) -> httpx2.Client:
        """Return the httpx2 client that sends the requests."""
        from qabench.io.transport import limited_client

        session = limited_client(self.limits, headers=self.headers)
        weakref.finalize(self, session.close)
        return session

    def retrying(
        self, attempt: Callable[[], T], progressed: Callable[[], bool] = lambda: False
    ) -> T:
        """Call a function until it raises no transient ``HttpError``, and return its result.

        If the last attempt ``progressed``, that is, got further than all earlier ones, the count of
        failures starts again.
        """
        failures = 0
        while True:
            self._sleep(max(0.0, self._not_before - time.monotonic()))
            with self._slots:
                # Another thread may have received a Retry-After meanwhile.
                if self._not_before > time.monotonic():
                    continue
                self._not_before = max(self._not_before, time.monotonic() + self.delay)
                try:
                    return attempt()
                except HttpError as error:
                    failures = 1 if progressed() else failures + 1
                    seconds = self.retry.wait(error, failures)
                    # If the server sets Retry-After, all threads wait.
                    if error.wait is not None:
                        self._not_before = max(self._not_before, time.monotonic() + seconds)
            self._sleep(seconds)

    def end_waits(self) -> None:
        """Make requests that wait for another attempt fail. Requests in flight go on."""
        self._closed.set()

    def close(self) -> None:
        """Close the connections. Requests that wait in other threads fail."""
        self.end_waits()
        if "session" in vars(self):
            self.session.close()

    def _sleep(self, seconds: float) -> None:
        if self._closed.wait(seconds):
            raise HttpError("closed", "the client was closed while a request waited")


def read_json(response: httpx2.Response) -> Any:
    """Return the JSON document in a response, or raise a transient HttpError."""
    try:
        return json_of(response.content)
    except ValueError as error:
        raise HttpError("not JSON", response.text, transient=True) from error


def _unpacked(data: bytes, encoding: str, max_bytes: int) -> bytes:
    """Return a body without its gzip encoding.

    httpx2's own decoder would stop after the first member of a gzip file, and accept an incomplete
    member.
    """
    if encoding.lower() in ("", "identity"):
        return data
    if encoding.lower() not in ("gzip", "x-gzip"):
        raise HttpError("unknown encoding", encoding)
    try:
        with gzip.open(io.BytesIO(data)) as file:
            body = file.read(max_bytes + 1)
    except (EOFError, OSError, zlib.error) as error:
        raise HttpError(
            "connection failed", f"the response is not valid gzip: {error}", transient=True
        ) from error
    if len(body) > max_bytes:
        raise HttpError("too large", f"more than {max_bytes:,} bytes")
    return body
