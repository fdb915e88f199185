"""One HTTP client for everything that qabench reads from servers: retries, limits of time and size, checked addresses.

httpx2 is imported when the first request is sent.
"""

from __future__ import annotations

import codecs
import contextlib
import email.utils
import ipaddress
import math
import random
import socket
import threading
import time
import weakref
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar
from urllib.parse import urlsplit

from qabench.errors import QabenchError
from qabench.io.environment import package_version
from qabench.io.tables import printable

if TYPE_CHECKING:
    import httpcore2
    import httpx2

T = TypeVar("T")
# Wikimedia requires contact information.
USER_AGENT = "qabench/{version} (https://github.com/qabench/qabench)"
MOST_REDIRECTS = 5
MOST_SHOWN = 300  # characters of a server's text in an error
READ_SECONDS = 60.0  # the longest pause between two parts of a response
MOST_ADDRESSES = 3  # of a host, that are tried
RETRIED_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})
GZIP = 16 + zlib.MAX_WBITS
# Encodings that are not for pages: they raise on most input, or take quadratic time.
NO_CHARSETS = {"idna", "punycode", "undefined", "unicode-escape", "raw-unicode-escape"}
_deadline: ContextVar[float] = ContextVar("deadline", default=math.inf)  # of the request in progress in this thread


class HttpError(QabenchError):
    """A request without a usable response.

    Attributes:
        reason: short failure label, used for counting: "timeout", "status 404", "too large", "blocked address", ...
        detail: more about this failure.
        transient: whether the same request may succeed later.
        wait: seconds that the server asks clients to wait; None if it does not.
        status: the HTTP status; None without a response.
        url: the address without its query; "" if the caller knows it.
        unreachable: whether no connection to the host has succeeded so far.
    """

    def __init__(
        self,
        reason: str,
        detail: str = "",
        *,
        transient: bool = False,
        wait: float | None = None,
        status: int | None = None,
        unreachable: bool = False,
    ) -> None:
        super().__init__(reason, detail)
        # Both can quote the server.
        self.reason, self.detail = printable(reason, MOST_SHOWN), printable(detail, MOST_SHOWN)
        self.transient, self.wait = transient, wait
        self.status, self.unreachable, self.url = status, unreachable, ""

    def __str__(self) -> str:
        return ": ".join(filter(None, [self.url, self.reason, self.detail]))


@dataclass(frozen=True, slots=True)
class Retry:
    """How often transient failures are retried, and after how many seconds."""

    attempts: int = 5  # in a row without progress
    first_wait: float = 0.5  # doubled for each further one; a random part is subtracted
    longest_wait: float = 60.0  # a request fails at once if the server asks for a longer one


@dataclass(frozen=True, slots=True)
class Response:
    """A response with its complete body. ``url`` has no query string; header names are lower case."""

    url: str
    status: int
    headers: Mapping[str, str]
    content: bytes
    charset: str | None = None

    @property
    def text(self) -> str:
        """Return the body as text; UTF-8 if the server declares no usable charset."""
        return decoded(self.content, self.charset) or self.content.decode("utf-8", "replace")


class HttpClient:
    """A retrying HTTP client, safe for several threads.

    Transient failures (no connection, a timeout, an incomplete response, status 408, 425, 429 or 5xx) are retried with
    exponential backoff. If the server says how long to wait (Retry-After), no thread sends a request before.

    Args:
        retry: see ``Retry``.
        seconds: the limit of one request, from the connection to the last byte.
        max_bytes: the largest body, after decompression.
        in_flight: requests at the same time.
        headers: sent with every request.
        redirects: which redirects are followed; "same host" allows an upgrade to https, too.
        addresses: "any"; "public" refuses addresses from which a page could reach into a private network; "private"
            refuses link-local ones only, where clouds serve credentials.
    """

    def __init__(
        self,
        *,
        retry: Retry | None = None,
        seconds: float = 300.0,
        max_bytes: int = 64 << 20,
        in_flight: int = 2,
        headers: Mapping[str, str] | None = None,
        redirects: Literal["none", "same host", "any"] = "same host",
        addresses: Literal["any", "public", "private"] = "any",
    ) -> None:
        self.retry = retry or Retry()
        self.seconds, self.read_seconds, self.max_bytes = seconds, min(READ_SECONDS, seconds), max_bytes
        self.in_flight, self.headers = in_flight, dict(headers or {})
        self.redirects, self.addresses = redirects, addresses
        self._slots = threading.BoundedSemaphore(in_flight)
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._not_before = 0.0
        self._pools: dict[str | None, httpcore2.ConnectionPool] = {}  # by the proxy
        self._reached: set[str] = set()

    def get(
        self,
        url: str,
        params: Mapping[str, Any] | None = None,
        read: Callable[[Response], T] = lambda response: response,  # type: ignore[assignment, return-value]
        *,
        json: Any = None,
    ) -> T:
        """Return ``read(response)`` of a response with status 200, after retries. HttpError if there is none.

        ``read`` can raise a transient ``HttpError`` to reject a response. A document (``json``) is posted.
        """

        def attempt() -> T:
            response = self.once(url, params, json=json)
            check_status(response.status, response.headers)
            return read(response)

        try:
            return self.retrying(attempt)
        except HttpError as error:
            error.url = url.partition("?")[0]
            raise

    def once(self, url: str, params: Mapping[str, Any] | None = None, *, json: Any = None) -> Response:
        """Return the response to one request; its body is read if the status is 200. Raises HttpError without one."""
        with self.stream(url, params, json=json) as response:
            headers = {name.lower(): value for name, value in response.headers.items()}
            body = bytearray()
            chunks = response.iter_raw() if response.status_code == 200 else iter(())
            for part in _unpacked(chunks, headers.get("content-encoding", ""), self.max_bytes):
                body += part
                if len(body) > self.max_bytes:
                    raise HttpError("too large", f"more than {self.max_bytes:,} bytes")
            address = str(response.url.copy_with(query=None))
            return Response(address, response.status_code, headers, bytes(body), response.charset_encoding)

    @contextlib.contextmanager
    def stream(
        self,
        url: str,
        params: Mapping[str, Any] | None = None,
        *,
        json: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> Iterator[httpx2.Response]:
        """Send one request, and yield its response, whose body must be read inside the block. HttpError without one."""
        import httpcore2
        import httpx2

        token = _deadline.set(time.monotonic() + self.seconds)
        try:
            try:
                method = "GET" if json is None else "POST"
                every = {"User-Agent": USER_AGENT.format(version=package_version("qabench")), "Accept-Encoding": "gzip"}
                every |= self.headers | dict(headers or {})
                request = httpx2.Request(method, url, params=params and dict(params), json=json, headers=every)
            except (ValueError, httpx2.InvalidURL) as error:
                raise HttpError("invalid URL", f"{url}: {error}") from error
            with self._sent(request) as response:
                yield response
        except httpcore2.TimeoutException as error:
            unreachable = isinstance(error, httpcore2.ConnectTimeout) and httpx2.URL(url).host not in self._reached
            detail = f"no complete answer within {self.seconds:g} s, or nothing for {self.read_seconds:g} s"
            raise HttpError("timeout", detail, transient=True, unreachable=unreachable) from error
        except (httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.ProxyError, httpx2.DecodingError) as error:
            unreachable = isinstance(error, httpcore2.ConnectError) and httpx2.URL(url).host not in self._reached
            detail = f"{type(error).__name__}: {error or 'no details'}"
            raise HttpError("connection failed", detail, transient=True, unreachable=unreachable) from error
        finally:
            _deadline.reset(token)

    def retrying(self, attempt: Callable[[], T], progressed: Callable[[], bool] = lambda: False) -> T:
        """Call a function until it raises no transient ``HttpError``, and return its result.

        If the last attempt ``progressed``, so that it got further than those before, failures are counted anew.
        """
        failures = 0
        while True:
            self._sleep(max(0.0, self._not_before - time.monotonic()))
            with self._slots:
                if self._not_before > time.monotonic():  # another thread received a Retry-After meanwhile
                    continue
                try:
                    return attempt()
                except HttpError as error:
                    failures = 1 if progressed() else failures + 1
                    seconds = self._pause(error, failures)
            self._sleep(seconds)

    def close(self) -> None:
        """Close the connections. Requests of other threads that are waiting fail."""
        self._closed.set()
        for pool in list(self._pools.values()):
            pool.close()

    @contextlib.contextmanager
    def _sent(self, request: httpx2.Request) -> Iterator[httpx2.Response]:
        """Send a request, follow its redirects, and yield the response. Cookies are neither kept nor sent."""
        import httpcore2
        import httpx2

        timeout = dict.fromkeys(("read", "write", "pool"), self.read_seconds)
        timeout["connect"] = min(10.0, self.read_seconds)
        for _ in range(MOST_REDIRECTS + 1):
            address = request.url
            self._check_url(address)
            message = httpcore2.Request(
                request.method,
                httpcore2.URL(
                    scheme=address.raw_scheme, host=address.raw_host, port=address.port, target=address.raw_path
                ),
                headers=request.headers.raw,
                content=request.read(),
                extensions={"timeout": timeout},
            )
            with contextlib.closing(self._pool_for(address).handle_request(message)) as answer:
                self._reached.add(address.host)
                body = answer.iter_stream()
                response = httpx2.Response(answer.status, headers=answer.headers, content=body, request=request)
                if self.redirects == "none" or not response.has_redirect_location:
                    yield response
                    return
            target = address.join(response.headers["location"])
            if self.redirects == "same host":
                _check_same_host(address, target)
            headers = {name: value for name, value in request.headers.items() if name != "host"}
            if response.status_code in (307, 308):
                request = httpx2.Request(request.method, target, headers=headers, content=request.content)
            else:
                request = httpx2.Request("GET", target, headers=headers)
        raise HttpError("too many redirects", f"more than {MOST_REDIRECTS}")

    def _check_url(self, url: httpx2.URL) -> None:
        port = url.port or {"http": 80, "https": 443}.get(url.scheme)
        if not url.host or port is None or (url.userinfo and self.addresses != "any"):
            raise HttpError("invalid URL", str(url.copy_with(userinfo=b"")))
        if self.addresses != "any":
            # Also if a proxy connects to the host. For direct connections, ``_Backend`` connects to a checked address.
            addresses_of(url.raw_host.decode("ascii").strip("[]"), port, private=self.addresses == "private")

    def _pool_for(self, url: httpx2.URL) -> httpcore2.ConnectionPool:
        """Return the connections to a host, or to the proxy that the environment names for it.

        httpx2's own client has no option for a network backend, which the deadline and checked addresses need.
        """
        import urllib.request

        import httpcore2
        import httpx2

        proxies = {} if urllib.request.proxy_bypass(url.netloc.decode("ascii")) else urllib.request.getproxies()
        address = proxies.get(url.scheme) or proxies.get("all")
        with self._lock:
            if address not in self._pools:
                backend = _Backend("any" if address else self.addresses)
                options: dict[str, Any] = {"network_backend": backend, "keepalive_expiry": 5.0}
                options["ssl_context"] = httpx2.create_ssl_context()
                if address is None:
                    pool = httpcore2.ConnectionPool(**options)
                else:
                    proxy = httpx2.Proxy(address)
                    kind = httpcore2.SOCKSProxy if proxy.url.scheme.startswith("socks") else httpcore2.HTTPProxy
                    pool = kind(str(proxy.url), proxy_auth=proxy.raw_auth, **options)
                self._pools[address] = pool
                weakref.finalize(self, pool.close)
            return self._pools[address]

    def _pause(self, error: HttpError, failures: int) -> float:
        """Return the seconds before the next attempt, or raise the error. A wait of the server is for all threads."""
        if not error.transient or error.unreachable:
            raise error
        if error.wait is not None and error.wait > self.retry.longest_wait:
            error.detail = f"{error.detail or 'the server is busy'}; retry after {error.wait:.0f} s"
            raise error
        if failures >= self.retry.attempts:
            error.detail = f"{error.detail} (tries: {failures})".strip()
            raise error
        if error.wait is None:
            seconds = min(self.retry.first_wait * 2.0 ** (failures - 1), self.retry.longest_wait)
            return seconds * random.uniform(0.5, 1.0)
        with self._lock:
            self._not_before = max(self._not_before, time.monotonic() + error.wait)
        return error.wait

    def _sleep(self, seconds: float) -> None:
        if self._closed.wait(seconds):
            raise HttpError("closed", "the client was closed while a request waited")


def check_status(status: int, headers: Mapping[str, str]) -> None:
    """Raise HttpError for a status other than 200 and 206; transient ones have the server's Retry-After."""
    if status not in (200, 206):
        transient = status in RETRIED_STATUS or status >= 500
        wait = retry_after(headers.get("retry-after")) if transient else None
        detail = "the server asks to wait" if wait is not None else ""
        raise HttpError(f"status {status}", detail, transient=transient, wait=wait, status=status)


def origin(url: str) -> tuple[str, str | None, int | None]:
    """Return the scheme, host and port of a URL: a key is sent only where all three are equal."""
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def retry_after(value: str | None) -> float | None:
    """Return the seconds, at least 0, of a header Retry-After (a number or a date); None if it cannot be parsed."""
    with contextlib.suppress(ValueError):
        if math.isfinite(number := float(value or "nan")):
            return max(0.0, number)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value or "").timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


def decoded(data: bytes, charset: str | None) -> str | None:
    """Return text in a declared charset; None if there is none, or if it is not an encoding of text."""
    try:
        if charset and codecs.lookup(charset).name.replace("_", "-") not in NO_CHARSETS:
            return data.decode(charset, "replace")
    except (LookupError, ValueError):  # unknown, or not an encoding of text
        pass
    return None


def addresses_of(host: str, port: int, *, private: bool = False) -> list[str]:
    """Return the IP addresses of a host, in the order in which to try them, or raise HttpError.

    Addresses that are not public are allowed only with ``private``, link-local ones never.
    """
    try:
        entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise HttpError("connection failed", f"{host}: {error}", transient=True) from error
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in entries))
    for address in addresses:
        if is_link_local(address) or not (private or is_public(address)):
            raise HttpError("blocked address", f"{host} has the address {address}")
    return addresses[:MOST_ADDRESSES]


NAT64 = ipaddress.ip_network("64:ff9b::/96")  # IPv4 addresses as IPv6 networks write them (RFC 6052)
UNICAST = ipaddress.ip_network("2000::/3")  # all addresses of IPv6 that are assigned for public use
# Protocol assignments and 6to4 relays are not public, but ``is_global`` says so in some versions of Python.
NOT_PUBLIC = [ipaddress.ip_network(text) for text in ("192.0.0.0/24", "192.88.99.0/24")]


def is_public(text: str) -> bool:
    """Return whether an IP address is reachable from everywhere."""
    address = _address(text)
    if not address.is_global or address.is_multicast:
        return False
    return address in UNICAST or (address.version == 4 and not any(address in network for network in NOT_PUBLIC))


def is_link_local(text: str) -> bool:
    """Return whether an IP address belongs to the local link, such as 169.254.169.254."""
    return _address(text).is_link_local


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Return an IP address; of an IPv6 address with an IPv4 address inside it, the IPv4 address."""
    address = ipaddress.ip_address(text.partition("%")[0])
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address


def _unpacked(chunks: Iterator[bytes], encoding: str, most: int) -> Iterator[bytes]:
    """Yield a body without its gzip encoding, in parts of at most ``most + 1`` bytes. httpx2 would read one member."""
    encoding = encoding.strip().lower()
    if encoding in ("", "identity"):
        yield from chunks
        return
    if encoding not in ("gzip", "x-gzip"):
        raise HttpError("unknown encoding", encoding)
    unpack = None
    try:
        for chunk in chunks:
            while chunk:
                unpack = zlib.decompressobj(GZIP) if unpack is None or unpack.eof else unpack
                yield unpack.decompress(chunk, most + 1)
                chunk = unpack.unconsumed_tail or unpack.unused_data
    except zlib.error as error:
        raise HttpError("connection failed", f"the response is not valid gzip: {error}", transient=True) from error
    if unpack is not None and not unpack.eof:
        raise HttpError("connection failed", "the compressed response is incomplete", transient=True)


def _check_same_host(old: httpx2.URL, new: httpx2.URL) -> None:
    upgraded = (old.scheme, new.scheme, old.port, new.port) == ("http", "https", None, None)
    if old.host != new.host or not (upgraded or (old.scheme, old.port) == (new.scheme, new.port)):
        raise HttpError("redirect to another host", f"{new}, which is not allowed")


class _Backend:
    """httpcore2's network backend with a deadline; httpx2's timeouts apply to each read, so they never end a drip."""

    def __init__(self, addresses: str) -> None:
        import httpcore2

        self._backend = httpcore2.SyncBackend()
        self.addresses = addresses

    def connect_tcp(self, host: str, port: int, timeout: float | None = None, **options: Any) -> _Stream:
        import httpcore2

        hosts = [host]
        if self.addresses != "any":
            hosts = addresses_of(host, port, private=self.addresses == "private")
        for address in hosts[:-1]:
            with contextlib.suppress(httpcore2.ConnectError, httpcore2.ConnectTimeout):
                return _Stream(self._backend.connect_tcp(address, port, _seconds_left(timeout), **options))
        try:
            return _Stream(self._backend.connect_tcp(hosts[-1], port, _seconds_left(timeout), **options))
        except UnicodeError as error:  # a host name that cannot be encoded
            raise httpcore2.ConnectError(str(error)) from error

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class _Stream:
    """A connection whose every step ends at the deadline of the request."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        data: bytes = self._stream.read(max_bytes, _seconds_left(timeout))
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, _seconds_left(timeout))

    def start_tls(self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None) -> _Stream:
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, _seconds_left(timeout)))

    def close(self) -> None:
        self._stream.close()

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _seconds_left(timeout: float | None) -> float | None:
    if (deadline := _deadline.get()) == math.inf:
        return timeout
    left = deadline - time.monotonic()
    if left <= 0:
        import httpcore2

        raise httpcore2.ReadTimeout("the deadline of the request has passed")
    return left if timeout is None else min(left, timeout)
