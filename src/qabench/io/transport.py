"""Transports for httpx2 that enforce ``Limits`` for everything that qabench reads from servers.

An httpx2 timeout applies to each read, so a server that sends one byte at a time never exceeds it.
Here, an exchange as a whole has a deadline. huggingface_hub and ``ChatClient`` also use clients
with these transports.
"""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import aclosing
from typing import Any

import httpcore2
import httpx2
from httpx2._utils import get_environment_proxies

from qabench.io.addresses import addresses_of, origin
from qabench.io.http_error import HttpError
from qabench.io.limits import Limits, decoded
from qabench.io.redaction import printable

# A host that does not accept a connection in this time is down, or behind a firewall.
CONNECT_SECONDS = 10.0
MAX_REDIRECTS = 5
# The deadline is checked each time this number of bytes was sent.
BYTES_PER_WRITE = 1 << 16
_EXCHANGE = "qabench exchange"


def limited_client(limits: Limits, **options: Any) -> httpx2.Client:
    """Return a client with limits, which uses the proxies in environment variables."""
    mounts: dict[str, Transport | None] = {}
    for pattern, proxy in get_environment_proxies().items():
        mounts[pattern] = Transport(limits, proxy) if proxy else None
    return httpx2.Client(
        transport=Transport(limits),
        mounts=mounts,
        follow_redirects=limits.redirects != "none",
        # The transport counts redirects itself, and raises its own error before this limit.
        max_redirects=MAX_REDIRECTS + 1,
        timeout=None,
        **options,
    )


class Transport(httpx2.HTTPTransport):
    """Sends the requests of a client, with a deadline for each exchange."""

    def __init__(self, limits: Limits, proxy: str | None = None) -> None:
        super().__init__(proxy=proxy, limits=httpx2.Limits())
        self.limits = limits
        # httpx2 has no option for the network backend. The address of a proxy is not checked,
        # because the user has chosen it.
        checked = not proxy and limits.addresses != "any"
        backend: Any = _Backend(self._pool._network_backend, checked)
        self._pool._network_backend = backend

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        url, limits = request.url, self.limits
        here = origin(str(url))
        _, host, port = here
        # A request and its redirects share their extensions.
        deadline = request.extensions.setdefault(_EXCHANGE, _Deadline(limits, here))
        upgraded = deadline.first == ("http", host, 80) and here == ("https", host, 443)
        if limits.redirects == "same host" and here != deadline.first and not upgraded:
            raise HttpError("redirect to another host", f"{url}, which is not allowed")
        deadline.redirect(str(url))
        if not host or port is None or (url.userinfo and limits.addresses != "any"):
            raise HttpError("invalid URL", str(url.copy_with(userinfo=b"")))
        if limits.addresses != "any":
            # The address is checked even if a proxy connects to the host. Direct connections go to
            # the checked addresses.
            deadline.addresses = addresses_of(host, port, private=limits.addresses == "private")
        request.extensions["timeout"] = dict.fromkeys(("connect", "read", "write"), deadline)
        response = super().handle_request(request)
        make_safe(response, limits.max_bytes)
        return response


class _Deadline:
    """The end of an exchange. httpx2 passes it to the connection in place of a timeout."""

    def __init__(self, limits: Limits, first: tuple[str, str | None, int | None]) -> None:
        self.limits, self.first, self.begin = limits, first, time.monotonic()
        self.requested_urls: list[str] = []
        # The checked addresses of the host.
        self.addresses: list[str] = []
        self.end = self.begin + limits.seconds

    def redirect(self, url: str) -> None:
        """Note the next URL of the exchange. Raises HttpError if it must not be requested.

        HttpError is final, while clients would repeat a request after httpx2's own error for too
        many redirects.
        """
        urls = self.requested_urls
        if url in urls:
            raise HttpError("redirect loop", url)
        if len(urls) > MAX_REDIRECTS:
            raise HttpError("too many redirects", f"more than {MAX_REDIRECTS}")
        if urls and urls[-1].startswith("https:") and not url.startswith("https:"):
            raise HttpError("redirect from https to http", f"{url}, which is not allowed")
        urls.append(url)

    def left(self) -> float:
        """Return the seconds that the next step may take. Raises ReadTimeout if none are left."""
        seconds = self.end - time.monotonic()
        if seconds <= 0:
            raise self.passed()
        return min(seconds, self.limits.silent_seconds)

    def passed(self) -> httpcore2.ReadTimeout:
        """Return the error to raise after the deadline."""
        seconds = time.monotonic() - self.begin
        return httpcore2.ReadTimeout(f"no complete answer within {seconds:.1f} seconds")


def make_safe(response: Any, max_bytes: int) -> None:
    """Limit the body of an httpx2 or httpx response, and ignore its cookies and bad encodings.

    Reading more than ``max_bytes`` raises HttpError, because clients would repeat a request after
    an httpx2 error. Cookies are neither kept nor sent. Text in an encoding that takes quadratic
    time or raises errors is read as UTF-8.
    """
    headers = response.headers
    headers.pop("set-cookie", None)
    if decoded(b" ", response.charset_encoding) is None:
        kind, _, _ = headers.get("content-type", "").partition(";")
        # A header may consist of "charset=idna" alone.
        headers["content-type"] = "" if "=" in kind else kind
    error = HttpError("too large", f"more than {max_bytes:,} bytes")
    for name in ("iter_raw", "iter_bytes"):
        limited = functools.partial(_counted, getattr(response, name), max_bytes, error)
        setattr(response, name, limited)
    for name in ("aiter_raw", "aiter_bytes"):
        alimited = functools.partial(_acounted, getattr(response, name), max_bytes, error)
        setattr(response, name, alimited)


def _counted(
    read: Callable[..., Iterator[bytes]], left: int, error: HttpError, chunk_size: int | None = None
) -> Iterator[bytes]:
    for chunk in read(chunk_size):
        left -= len(chunk)
        if left < 0:
            raise error
        yield chunk


async def _acounted(
    read: Callable[..., AsyncGenerator[bytes, None]],
    left: int,
    error: HttpError,
    chunk_size: int | None = None,
) -> AsyncIterator[bytes]:
    async with aclosing(read(chunk_size)) as chunks:
        async for chunk in chunks:
            left -= len(chunk)
            if left < 0:
                raise error
            yield chunk


class _Backend:
    """httpcore2's network backend that connects to checked addresses."""

    def __init__(self, backend: Any, checked: bool) -> None:
        self._backend, self._checked = backend, checked

    def connect_tcp(self, host: str, port: int, timeout: Any, **options: Any) -> _Stream:
        failure: Exception | None = None
        addresses = timeout.addresses if self._checked else [host]
        for address in addresses:
            seconds = min(CONNECT_SECONDS, timeout.left())
            try:
                return _Stream(self._backend.connect_tcp(address, port, seconds, **options))
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
            except UnicodeError as error:
                # The host name cannot be encoded.
                failure = httpcore2.ConnectError(str(error))
        raise failure or httpcore2.ConnectError(f"{host} has no address")


class _Stream:
    """A connection on which every read and write ends by the request's ``_Deadline``."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def read(self, max_bytes: int, timeout: Any) -> bytes:
        try:
            data: bytes = self._stream.read(max_bytes, timeout.left())
        except httpcore2.ReadTimeout:
            raise timeout.passed() from None
        return data

    def write(self, buffer: bytes, timeout: Any) -> None:
        for start in range(0, len(buffer), BYTES_PER_WRITE):
            piece = buffer[start : start + BYTES_PER_WRITE]
            self._stream.write(piece, timeout.left())
            timeout.end += len(piece) / timeout.limits.sent_per_second

    def start_tls(
        self, ssl_context: Any, server_hostname: str | None = None, timeout: Any = None
    ) -> _Stream:
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, timeout.left()))


def _redacted(record: logging.LogRecord) -> bool:
    record.msg, record.args = printable(record.getMessage()), ()
    return True


# httpx2 logs URLs, whose parameters may be API keys.
logging.getLogger("httpx2").addFilter(_redacted)
