"""One HTTP request for a page: to a checked address, within limits of time and size, without cookies."""

from __future__ import annotations

import contextlib
import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING, Any

from qabench.retrieval.web.addresses import Blocked, Unresolved, addresses_of
from qabench.retrieval.web.limits import PageLimits

if TYPE_CHECKING:
    import httpx2

USER_AGENT = "qabench/{version} (https://github.com/qabench/qabench)"
ACCEPTED = "text/html,application/xhtml+xml;q=0.9,text/plain;q=0.1"
MOST_ADDRESSES = 3  # of a host, that are tried
GZIP = 16 + zlib.MAX_WBITS


class Unread(Exception):
    """Why a page was not read.

    Attributes:
        reason: one of a few words, which failures are counted by, such as "timeout".
        detail: more about this page; may be empty.
        passing: whether the same request may succeed later.
        wait: the seconds that the server asks to wait, if it does.
    """

    def __init__(self, reason: str, detail: str = "", *, passing: bool = False, wait: float | None = None) -> None:
        super().__init__(reason, detail)
        self.reason, self.detail, self.passing, self.wait = reason, detail, passing, wait


@dataclass(frozen=True, slots=True)
class Response:
    """A response; ``body`` is empty if it redirects. Header names are lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Transfer:
    """Sends requests for pages; safe for several threads."""

    def __init__(self, limits: PageLimits) -> None:
        import httpx2

        from qabench.evaluation.signature import version

        self.limits = limits
        # Connections are not reused: hosts that share an IP address would share connections, whose certificate was
        # checked for one of them only.
        self._client = httpx2.Client(
            headers={
                "User-Agent": USER_AGENT.format(version=version()),
                "Accept": ACCEPTED,
                "Accept-Encoding": "gzip",
            },
            limits=httpx2.Limits(max_keepalive_connections=0),
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            follow_redirects=False,
        )

    def get(self, url: str) -> Response:
        """The response to a GET request. Raises Unread."""
        import httpx2

        deadline = time.monotonic() + self.limits.timeout
        try:
            with contextlib.closing(self._sent(httpx2.URL(url))) as response:
                return self._read(response, deadline)
        except httpx2.TimeoutException:
            raise Unread("timeout", f"no answer within {self.limits.timeout:g} s", passing=True) from None
        except (httpx2.InvalidURL, httpx2.UnsupportedProtocol, ValueError) as error:
            raise Unread("invalid URL", str(error)[:200]) from error
        except (httpx2.RequestError, zlib.error) as error:
            raise Unread("connection failed", f"{type(error).__name__}: {error}"[:200], passing=True) from error

    def close(self) -> None:
        """Closes the client."""
        self._client.close()

    def _sent(self, url: httpx2.URL) -> httpx2.Response:
        """The response of the first of the host's addresses that accepts a connection."""
        import httpx2

        host, port = url.raw_host.decode("ascii").strip("[]"), url.port or {"http": 80, "https": 443}.get(url.scheme)
        if not host or port is None or url.userinfo:
            raise Unread("invalid URL", f"{url.scheme}://{host}"[:200])
        try:
            addresses = addresses_of(host, port, private=self.limits.private_addresses)[:MOST_ADDRESSES]
        except Blocked as error:
            raise Unread("blocked address", str(error)) from None
        except Unresolved as error:
            raise Unread("connection failed", str(error)[:200], passing=True) from None
        for address in addresses[:-1]:
            with contextlib.suppress(httpx2.ConnectError, httpx2.ConnectTimeout):
                return self._client.send(self._request(url, host, address), stream=True)
        return self._client.send(self._request(url, host, addresses[-1]), stream=True)

    def _request(self, url: httpx2.URL, host: str, address: str) -> httpx2.Request:
        """The request to an IP address; TLS and the server still see the host's name."""
        seconds = self.limits.timeout
        timeout = {"connect": min(10.0, seconds), "read": seconds, "write": seconds, "pool": seconds}
        extensions: dict[str, Any] = {"sni_hostname": host, "timeout": timeout}
        headers = {"Host": url.netloc.decode("ascii")}
        return self._client.build_request("GET", url.copy_with(host=address), headers=headers, extensions=extensions)

    def _read(self, response: httpx2.Response, deadline: float) -> Response:
        headers = {name.lower(): value for name, value in response.headers.items()}
        if response.status_code != 200:
            return Response(response.status_code, headers, b"")
        encoding = headers.get("content-encoding", "identity").strip().lower()
        if encoding not in ("identity", "", "gzip", "x-gzip"):
            raise Unread("unknown encoding", encoding[:50])
        # Decompressed here, with a limit: httpx would decompress whatever the bytes expand to.
        unpack = zlib.decompressobj(GZIP) if "gzip" in encoding else None
        body = bytearray()
        for chunk in response.iter_raw():
            left = self.limits.max_bytes + 1 - len(body)
            body += unpack.decompress(chunk, left) if unpack else chunk[:left]
            if len(body) > self.limits.max_bytes:
                raise Unread("too large", f"more than {self.limits.max_bytes:,} bytes")
            if time.monotonic() > deadline:
                raise Unread("timeout", f"not complete after {self.limits.timeout:g} s", passing=True)
        return Response(200, headers, bytes(body))
