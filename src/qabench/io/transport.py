"""Transports of httpx2 with the limits of everything that qabench reads from servers.

A timeout of httpx2 is for one read: a server that sends single bytes never exceeds it. Here an
exchange has a deadline as a whole. huggingface_hub and ``ChatClient`` have clients with these
transports, too.
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
from qabench.io.tables import printable

CONNECT_SECONDS = 10.0
MAX_REDIRECTS = 5
PIECE = 1 << 16  # bytes that are sent before the deadline is checked again
_EXCHANGE = "qabench exchange"


def limited_client(limits: Limits, **options: Any) -> httpx2.Client:
    """Return a client with limits, which uses the proxies of the environment."""
    proxies = get_environment_proxies().items()
    mounts = {pattern: Transport(limits, proxy) if proxy else None for pattern, proxy in proxies}
    return httpx2.Client(
        transport=Transport(limits),
        mounts=mounts,
        follow_redirects=limits.redirects != "none",
        max_redirects=MAX_REDIRECTS + 1,  # the transport counts them, and says so
        timeout=None,
        **options,
    )


class Transport(httpx2.HTTPTransport):
    """Sends the requests of a client, with a deadline for each exchange."""

    def __init__(self, limits: Limits, proxy: str | None = None) -> None:
        super().__init__(proxy=proxy, limits=httpx2.Limits())
        self.limits = limits
        # httpx2 has no option for the backend. A proxy has any address: it is the user's.
        checked = not proxy and limits.addresses != "any"
        backend: Any = _Backend(self._pool._network_backend, checked)
        self._pool._network_backend = backend

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        url, limits = request.url, self.limits
        here = origin(str(url))
        _, host, port = here
        # a request and its redirects share their extensions
        deadline = request.extensions.setdefault(_EXCHANGE, _Deadline(limits, here))
        upgraded = deadline.first == ("http", host, 80) and here == ("https", host, 443)
        if limits.redirects == "same host" and here != deadline.first and not upgraded:
            raise HttpError("redirect to another host", f"{url}, which is not allowed")
        deadline.redirect(str(url))
        if not host or port is None or (url.userinfo and limits.addresses != "any"):
            raise HttpError("invalid URL", str(url.copy_with(userinfo=b"")))
        if limits.addresses != "any":
            # Also if a proxy connects to the host. Direct connections go to the checked addresses.
            deadline.addresses = addresses_of(host, port, private=limits.addresses == "private")
        request.extensions["timeout"] = dict.fromkeys(("connect", "read", "write"), deadline)
        response = super().handle_request(request)
        make_safe(response, limits.max_bytes)
        return response


class _Deadline:
    """The end of an exchange. httpx2 passes it to the connection in place of a timeout."""

    def __init__(self, limits: Limits, first: tuple[str, str | None, int | None]) -> None:
        self.limits, self.first, self.begin = limits, first, time.monotonic()
        self.urls: list[str] = []  # that were requested in this exchange
        self.addresses: list[str] = []  # of the host, checked
        self.end = self.begin + limits.seconds

    def redirect(self, url: str) -> None:
        """Note the next URL of the exchange. Raises HttpError, which is final, if it must not be requested.

        Clients would repeat a request that ends with httpx2's own error for too many redirects.
        """
        if url in self.urls:
            raise HttpError("redirect loop", url)
        if len(self.urls) > MAX_REDIRECTS:
            raise HttpError("too many redirects", f"more than {MAX_REDIRECTS}")
        if self.urls and self.urls[-1].startswith("https:") and not url.startswith("https:"):
            raise HttpError("redirect from https to http", f"{url}, which is not allowed")
        self.urls.append(url)

    def left(self) -> float:
        """Return the seconds for the next step, or raise ReadTimeout."""
        seconds = self.end - time.monotonic()
        if seconds <= 0:
            raise self.passed()
        return min(seconds, self.limits.silent_seconds)

    def passed(self) -> httpcore2.ReadTimeout:
        """Return the error to raise."""
        seconds = time.monotonic() - self.begin
        return httpcore2.ReadTimeout(f"no complete answer within {seconds:.1f} seconds")


def make_safe(response: Any, most: int) -> None:
    """Make a response of httpx2 or httpx raise HttpError when more bytes of its body than ``most`` are read.

    Clients would repeat a request that ends with an error of httpx2.

    Its cookies are neither kept nor sent. Text in an encoding that takes quadratic time or raises
    is read as UTF-8.
    """
    headers = response.headers
    headers.pop("set-cookie", None)
    if decoded(b" ", response.charset_encoding) is None:
        kind = headers.get("content-type", "").partition(";")[0]
        headers["content-type"] = "" if "=" in kind else kind  # "charset=idna" alone
    error = HttpError("too large", f"more than {most:,} bytes")
    for name, counted in (
        ("iter_raw", _counted),
        ("iter_bytes", _counted),
        ("aiter_raw", _acounted),
        ("aiter_bytes", _acounted),
    ):
        setattr(response, name, functools.partial(counted, getattr(response, name), most, error))


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
        for address in timeout.addresses if self._checked else [host]:
            seconds = min(CONNECT_SECONDS, timeout.left())
            try:
                return _Stream(self._backend.connect_tcp(address, port, seconds, **options))
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
            except UnicodeError as error:  # a host name that cannot be encoded
                failure = httpcore2.ConnectError(str(error))
        raise failure or httpcore2.ConnectError(f"{host} has no address")


class _Stream:
    """A connection whose every step ends at the deadline of the request.

    ``timeout`` is a ``_Deadline``.
    """

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
        for start in range(0, len(buffer), PIECE):
            piece = buffer[start : start + PIECE]
            self._stream.write(piece, timeout.left())
            timeout.end += len(piece) / timeout.limits.sent_per_second

    def start_tls(
        self, ssl_context: Any, server_hostname: str | None = None, timeout: Any = None
    ) -> _Stream:
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, timeout.left()))


def _redacted(record: logging.LogRecord) -> bool:
    record.msg, record.args = printable(record.getMessage()), ()
    return True


logging.getLogger("httpx2").addFilter(_redacted)  # it logs addresses, whose parameters can be keys
